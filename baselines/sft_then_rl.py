"""Supervised fine-tuning, then reinforcement learning, at a fixed budget: what is best spent on which?

    python -m baselines.sft_then_rl grpo --budget 2000 --sft-fraction 0.6 --demonstration-cost 10 --sft.epochs 10 \\
        --model runs/tiny --out runs/budget --env textagent/TextWorld-w2-o3-q4-v0 \\
        --set num_tasks=200 reward_density=dense

The experiment of Wang and Ammanabrolu, 2025 (arXiv 2510.01132), on the ratio of SFT to RL. With a budget B, the
fraction f that is for SFT, and the costs of a demonstration and of an episode:

1. record floor(f B / demonstration_cost) demonstrations of the world's oracle or expert, or take as many of a file;
2. fine-tune the policy on them (`sft.py`);
3. improve it with a method of reinforcement learning, for as many iterations as (1 - f) B pays for: each costs
   groups * group_size * episode_cost.

With f = 0 it is the method alone, with f = 1 SFT alone. What is left over, less than a demonstration and an iteration,
is not spent. The unit of the budget is the user's: episodes, tokens, seconds or money.

A run is a folder:

    config.json          what was asked for
    demos.jsonl          the demonstrations, unless a file was given
    sft/                 the fine-tuned policy, as `sft.py` would write it; it appears as a whole
    rl/                  the run of the method, as the method alone would write it; without an iteration if f = 1
    metrics.jsonl        one line for SFT and one per iteration, each with what has been `spent`
    log.jsonl            starts and stops, with versions, git revision and cause
    trajectories.jsonl   some demonstrations and episodes to read: those of both parts, when the run stops
    index.html           all of this as a page
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from baselines import gigpo, grpo, ppo, reinforce_pp, rloo
from baselines.command_line import LogFunction, run_from_terminal
from baselines.credit.method import Method
from baselines.settings.config import HARMLESS, LabelAgent, check_above_zero
from baselines.settings.run_folder import METRICS, claim_folder, hold_folder, logged_lines, write_whole
from baselines.sft import RECORD, FineTuningConfig, read_demos
from baselines.sft import Config as SftConfig
from baselines.sft import run as fine_tune
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError

if TYPE_CHECKING:
    import gymnasium

    from baselines.policy.chat import ChatFormat


@dataclass(frozen=True, kw_only=True)
class BudgetConfig:
    """Settings of the budget, beside those of the method of reinforcement learning."""

    budget: float
    """Budget of the run, in the unit of the costs."""
    sft_fraction: float
    """Fraction of the budget that is for demonstrations, from 0 (reinforcement learning alone) to 1 (SFT alone)."""
    demonstration_cost: float
    """Cost of a demonstration."""
    episode_cost: float = 1.0
    """Cost of an episode of reinforcement learning."""
    demos: Path | None = None
    """JSONL file with demonstrations, of which the first are taken; by default they are recorded."""
    agent: LabelAgent = "oracle"
    """Expert that is recorded: "oracle" (knows everything) or "expert" (knows only what it has read)."""
    sft: FineTuningConfig = field(default_factory=FineTuningConfig)
    """Settings of the fine-tuning."""
    iterations: tyro.conf.Suppress[int] = 0
    """Not read: the budget decides."""


@dataclass(frozen=True, kw_only=True)
class GRPOConfig(BudgetConfig, grpo.Config):
    """SFT, then GRPO, at a fixed budget."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig(BudgetConfig, ppo.Config):
    """SFT, then PPO, at a fixed budget."""


@dataclass(frozen=True, kw_only=True)
class GiGPOConfig(BudgetConfig, gigpo.Config):
    """SFT, then GiGPO, at a fixed budget."""


@dataclass(frozen=True, kw_only=True)
class RLOOConfig(BudgetConfig, rloo.Config):
    """SFT, then RLOO, at a fixed budget."""


@dataclass(frozen=True, kw_only=True)
class ReinforcePPConfig(BudgetConfig, reinforce_pp.Config):
    """SFT, then REINFORCE++, at a fixed budget."""


Config = GRPOConfig | GiGPOConfig | PPOConfig | RLOOConfig | ReinforcePPConfig

CONFIGS: dict[str, type[Config]] = {
    "grpo": GRPOConfig,
    "gigpo": GiGPOConfig,
    "ppo": PPOConfig,
    "rloo": RLOOConfig,
    "reinforce_pp": ReinforcePPConfig,
}
"""The methods by the word that names them on the command line."""

_METHODS: dict[type[Config], Callable[[Any], Method]] = {
    GRPOConfig: grpo.method,
    GiGPOConfig: gigpo.method,
    PPOConfig: ppo.method,
    RLOOConfig: rloo.method,
    ReinforcePPConfig: reinforce_pp.method,
}


