"""How often a file breaks a rule of `tests/test_house.py`. Every table is to become empty; no number grows."""

from __future__ import annotations

IMPORTS: dict[str, int] = {}
ENGLISH: dict[str, int] = {}
NAMES: dict[str, int] = {
    "textagent_gym/sandbox/base.py": 1,
    "textagent_gym/sandbox/bubblewrap.py": 2,
    "textagent_gym/sandbox/choose.py": 1,
    "textagent_gym/sandbox/cluster.py": 4,
    "textagent_gym/sandbox/container.py": 9,
    "textagent_gym/sandbox/keeper.py": 2,
    "textagent_gym/sandbox/limits.py": 2,
    "textagent_gym/sandbox/process.py": 1,
    "textagent_gym/sandbox/seccomp.py": 1,
    "textagent_gym/sandbox/supervisor.py": 2,
    "textagent_gym/sandbox/system.py": 3,
    "textagent_gym/sandbox/tree.py": 4,
    "textagent_gym/sandbox/visible.py": 1,
}
NUMBERS: dict[str, int] = {
    "textagent_gym/sandbox/base.py": 2,
    "textagent_gym/sandbox/bubblewrap.py": 1,
    "textagent_gym/sandbox/cluster.py": 2,
    "textagent_gym/sandbox/container.py": 3,
    "textagent_gym/sandbox/mounts.py": 2,
    "textagent_gym/sandbox/seccomp.py": 1,
    "textagent_gym/sandbox/supervisor.py": 1,
    "textagent_gym/sandbox/tree.py": 2,
    "textagent_gym/sandbox/visible.py": 3,
}
