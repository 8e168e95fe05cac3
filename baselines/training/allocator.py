"""The C library's memory allocator, told to suit training on a CPU."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Names of the options in glibc's <malloc.h>.


def keep_freed_memory() -> bool:
    """Keep the memory of freed tensors for the next ones, instead of giving it back to the system each time.

    Every update of a small model allocates and frees the same large tensors; mapping and clearing their pages took a
    third of its time (30 updates of 2,000 tokens: 5.8 s, with this 3.5 s). It changes no result.

    Returns:
        True if the C library is glibc, which has these options; elsewhere nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1)) and bool(mallopt(_MMAP_THRESHOLD, 2**30))
