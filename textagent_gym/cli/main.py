"""`textagent-gym`: one sub-command per file. What a command needs is imported when it runs, so `--help` is quick."""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import version
from typing import Annotated, Any

import tyro

from textagent_gym.cli.cache import Cache
from textagent_gym.cli.data import Data
from textagent_gym.cli.demos import Demos
from textagent_gym.cli.eval import Eval
from textagent_gym.cli.export import Export
from textagent_gym.cli.info import Info
from textagent_gym.cli.list import List
from textagent_gym.cli.play import Play
from textagent_gym.cli.swe import Swe
from textagent_gym.cli.verify import Verify

_DESCRIPTION = """Text environments with measured difficulty for language agents.
`textagent-gym COMMAND --help` explains a command; `textagent-gym --version` prints the installed version."""


def _sub(name: str, command: type) -> Any:
    """A sub-command with its docstring as `--help` shows it."""
    return tyro.conf.subcommand(name, description=inspect.cleandoc(command.__doc__ or ""))


Command = (
    Annotated[List, _sub("list", List)]
    | Annotated[Info, _sub("info", Info)]
    | Annotated[Play, _sub("play", Play)]
    | Annotated[Demos, _sub("demos", Demos)]
    | Annotated[Eval, _sub("eval", Eval)]
    | Annotated[Verify, _sub("verify", Verify)]
    | Annotated[Export, _sub("export", Export)]
    | Annotated[Swe, _sub("swe", Swe)]
    | Annotated[Data, _sub("data", Data)]
    | Annotated[Cache, _sub("cache", Cache)]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exits with 0, with 1 if it failed, 2 for wrong arguments, 130 for Ctrl-C."""
    import gymnasium
    from rich.console import Console

    from textagent_gym.errors import TextAgentError
    from textagent_gym.terminal import visible

    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"textagent-gym {version('textagent-gym')}")
        sys.exit(0)
    try:
        command = tyro.cli(
            Command,
            prog="textagent-gym",
            description=_DESCRIPTION,
            config=(tyro.conf.FlagCreatePairsOff,),
            args=arguments,
        )
        sys.exit(command.run())
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.", style="yellow")
        sys.exit(130)
    except BrokenPipeError:  # The reader of a pipe has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except (TextAgentError, gymnasium.error.Error, OSError) as error:
        Console(stderr=True).print(visible(f"Error: {error}"), style="red", markup=False, highlight=False)
        sys.exit(2 if isinstance(error, ValueError | LookupError | gymnasium.error.UnregisteredEnv) else 1)
