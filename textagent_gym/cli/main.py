"""`textagent-gym`: one sub-command a file. What a command needs is imported when it runs, so `--help` is quick."""

from __future__ import annotations

import sys
from typing import Annotated

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

_sub = tyro.conf.subcommand

Command = (
    Annotated[List, _sub("list", description=List.__doc__)]
    | Annotated[Info, _sub("info", description=Info.__doc__)]
    | Annotated[Play, _sub("play", description=Play.__doc__)]
    | Annotated[Demos, _sub("demos", description=Demos.__doc__)]
    | Annotated[Eval, _sub("eval", description=Eval.__doc__)]
    | Annotated[Verify, _sub("verify", description=Verify.__doc__)]
    | Annotated[Export, _sub("export", description=Export.__doc__)]
    | Annotated[Swe, _sub("swe", description=Swe.__doc__)]
    | Annotated[Data, _sub("data", description=Data.__doc__)]
    | Annotated[Cache, _sub("cache", description=Cache.__doc__)]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exits with 0, with 1 if it failed, 2 for wrong arguments, 130 for Ctrl-C."""
    import gymnasium
    from rich.console import Console

    from textagent_gym.errors import TextAgentError
    from textagent_gym.terminal import visible

    try:
        command = tyro.cli(
            Command,
            prog="textagent-gym",
            description="Text environments with measured difficulty for language agents.",
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
