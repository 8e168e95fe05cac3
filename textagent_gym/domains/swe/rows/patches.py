"""What a unified diff says that it changes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What becomes of one file.

    Attributes:
        old, new: path of the file before and after; `None` for a file that is new, or gone.
        hunks: number of places that are changed.
        lines: number of lines that are taken out or put in.
    """

    old: str | None
    new: str | None
    hunks: int = 0
    lines: int = 0

    @property
    def paths(self) -> set[str]:
        """The paths that are concerned."""
        return {path for path in (self.old, self.new) if path is not None}


def read_patch(text: str) -> tuple[FilePatch, ...]:
    r"""The files of a diff, in the order in which they come.

    >>> read_patch("diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n")
    (FilePatch(old='x.py', new='x.py', hunks=1, lines=3),)
    """
    files: list[FilePatch] = []
    removed = added = 0  # Lines that the hunk has still to come.
    in_header = False
    for line in text.split("\n"):
        if removed > 0 or added > 0:
            if line.startswith("\\"):
                continue
            removed -= not line.startswith("+")
            added -= not line.startswith("-")
            files[-1] = replace(files[-1], lines=files[-1].lines + line.startswith(("+", "-")))
        elif line.startswith("diff --git "):
            files.append(_of_header(line.removeprefix("diff --git ")))
            in_header = True
        elif line.startswith("--- "):
            if not in_header:
                files.append(FilePatch(None, None))
            files[-1] = replace(files[-1], old=_path(line[4:]))
        elif line.startswith("+++ ") and files:
            files[-1] = replace(files[-1], new=_path(line[4:]))
            in_header = False
        elif line.startswith("new file mode") and files:
            files[-1] = replace(files[-1], old=None)
        elif line.startswith("deleted file mode") and files:
            files[-1] = replace(files[-1], new=None)
        elif line.startswith("rename from ") and files:
            files[-1] = replace(files[-1], old=_unquoted(line.removeprefix("rename from ")))
        elif line.startswith("rename to ") and files:
            files[-1] = replace(files[-1], new=_unquoted(line.removeprefix("rename to ")))
        elif (hunk := _HUNK.match(line)) and files:
            removed, added = (int(count) if count else 1 for count in hunk.groups())
            files[-1] = replace(files[-1], hunks=files[-1].hunks + 1)
    return tuple(files)


def _of_header(names: str) -> FilePatch:
    """Both names are the same, unless other lines say otherwise."""
    half = len(names) // 2
    return FilePatch(_path(names[:half]), _path(names[half + 1 :]))


def _path(name: str) -> str | None:
    name = _unquoted(name.partition("\t")[0])
    return None if name == "/dev/null" else name.partition("/")[2]


def _unquoted(name: str) -> str:
    """Git puts names in quotes that are not plain ASCII."""
    if len(name) > 1 and name[0] == name[-1] == '"':
        return bytes(ast.literal_eval(f"b{name}")).decode(errors="replace")
    return name
