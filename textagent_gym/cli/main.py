"""`textagent-gym`: one sub-command per file. What a command needs is imported when it runs, so `--help` is quick."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import tyro

from textagent_gym.cli.aggregate import Aggregate
from textagent_gym.cli.cache import Cache
from textagent_gym.cli.certify import Certify
from textagent_gym.cli.challenge import ChallengeSteps
from textagent_gym.cli.compare import Compare
from textagent_gym.cli.data import Data
from textagent_gym.cli.demos import Demos
from textagent_gym.cli.eval import Eval
from textagent_gym.cli.export import Export
from textagent_gym.cli.info import Info
from textagent_gym.cli.leaderboard import Leaderboard
from textagent_gym.cli.list import List
from textagent_gym.cli.play import Play
from textagent_gym.cli.subcommand import subcommand
from textagent_gym.cli.suites import Suites
from textagent_gym.cli.swe import Swe
from textagent_gym.cli.trajectories import Trajectories
from textagent_gym.cli.verify import Verify

_READER_GONE = 141
"""Exit status of a program whose output nobody reads any more, as of one that SIGPIPE ends: not 0, by which `verify`
would say that nothing is wrong."""
_DESCRIPTION = """Text environments with measured difficulty for language agents.
`textagent-gym COMMAND --help` explains a command; `textagent-gym --version` prints the installed version."""


Command = (
    Annotated[List, subcommand("list", List)]
    | Annotated[Info, subcommand("info", Info)]
    | Annotated[Play, subcommand("play", Play)]
    | Annotated[Demos, subcommand("demos", Demos)]
    | Annotated[Eval, subcommand("eval", Eval)]
    | Annotated[Certify, subcommand("certify", Certify)]
    | Annotated[ChallengeSteps, subcommand("challenge", ChallengeSteps)]
    | Annotated[Suites, subcommand("suites", Suites)]
    | Annotated[Verify, subcommand("verify", Verify)]
    | Annotated[Compare, subcommand("compare", Compare)]
    | Annotated[Aggregate, subcommand("aggregate", Aggregate)]
    | Annotated[Leaderboard, subcommand("leaderboard", Leaderboard)]
    | Annotated[Trajectories, subcommand("trajectories", Trajectories)]
    | Annotated[Export, subcommand("export", Export)]
    | Annotated[Swe, subcommand("swe", Swe)]
    | Annotated[Data, subcommand("data", Data)]
    | Annotated[Cache, subcommand("cache", Cache)]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exits with 0, with 1 if it failed, 2 for wrong arguments, 130 for Ctrl-C, and 141 where the reader
    of what it prints has gone.
    """
    import gymnasium
    from rich.console import Console

    from textagent_gym.errors import TextAgentError
    from textagent_gym.terminal import visible

    try:
        try:
            _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()  # Python would too, when it is too late to say anything about a closed pipe.
    except KeyboardInterrupt as stop:
        Console(stderr=True).print(visible(str(stop)) or "Stopped.", style="yellow", markup=False, soft_wrap=True)
        sys.exit(130)
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # So rich ends a program.
            _end_without_reader()
        raise
    except (TextAgentError, gymnasium.error.Error, OSError) as error:
        Console(stderr=True).print(visible(f"Error: {error}"), style="red", markup=False, highlight=False)
        sys.exit(2 if isinstance(error, ValueError | LookupError | gymnasium.error.UnregisteredEnv) else 1)


def _run(arguments: list[str]) -> NoReturn:
    """Run a command, and exit with its status."""
    if arguments == ["--version"]:
        print(f"textagent-gym {version('textagent-gym')}")
        sys.exit(0)
    command = tyro.cli(
        Command,
        prog="textagent-gym",
        description=_DESCRIPTION,
        config=(tyro.conf.FlagCreatePairsOff,),
        args=arguments,
    )
    sys.exit(command.run())


def _end_without_reader() -> NoReturn:
    """Exit quietly: nothing more is written, not even what Python still holds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    sys.exit(_READER_GONE)
