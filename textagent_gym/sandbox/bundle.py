"""Sends a program of ours, with the modules of ours that it imports, as one text to a Python that has none of them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

_OURS = "textagent_gym."


@cache
def bundle(main: ModuleType) -> str:
    """A program for `python -c`: the modules that it needs, and then the main one.

    Args:
        main: module that runs as `__main__`. It and the modules of ours that it imports, which can be imported by their
            full names there, import nothing else but the standard library.
    """
    needed: dict[str, str] = {}
    _add_needed(main, needed)
    return (
        "import sys, types\n"
        f"for name, text in {list(needed.items())!r}:\n"
        "    package, _, last = name.rpartition('.')\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        "    setattr(sys.modules.setdefault(package, types.ModuleType(package)), last, module)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        f"exec(compile({_text(main)!r}, {main.__name__!r}, 'exec'))\n"
    )


def _add_needed(module: ModuleType, needed: dict[str, str]) -> None:
    """Add what a module imports to the texts by name, each after what it imports itself."""
    for name in _imports(_text(module)):
        if name in sys.modules and name not in needed:
            _add_needed(sys.modules[name], needed)
            needed[name] = _text(sys.modules[name])


def _imports(text: str) -> Iterator[str]:
    """Dotted names of modules of ours that a text imports; of a package, the members that may be modules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in members if name in sys.modules]
            yield from modules or [str(node.module)]


def _text(module: ModuleType) -> str:
    return Path(module.__file__ or "").read_text(encoding="utf-8")
