"""What can be asked of the software-engineering environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from textagent_gym.domains.swe.tools import ActionFormat, Tools
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import Options, knob
from textagent_gym.options import TextEnvKwargs
from textagent_gym.sandbox import Limits, check_sandbox_name

_MOST_LINES = 10_000_000  # No repository has more.


@dataclass(frozen=True, kw_only=True)
class SWEOptions(Options):
    """How an agent works on a repository."""

    sandbox: str = knob(
        "auto",
        'kind of the place where commands run: "auto" for the first one here that keeps an agent in, "bubblewrap", '
        '"docker", "podman", "ray", "ray:docker" and the like, "process", which keeps nothing in, or a registered one',
    )
    tools: Tools = knob("shell", 'tools that are offered; "edit" has view, replace, run tests and submit')
    action_format: ActionFormat | None = knob(
        None, 'language of the actions; `None` for "bash" with the tools "shell", and for "functions" with others'
    )
    reward_at: Literal["submit", "turn"] = knob(
        "submit",
        'moment at which the tests are run; "turn" runs them after every turn that changed something (slow)',
    )
    command_timeout: float = knob(60.0, "seconds that a command may take", low=0.1)
    max_observation: int = knob(10_000, "number of characters of an observation", low=200)
    limits: Limits | None = knob(None, "bounds of what commands may use; `None` for the defaults of the environment")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sandbox_name(self.sandbox)
        if self.action_format == "bash" and self.tools != "shell":
            raise InvalidOptionError('action_format="bash" has the tools "shell"; choose "functions" or "editor"')


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Options):
    """Which of the suite's own tasks are played."""

    packages: tuple[str, ...] = knob(
        ("measures",), 'names of packages (see `packages.PACKAGES`), "all", or paths of folders with a slash in them'
    )
    lines: tuple[int, int] | None = knob(
        None, "lines of code that the packages have; `None` for any", low=0, high=_MOST_LINES, axis="state_size"
    )
    mutants: int = knob(
        1, "number of independent mistakes in each task, each noticed by tests of its own", low=1, high=5
    )
    recipes: str | None = knob(None, "file of recipes that `textagent-gym swe build` wrote; `None` for the suite's own")


@dataclass(frozen=True, kw_only=True)
class InstancesOptions(Options):
    """Which rows of a data set are played."""

    rows: str = knob(
        "", "file (`.jsonl`, `.json` or `.parquet`), or folder or name of a data set for `datasets.load_dataset`"
    )
    images: Literal["swe-gym", "swe-bench"] = knob("swe-bench", "way of naming images where a row names none")
    divide: Literal["id", "repo", "train", "validation", "test"] = knob(
        "id", "division of the rows into splits: by their ids, by their repositories, or all of them in one split"
    )
    dataset_split: str = knob("test", "split of the data set, where `rows` is the name of one")
    grading_timeout: float = knob(1800.0, "seconds that the tests of a row may take", low=1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rows:
            raise InvalidOptionError("rows is empty: name a file, or a data set such as SWE-bench/SWE-bench_Verified")


class SWEKwargs(TextEnvKwargs, total=False):
    """Keyword arguments of every `SWEEnv`, for editors."""

    sandbox: str
    tools: Tools
    action_format: ActionFormat | None
    reward_at: Literal["submit", "turn"]
    command_timeout: float
    max_observation: int
    limits: Limits | None


class RepairKwargs(SWEKwargs, total=False):
    """Keyword arguments of `SWERepairEnv`, for editors."""

    packages: str | Sequence[str]
    lines: Sequence[int] | None
    state_size: Sequence[int] | None
    mutants: int
    recipes: str | None


class InstancesKwargs(SWEKwargs, total=False):
    """Keyword arguments of `SWEInstancesEnv`, for editors."""

    rows: str
    images: Literal["swe-gym", "swe-bench"]
    divide: Literal["id", "repo", "train", "validation", "test"]
    dataset_split: str
    grading_timeout: float
