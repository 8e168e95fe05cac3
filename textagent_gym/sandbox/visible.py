"""Run in a sandbox: says which files that can be seen there, beside the tree, contain one of some texts.

A program as `Sandbox.ask` starts it; a question is a list of texts as hexadecimal digits, in JSON, and the answer a
list of paths. Programs and libraries in machine code are passed over, archives are looked into.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import zipfile
from collections.abc import Iterator, Sequence

_ELSEWHERE = ("/proc", "/sys", "/dev", "/tmp")
_MACHINE_CODE = b"\x7fELF"  # How such a file begins.
_ARCHIVE = b"PK\x03\x04"  # How a zip file begins, a wheel for one.
_NONCE = 16  # Bytes with which a question and its answer begin.


def files(left_out: Sequence[str]) -> Iterator[str]:
    """Plain files that can be read, each once."""
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in left_out]
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield path


def contents(path: str) -> Iterator[bytes]:
    """What a file contains, and the files in it where it is an archive."""
    with open(path, "rb") as stream:
        first = stream.read(4)
        if first == _MACHINE_CODE:
            return
        yield first + stream.read()
    if first == _ARCHIVE:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield archive.read(name)


def search(texts: Sequence[bytes], root: str) -> list[str]:
    """Files beside the tree that contain one of the texts."""
    matches = []
    for path in files((*_ELSEWHERE, root)):
        try:
            if any(text in content for content in contents(path) for text in texts):
                matches.append(path)
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            continue
    return matches


def main() -> None:
    """Answer questions until there are no more."""
    answers, root = int(sys.argv[1]), sys.argv[2]
    os.write(answers, bytes(8))  # Ready.
    while head := sys.stdin.buffer.read(8):
        message = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        texts = [bytes.fromhex(text) for text in json.loads(message[_NONCE:])]
        answer = message[:_NONCE] + json.dumps(search(texts, root)).encode()
        answer = len(answer).to_bytes(8, "big") + answer
        while answer:
            answer = answer[os.write(answers, answer) :]


if __name__ == "__main__":
    main()
