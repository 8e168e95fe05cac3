"""Mounts, and mounts of folders under another owner: what root owns here belongs to a sandbox's own user there.

With the latter, code in a sandbox that root has started runs as a user who is nobody outside the sandbox, and still
finds a tree that it may change. It takes Linux 5.19 and a file system with idmapped mounts (ext4, xfs, btrfs, tmpfs
from 6.3). Sent as a text with the supervisor (see `bundle`), so it imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

NOSUID, NODEV, NOEXEC, PRIVATE, SHARED = 2, 4, 8, 1 << 18, 1 << 20
"""Flags of `mount`, as in <sys/mount.h>."""
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVELY = 1, 32, 4096, 16384  # Further ones.
_DETACH = 2  # MNT_DETACH: gone at once, and in truth when nobody uses it any more.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # The same numbers on every machine.
_CLONE, _CLOSE_ON_EXEC = 1, os.O_CLOEXEC
_RECURSIVE, _EMPTY_PATH = 0x8000, 0x1000
_FROM_DESCRIPTOR = 4  # MOVE_MOUNT_F_EMPTY_PATH
_IDMAP = 0x00100000  # MOUNT_ATTR_IDMAP
_HERE = -100  # AT_FDCWD

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise `OSError` for a call of the C library that failed."""
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount something; the arguments are those of `mount(2)`.

    Raises:
        OSError: the kernel refuses.
    """
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        options and options.encode(),
    )
    check(result, f"mount {kind or ''} at {target}")


def bind(source: str, target: str) -> None:
    """Let a file or folder appear in a second place, without what is mounted in it.

    Raises:
        OSError: the kernel refuses.
    """
    mount(source, target, None, _BIND, None)


def bind_read_only(source: str, target: str) -> None:
    """Let a file appear in a second place, where neither its mode nor its dates change. Devices can be written to.

    Raises:
        OSError: the kernel refuses.
    """
    bind(source, target)
    kept = os.statvfs(target).f_flag & (NOSUID | NODEV | NOEXEC)  # In a namespace of one's own, none of them may go.
    mount("none", target, None, _REMOUNT | _BIND | _READ_ONLY | kept, None)


def make_private() -> None:
    """Keep what is mounted here from appearing elsewhere.

    Raises:
        OSError: the kernel refuses.
    """
    mount("none", "/", None, _RECURSIVELY | PRIVATE, None)


def unmount(target: str) -> None:
    """Take everything away that is mounted in a place."""
    while detach(target):
        pass


def detach(target: str) -> bool:
    """Take away what was mounted last in a place, if anything was."""
    return bool(_libc.umount2(os.fsencode(target), _DETACH) == 0)


def bring(source: str | int, target: str) -> None:
    """Let a file or folder appear: a path of this machine, or a descriptor of a mount.

    Raises:
        OSError: the kernel refuses.
    """
    if isinstance(source, int):
        attach(source, target)
    else:
        mount(source, target, None, _BIND | _RECURSIVELY, None)


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