@dataclass(frozen=True, slots=True)
class Purchase:
    """What a budget buys.

    Attributes:
        demonstrations: number of demonstrations.
        iterations: number of iterations of reinforcement learning.
        episodes: number of episodes per iteration.
    """

    demonstrations: int
    iterations: int
    episodes: int


def purchase(config: Config) -> Purchase:
    """What the budget buys, computed with the decimals as they were written.

    Raises:
        InvalidOptionError: a setting is out of range, a part of the budget above 0 does not pay for a demonstration or
            for an iteration, or the method plays a number of episodes that is not known beforehand.
    """
    for name in ("budget", "demonstration_cost", "episode_cost"):
        check_above_zero(name, getattr(config, name))
        if not math.isfinite(getattr(config, name)):
            raise InvalidOptionError(f"{name} must be finite")
    if not 0 <= config.sft_fraction <= 1:
        raise InvalidOptionError(f"sft_fraction must be from 0 to 1, got {config.sft_fraction}")
    budget, fraction = _exact(config.budget), _exact(config.sft_fraction)
    episodes = config.groups * config.group_size
    demonstrations = math.floor(fraction * budget / _exact(config.demonstration_cost))
    iterations = math.floor((1 - fraction) * budget / (episodes * _exact(config.episode_cost)))
    if fraction > 0 and not demonstrations:
        raise InvalidOptionError(
            f"budget={config.budget:g} with sft_fraction={config.sft_fraction:g} does not pay for one demonstration of "
            f"demonstration_cost={config.demonstration_cost:g}"
        )
    if fraction < 1 and not iterations:
        raise InvalidOptionError(
            f"budget={config.budget:g} with sft_fraction={config.sft_fraction:g} does not pay for one iteration of "
            f"{episodes} episodes of episode_cost={config.episode_cost:g}; lower groups or group_size"
        )
    if isinstance(config, GRPOConfig) and config.resample:
        raise InvalidOptionError(f"resample={config.resample} would play more episodes than the budget pays for")
    return Purchase(demonstrations, iterations, episodes)


def run(config: Config, log: LogFunction | None = None) -> Path:
    """Fine-tune, then train; returns the folder of the policy.

    Args:
        config: settings of the run.
        log: called with the metrics of each update of SFT and of each iteration of the method.

    Raises:
        InvalidOptionError: the budget does not buy what it is for, it buys more demonstrations than there are, or the
            policy converses otherwise than demonstrations do.
        GroupTooSmallError: `group_size` is smaller than the method needs.
        DemonstrationError: no demonstration can be learned from.
        RunFolderError: the folder holds another run, or is in use.
    """
    from accelerate import PartialState

    from baselines.envs.pool import make_text_env
    from baselines.policy.chat import chat_of
    from baselines.policy.models import load_policy
    from baselines.rollout.backend import check_server
    from baselines.settings.dialogue import check_plain
    from baselines.training.trainer import check_run, train

    bought = purchase(config)
    method = _METHODS[type(config)](config)
    if PartialState().num_processes > 1:
        raise InvalidOptionError("sft_then_rl runs in one process; start it without accelerate launch")
    if bought.demonstrations:
        check_plain(config.dialogue)
    rl: Any = replace(config, out=config.out / "rl", iterations=bought.iterations)
    check_run(rl, method)
    if not (rl.out / "policy").is_dir():
        check_server(config.generator, config.server_url)
    with ExitStack() as stack:
        env = stack.enter_context(closing(make_text_env(config.env, config.set, config.wrappers)))
        _check_demonstrations(config, env, bought.demonstrations)
        stack.enter_context(hold_folder(config.out))
        claim_folder(config.out, config, HARMLESS, write=False)
        _, tokenizer = load_policy(config.model)
        # Only now: a start that fails, because there is no such model, leaves no folder that refuses the next one.
        claim_folder(config.out, config, HARMLESS)
        stack.enter_context(_recorded(config))
        if bought.demonstrations:
            demos = config.demos
            if demos is None:
                chat = chat_of(config.model, tokenizer, config.system)
                demos = _record(config, env, chat, bought.demonstrations)
                rl = replace(rl, system=chat.system)  # It is played as it is fine-tuned.
            rl = replace(rl, model=str(_fine_tune(config, demos, bought.demonstrations, log)))
        _write_metrics(config, bought)

        def report(metrics: dict[str, Any]) -> None:
            lines = _write_metrics(config, bought)
            if log is not None:
                log(metrics if "evaluation" in metrics else lines[-1])

        policy = train(rl, method, report)
        _write_metrics(config, bought)
        return policy


@contextmanager
def _recorded(config: Config) -> Iterator[None]:
    """Log the start of a run and how it stopped, and show then what both parts have kept."""
    from accelerate import PartialState

    from baselines.training.run_log import TRAJECTORIES, logged

    rl = config.out / "rl"
    with logged(config.out, lambda: len(logged_lines(rl / METRICS)), device=str(PartialState().device)):
        try:
            yield
        finally:
            kept = [line for part in (config.out / "sft" / RECORD, rl) for line in logged_lines(part / TRAJECTORIES)]
            with suppress(OSError):  # What stops the run is what must be told.
                write_whole(config.out / TRAJECTORIES, "".join(json.dumps(line) + "\n" for line in kept))


