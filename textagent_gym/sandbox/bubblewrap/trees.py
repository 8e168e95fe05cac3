"""Trees of boxes, mounted by the supervisor: layers, and what is written over them, together as one.

Sent as a text with the supervisor (see `bundle`), so it imports nothing but the standard library.
"""

from __future__ import annotations

import os
from typing import Any

from textagent_gym.sandbox.bubblewrap.mounts import NODEV, NOEXEC, NOSUID, bind, bring, mount, unmount

_TERMINALS = 32
"""Pseudoterminals of a box; tests of terminals take one or two at a time."""


def make_system(request: dict[str, Any], sources: list[str | int]) -> None:
    """Make what every box sees of this machine."""
    for name in request["folders"]:
        os.makedirs(f"system{name}", exist_ok=True)
    for name in request["files"]:
        os.makedirs(os.path.dirname(f"system{name}"), exist_ok=True)
        open(f"system{name}", "wb").close()
    for source, target in zip(sources, request["targets"], strict=True):
        bring(source, target)
    for name, target in request["links"].items():
        os.makedirs(os.path.dirname(f"system{name}"), exist_ok=True)
        os.symlink(target, f"system{name}")
    if request["hidden"]:
        os.mkdir("nothing")
        os.mkdir("nothing/here")
    for name in request["hidden"]:
        bind("nothing/here", f"system{name}")


class MountedTree:
    """A tree: layers below, and a temporary file system of a limited size above, which holds all that is written.

    Args:
        name: name of its folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[str] = []

    def mount(self, sources: list[str | int], size: int, files: int) -> None:
        """Mount the tree afresh.

        Args:
            sources: sources of the layers, the first of which hides the others.
            size: number of bytes that can be written.
            files: number of files that can be made.
        """
        self.layers = []
        mount_space(self.name, size, files)
        for number, source in enumerate(sources):
            layer = f"{self.name}/layers/{number}"
            os.mkdir(layer)
            bring(source, layer)
            self.layers.append(layer)
        mount_overlay(self.name, self.layers, f"{self.name}/tree")


def mount_space(name: str, size: int, files: int) -> None:
    """Mount a temporary file system in the place of the last one, and of all that was mounted there."""
    unmount(name)
    mount("tmpfs", name, "tmpfs", NOSUID | NODEV, f"size={size},nr_inodes={files},mode=755")
    for folder in ("upper", "work", "tree", "tmp", "shm", "pts", "layers"):
        os.mkdir(f"{name}/{folder}")
    # A machine has some thousand terminals for all.
    mount("devpts", f"{name}/pts", "devpts", NOSUID | NOEXEC, f"newinstance,ptmxmode=0666,mode=620,max={_TERMINALS}")


def mount_overlay(name: str, layers: list[str], target: str) -> None:
    """Mount layers, and what is written over them into a space, somewhere."""
    lower = ":".join(layers or [f"{name}/layers"])
    options = f"lowerdir={lower},upperdir={name}/upper,workdir={name}/work,userxattr"
    mount("overlay", target, "overlay", NOSUID | NODEV, options)


def is_covered(name: str) -> bool:
    """Something is mounted over one of the places that are shared."""
    return os.stat(name).st_dev != os.stat("box").st_dev
