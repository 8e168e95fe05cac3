"""Run in a sandbox that is checked: says what is in the tree, or waits, or lies; see `conformity`.

A program as `Sandbox.ask` starts it. The question "tree" is answered with the text of each file by its path, in JSON;
"spoil" too, after which every file is changed; "wait" is never answered, and "lie" with an answer to no question.
"""

from __future__ import annotations

import json
import os
import sys
import time

_NONCE = 16  # Bytes with which a question and its answer begin.
_LONG = 600.0  # Seconds; nobody waits for that.


def read(root: str) -> dict[str, str]:
    """Texts of the files of a tree, by their paths."""
    texts = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as stream:
                texts[os.path.relpath(path, root)] = stream.read()
    return texts


def spoil(root: str) -> None:
    """Change all files of a tree, and add one, as far as that is allowed."""
    for path in [*read(root), "spoilt"]:
        try:
            with open(os.path.join(root, path), "w", encoding="utf-8") as stream:
                stream.write("spoilt")
        except OSError:
            continue


def main() -> None:
    """Answer questions until there are no more."""
    answers, root = int(sys.argv[1]), sys.argv[2]
    os.write(answers, bytes(8))  # Ready.
    while head := sys.stdin.buffer.read(8):
        message = sys.stdin.buffer.read(int.from_bytes(head, "big"))
        nonce, question = message[:_NONCE], message[_NONCE:].decode()
        if question == "wait":
            time.sleep(_LONG)
        if question == "lie":
            nonce = bytes(_NONCE)
        answer = nonce + json.dumps(read(root)).encode()
        if question == "spoil":
            spoil(root)
        os.write(answers, len(answer).to_bytes(8, "big") + answer)


if __name__ == "__main__":
    main()