def _check_demonstrations(config: Config, env: gymnasium.Env[str, str], count: int) -> None:
    """Refuse what cannot be demonstrated, before anything is played.

    Raises:
        InvalidOptionError: the world has no such expert, or there are fewer tasks, or lines of the file, than are paid
            for; or a system message is set for demonstrations that have their own.
    """
    from textagent_gym.agents import make_agent
    from textagent_gym.evaluation import count_tasks

    if not count:
        return
    if config.demos is None:
        make_agent(config.agent, env)
        known, what = count_tasks(env, count), f"tasks of {config.env}"
    else:
        if config.system is not None:
            raise InvalidOptionError(f"system cannot be set: the conversations in {config.demos} have their own")
        known, what = len(read_demos(config.demos, count)), f"conversations in {config.demos}"
    if known < count:
        raise InvalidOptionError(f"budget={config.budget:g} pays for {count} demonstrations; there are {known} {what}")


def _record(config: Config, env: gymnasium.Env[str, str], chat: ChatFormat, count: int) -> Path:
    """Demonstrations of the first tasks. One that fails is paid for too, but it is not learned from."""
    from textagent_gym.evaluation import demonstrate

    path = config.out / "demos.jsonl"
    if path.is_file():
        return path
    part = path.with_suffix(".part")
    text = part.read_text(encoding="utf-8") if part.is_file() else ""
    write_whole(part, text[: text.rfind("\n") + 1])  # A kill may have left half a line.
    with open(part, "a", encoding="utf-8") as file:
        for index in range(text.count("\n"), count):
            try:
                demo = demonstrate(env, {"task_index": index}, config.agent, instructions=chat.instructed)
                demo["messages"] = _with_system(demo["messages"], chat.system)
            except PlanningBudgetError:
                demo = {"success": False}
            file.write(json.dumps(demo) + "\n")
            file.flush()
    played = part.read_text(encoding="utf-8").splitlines(keepends=True)
    write_whole(path, "".join(line for line in played if json.loads(line)["success"]))
    part.unlink()
    return path


def _with_system(messages: list[dict[str, str]], system: str) -> list[dict[str, str]]:
    """A conversation that begins with a policy's system message, before the environment's instructions."""
    if not system:
        return messages
    instructions = [message["content"] for message in messages if message["role"] == "system"]
    rest = [message for message in messages if message["role"] != "system"]
    return [{"role": "system", "content": "\n\n".join([system, *instructions])}, *rest]


def _fine_tune(config: Config, demos: Path, count: int, log: LogFunction | None) -> Path:
    """The policy, fine-tuned on demonstrations; not again where an earlier start has done it."""
    from baselines.training.checkpoint import replace_folder

    folder = config.out / "sft"

    def write(fresh: Path) -> None:
        def report(metrics: dict[str, Any]) -> None:
            if log is not None:
                log({"stage": "sft", **metrics})

        settings = SftConfig(
            model=config.model,
            demos=demos,
            out=fresh,
            max_length=None,
            max_demos=count,
            seed=config.seed,
            **asdict(config.sft),
        )
        fine_tune(settings, report)

    if not folder.is_dir():
        replace_folder(folder, write)
    return folder


def _write_metrics(config: Config, bought: Purchase) -> list[dict[str, Any]]:
    """The metrics of both parts, with what has been spent after each line."""
    out = config.out
    spent = bought.demonstrations * config.demonstration_cost
    metrics: list[dict[str, Any]] = []
    if bought.demonstrations:
        learned = len(read_demos(config.demos or out / "demos.jsonl", bought.demonstrations))
        metrics.append(
            {
                "stage": "sft",
                "iteration": 0,
                "demonstrations": bought.demonstrations,
                "learned_from": learned,
                "spent": spent,
            }
        )
    for iteration in logged_lines(out / "rl" / METRICS):
        spent += iteration["episodes"] * config.episode_cost
        metrics.append({"stage": "rl", **iteration, "spent": spent})
    write_whole(out / METRICS, "".join(json.dumps(line) + "\n" for line in metrics))
    return metrics


def _exact(number: float) -> Fraction:
    """A number as it was written: 0.3 is three tenths."""
    return Fraction(str(number))


def run_method_from_terminal() -> None:
    """Run the method that the first word of the command line names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in CONFIGS:
        raise SystemExit(f"usage: python -m baselines.sft_then_rl {{{','.join(CONFIGS)}}} [OPTIONS]")
    del sys.argv[1]
    run_from_terminal(CONFIGS[name], run)


if __name__ == "__main__":
    run_method_from_terminal()
