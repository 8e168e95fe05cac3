"""What sandboxed code may ask of the kernel: a filter of system calls, in the form that `prctl` and bubblewrap take.

Denied is what no test of a library needs and what reaches beyond a tree and its processes: other processes' memory,
keys and shared memory that outlive a process, namespaces and mounts, clocks, modules, contexts of asynchronous input
and output, of which the whole machine has some thousand, and calls newer than this list.
Sockets are of the families that are bound to a network namespace: the ports of VSOCK, for one, are the whole machine's.
Tested code has Unix sockets alone: what TCP notes of a connection outlives its process. A denied call fails with EPERM,
with ENOSYS where the C library has another way, or as if there were none.

The filter is built here and applied by whoever starts the code; `apply` needs nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import struct

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # Where they lie in `struct seccomp_data`.
_X32 = 0x40000000
_NEWEST = 469
"""Last number of a call that was looked at for this list; Linux 6.17."""
_NEW_NAMESPACES = 0x7E020080  # All flags of `clone` by the name CLONE_NEW*.
_TERMINAL_INPUT, _TERMINAL_CONTROL = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX
SHELL_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6, the same everywhere. What netlink's sockets hold would count for no control group."""
TESTED_FAMILIES = (1,)
"""AF_UNIX: what these sockets hold ends with the processes that have them."""
_CORE = 4  # RLIMIT_CORE
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER_MODE = 38, 22, 2

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}

_DENIED = {
    # Name: number on x86_64 and aarch64; None where there is no such call.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "perf_event_open": (298, 241), "bpf": (321, 280),
    "userfaultfd": (323, 282), "seccomp": (317, 277), "uselib": (134, None), "personality": (135, 92),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458), "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "syslog": (103, 116), "vhangup": (153, 58),
    "create_module": (174, None), "init_module": (175, 105), "delete_module": (176, 106), "finit_module": (313, 273),
    "get_kernel_syms": (177, None), "query_module": (178, None), "nfsservctl": (180, 42), "_sysctl": (156, None),
    "sysfs": (139, None), "ustat": (136, None), "lookup_dcookie": (212, 18), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "lsm_get_self_attr": (459, 459), "lsm_set_self_attr": (460, 460), "io_setup": (206, 0),
}  # fmt: skip
_MISSING = {"clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "memfd_secret": 447}
"""Calls that the C library, or Python, goes without; the same numbers everywhere."""


def seccomp_filter(machine: str, families: tuple[int, ...]) -> bytes:
    """The filter for a kind of machine, as `struct sock_filter`s.

    Args:
        machine: "x86_64" or "aarch64", also by their other names.
        families: families of the sockets that may be opened.

    Raises:
        ValueError: there is none for this machine.

    >>> len(seccomp_filter("x86_64", TESTED_FAMILIES)) % 8
    0
    """
    name = _ALIASES.get(machine.lower(), machine.lower())
    if name not in _AUDIT:
        raise ValueError(f"there is no filter of system calls for the machine {machine!r}: x86_64 and aarch64 have one")
    column = list(_AUDIT).index(name)

    def number(x86_64: int, aarch64: int) -> int:
        return (x86_64, aarch64)[column]

    program = [(_LOAD, 0, 0, _ARCHITECTURE), (_IF_EQUAL, 1, 0, _AUDIT[name]), _fail(errno.EPERM)]
    program += [(_LOAD, 0, 0, _NUMBER)]
    if name == "x86_64":
        program += [(_IF_AT_LEAST, 0, 1, _X32), _fail(errno.ENOSYS)]
    program += [(_IF_AT_LEAST, 0, 1, _NEWEST + 1), _fail(errno.ENOSYS)]
    for numbers in _DENIED.values():
        if (denied := numbers[column]) is not None:
            program += [(_IF_EQUAL, 0, 1, denied), _fail(errno.EPERM)]
    for missing in _MISSING.values():
        program += [(_IF_EQUAL, 0, 1, missing), _fail(errno.ENOSYS)]
    # Limits and processors of oneself alone; the limit on core dumps stays.
    limits = [
        (_IF_EQUAL, 1, 0, 0), _fail(errno.EPERM),
        (_LOAD, 0, 0, _ARGUMENTS + 8), (_IF_EQUAL, 0, 5, _CORE),
        (_LOAD, 0, 0, _ARGUMENTS + 16), (_IF_EQUAL, 0, 2, 0), (_LOAD, 0, 0, _ARGUMENTS + 20), (_IF_EQUAL, 1, 0, 0),
        _fail(errno.EPERM),
    ]  # fmt: skip
    program += _checked(number(302, 261), 0, limits)  # prlimit64
    program += _checked(number(160, 164), 0, [(_IF_EQUAL, 0, 1, _CORE), _fail(errno.EPERM)])  # setrlimit
    program += _checked(number(203, 122), 0, [(_IF_EQUAL, 1, 0, 0), _fail(errno.EPERM)])  # sched_setaffinity
    program += _checked(number(56, 220), 0, [(_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), _fail(errno.EPERM)])  # clone
    other = [(_IF_EQUAL, 0, 3, _PARENT_DEATH), (_LOAD, 0, 0, _ARGUMENTS + 8), (_IF_EQUAL, 1, 0, 9), _fail(errno.EPERM)]
    program += _checked(number(157, 167), 0, other)  # prctl: what is to end with its parent does.
    wrong = [(_IF_EQUAL, 0, 1, command) for command in (_TERMINAL_INPUT, _TERMINAL_CONTROL)]
    program += _checked(number(16, 29), 1, [part for test in wrong for part in (test, _fail(errno.EPERM))])  # ioctl
    for numbers in ((41, 198), (53, 199)):  # socket, socketpair
        program += _checked(number(*numbers), 0, _one_of(families, errno.EAFNOSUPPORT))
    program += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def _fail(error: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _FAIL | error)


def _one_of(values: tuple[int, ...], error: int) -> list[tuple[int, int, int, int]]:
    """Instructions that fail unless an argument is one of some values."""
    return [(_IF_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)] + [_fail(error)]


def _checked(number: int, argument: int, body: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Instructions for one call, on the lower half of an argument, all of which these calls look at."""
    load = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)
    return [(_IF_EQUAL, 0, len(body) + 2, number), load, *body, (_RETURN, 0, 0, _ALLOW)]


def apply(program: bytes) -> None:
    """Put a filter on this process and all that it starts, for good.

    Raises:
        OSError: the kernel has none.
    """

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(program, len(program))
    prepared = Program(len(program) // 8, ctypes.cast(text, ctypes.c_void_p))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER_MODE, ctypes.byref(prepared), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")
