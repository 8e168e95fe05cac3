"""What the executables of the trainers share: settings from recipes and the terminal, errors in one line, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
import tyro

from baselines.credit.method import Method
from baselines.settings.config import RolloutConfig, TrainerConfig
from baselines.settings.mixture import whole_id
from baselines.settings.recipe import RecipeError, read_recipe
from baselines.settings.run_folder import RunFolderError
from baselines.training.signals import TerminatedError
from textagent_gym.errors import InvalidOptionError, TextAgentError
from textagent_gym.knobs import read_settings
from textagent_gym.registration import full_id

LogFunction = Callable[[dict[str, Any]], None]
ConfigT = TypeVar("ConfigT")
_CONFIG_HELP = (
    "--config FILE reads settings from a recipe, a YAML file of names and values, or from the config.json of a run; "
    "settings on the command line come before those of the recipe."
)


def let_waiting_threads_sleep() -> None:
    """Make OpenMP's waiting threads yield their core instead of spinning; it must be called before torch is imported.

    Spinning makes small models many times slower on a machine that does anything else (30 updates on two busy cores:
    62 s, with this 4.5 s).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def train_with(method: Callable[[Any], Method]) -> Callable[..., Path]:
    """The function that trains with a method: it takes the configuration and, where wanted, a function that logs."""

    def run(config: Any, log: LogFunction | None = None) -> Path:
        """Train on `config.env` and return the folder of the policy."""
        from baselines.training.trainer import train

        return train(config, method(config), log)

    return run


def run_from_terminal(
    config: type[Any],
    run: Callable[[Any, LogFunction], Path],
    after_stop: str = "resumes from the last checkpoint",
) -> None:
    """Read a configuration from the command line, train with it and print a line of metrics per iteration.

    Args:
        config: dataclass of the configuration.
        run: function that trains, and returns the folder of the policy.
        after_stop: what the same command does after it was stopped.

    Raises:
        SystemExit: an error, as its message; 130 after Ctrl-C, and 143 after SIGTERM.
    """
    let_waiting_threads_sleep()
    from baselines.credit.advantages import GroupTooSmallError

    try:
        settings = read_config(config, sys.argv[1:], f"python -m baselines.{Path(sys.argv[0]).stem}")
        policy = run(settings, lambda metrics: print(json.dumps(metrics), flush=True))
    except (TextAgentError, RunFolderError, GroupTooSmallError, gymnasium.error.Error, OSError) as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt as stop:
        print(f"Stopped. The same command {after_stop}.")
        raise SystemExit(exit_status(stop)) from None
    print(f"Policy saved to {policy}")


def exit_status(stop: KeyboardInterrupt) -> int:
    """Exit status of a program that was stopped, as shells count: 128 and the number of the signal."""
    return 128 + (signal.SIGTERM if isinstance(stop, TerminatedError) else signal.SIGINT)


def read_config(config: type[ConfigT], arguments: Sequence[str], program: str | None = None) -> ConfigT:
    """A configuration from the words of a command line, and from the recipe that `--config` names.

    Args:
        config: dataclass of the configuration.
        arguments: words of the command line.
        program: command, for the help.

    Raises:
        InvalidOptionError: there is no such environment, or a setting has a value that does not exist.
        RecipeError: the recipe cannot be used.
        SystemExit: the help was asked for, or an argument does not exist.
    """
    first = ArgumentParser(prog=program, add_help=False, allow_abbrev=False)
    first.add_argument("--config")
    chosen, others = first.parse_known_args(arguments)
    if sum(word.partition("=")[0] == "--mixture" for word in others) > 1:
        raise InvalidOptionError("--mixture is given twice: name all environments after one --mixture")
    recipe = {} if chosen.config is None else read_recipe(chosen.config, config)
    # The environment's settings are merged one by one, so the recipe's are not a default that is replaced.
    of_env: dict[str, dict[str, Any]] = {name: recipe.pop(name) for name in ("set", "eval_set") if name in recipe}
    unset = {field.name: tyro.MISSING for field in fields(config) if _is_required(field)}  # type: ignore[arg-type]
    try:
        default = config(**{**unset, **recipe})
    except InvalidOptionError as error:
        raise RecipeError(f"{chosen.config}: {error}") from error
    settings = tyro.cli(
        config,
        prog=program,
        description=f"{config.__doc__}\n\n{_CONFIG_HELP}",
        args=others,
        default=default,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return _with_environment(settings, of_env) if isinstance(settings, RolloutConfig) else settings


def _is_required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _with_environment(config: Any, recipe: Mapping[str, dict[str, Any]]) -> Any:
    """The configuration with full ids, and with the texts of the environment's settings read as their knobs' types.

    Args:
        config: configuration whose `set` and `eval_set` are the texts of the command line.
        recipe: `set` and `eval_set` of the recipe.
    """
    env = full_id(config.env)
    given: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for name in ("set", "eval_set") if isinstance(config, TrainerConfig) else ("set",):
        given = {**given, **recipe.get(name, {})}
        typed = read_settings(env, getattr(config, name), given)
        given = {**given, **typed}
        merged[name] = {**recipe.get(name, {}), **typed}
    if isinstance(config, TrainerConfig):
        merged["mixture"] = [{**entry, "env": whole_id(entry["env"])} for entry in config.mixture]
    return replace(config, env=whole_id(config.env), **merged)
