"""Mounts of folders under another owner: what root owns here belongs to a sandbox's own user there.

With this, code in a sandbox that root has started runs as a user who is nobody outside the sandbox, and still finds a
tree that it may change. It takes Linux 5.19 and a file system with idmapped mounts (ext4, xfs, btrfs, tmpfs from 6.3).
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # The same numbers on every machine.
_CLONE, _CLOSE_ON_EXEC = 1, os.O_CLOEXEC
_RECURSIVE, _EMPTY_PATH = 0x8000, 0x1000
_FROM_DESCRIPTOR = 4
_IDMAP = 0x00100000
_HERE = -100

_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def clone(path: Path) -> int:
    """A copy of the mount of a file or folder, as a descriptor.

    Raises:
        OSError: we are not root enough for that, or the kernel is too old.
    """
    flags = ctypes.c_uint(_CLONE | _CLOSE_ON_EXEC | _RECURSIVE)
    return _call(_OPEN_TREE, ctypes.c_int(_HERE), os.fsencode(path), flags)


def change_owner(mount: int, namespace: int) -> None:
    """Let a mount that `clone` made show its files as those of the user of a user namespace.

    Raises:
        OSError: the file system has no idmapped mounts, or the kernel is too old.
    """
    attributes = struct.pack("=QQQQ", _IDMAP, 0, 0, namespace)
    _call(_MOUNT_SETATTR, ctypes.c_int(mount), b"", ctypes.c_uint(_EMPTY_PATH), attributes, ctypes.c_size_t(32))


def attach(mount: int, target: str) -> None:
    """Put a mount that `clone` made where it can be found.

    Raises:
        OSError: it cannot be put there.
    """
    arguments = (ctypes.c_int(mount), b"", ctypes.c_int(_HERE), target.encode(), ctypes.c_uint(_FROM_DESCRIPTOR))
    _call(_MOVE_MOUNT, *arguments)
