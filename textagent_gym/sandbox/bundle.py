"""Sends a program of ours, with the modules that it needs, as one text to a Python that has none of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


def bundle(main: ModuleType, *needed: ModuleType) -> str:
    """A program for `python -c`: the modules that are needed, in this order, and then the main one.

    Args:
        main: module that runs as `__main__`.
        needed: modules that can be imported by their full names; they import nothing else but the standard library.
    """
    sources = [(module.__name__, Path(module.__file__ or "").read_text(encoding="utf-8")) for module in needed]
    last = Path(main.__file__ or "").read_text(encoding="utf-8")
    return (
        "import sys, types\n"
        f"for name, text in {sources!r}:\n"
        "    package, _, last = name.rpartition('.')\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        "    setattr(sys.modules.setdefault(package, types.ModuleType(package)), last, module)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        f"exec(compile({last!r}, {main.__name__!r}, 'exec'))\n"
    )
