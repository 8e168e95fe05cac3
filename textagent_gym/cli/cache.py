"""`textagent-gym cache`."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Show how much each world keeps in the cache, or clear it. Everything in there can be made again.

    The cache is the folder that the environment variable TEXTAGENT_CACHE names, by default ~/.cache/textagent-gym.
    """

    clear: bool = False
    """Whether everything in the cache is deleted. What is needed again is made again."""

    def run(self) -> int:
        """Print, and delete if asked to; 1 if something could not be deleted."""
        from rich.console import Console

        from textagent_gym.files import cache_folder
        from textagent_gym.registration import WORLDS, installed_worlds

        console = Console(highlight=False)
        owners: dict[str, list[str]] = {}
        for world in (*WORLDS, *installed_worlds()):
            for name in world.cache:
                owners.setdefault(name, []).append(world.name)
        top = cache_folder()
        folders = sorted(path for path in top.iterdir() if path.is_dir()) if top.is_dir() else []
        console.print(f"{top}:" if folders else f"{top}: nothing", soft_wrap=True)
        remaining = 0
        for folder in folders:
            owner = ", ".join(owners.get(folder.name, ["shared by all"]))
            files, size = measure(folder)
            text = f"  {folder.name} ({owner}): {files} files, {size / 1e6:.1f} MB"
            if self.clear:
                shutil.rmtree(folder, ignore_errors=True)
                left, _ = measure(folder)
                text += f"; deleted {files - left}"
                remaining += left
            console.print(text, soft_wrap=True)
        if remaining:
            console.print(f"{remaining} files could not be deleted: {top} may not be writable.", style="red")
        return 1 if remaining else 0


def measure(folder: Path) -> tuple[int, int]:
    """Number of files below a folder, and their bytes."""
    sizes = [path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    return len(sizes), sum(sizes)
