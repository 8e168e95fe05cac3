"""Story files of the Z-machine: what TextWorld compiles, and what the interpreter reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from textagent_gym.errors import GenerationError

_VERSION = 8  # Of the Z-machine; TextWorld compiles to no other.
_HEADER = 0x40  # Bytes of a story's header, which its checksum leaves out.
_LENGTH = slice(0x1A, 0x1C)  # In units of eight bytes.
_CHECKSUM = slice(0x1C, 0x1E)
_SERIAL_NUMBER = slice(0x12, 0x18)  # The day of compilation.


def check_story(path: str | Path) -> None:
    """Read a story's header, because Frotz ends the whole process when it is handed something else.

    Raises:
        GenerationError: the file is not a whole `.z8` story; the message says what is wrong with it.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise GenerationError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) < _HEADER or content[0] != _VERSION:
        raise GenerationError(f"{path} is not a story of the Z-machine's version {_VERSION}")
    length = int.from_bytes(content[_LENGTH], "big") * 8
    if not _HEADER <= length <= len(content):
        raise GenerationError(f"{path} is cut off: {len(content)} of {length} bytes are there")
    total = int(np.frombuffer(content[_HEADER:length], np.uint8).sum(dtype=np.int64))
    if total % 0x10000 != int.from_bytes(content[_CHECKSUM], "big"):
        raise GenerationError(f"{path} is damaged: its checksum is not the one in its header")


def without_date(story: bytes) -> bytes:
    """A story that does not say on which day it was compiled, so that equal games have equal bytes."""
    content = bytearray(story)
    content[_SERIAL_NUMBER] = b"000000"
    return bytes(content)
