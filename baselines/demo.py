"""The main job, end to end on a CPU: games, demonstrations, SFT, multi-turn RL, evaluation on held-out games.

    make demo            or            python -m baselines.demo --seed 1

The setting is small enough for a policy that has never read a word. TextWorld's coin collector: five rooms in a row, a
coin in the last one, the actions that move the game on listed in the observation, eight turns where five are needed. A
move back is listed beside each move on, so the agent must remember where it came from. The policy is a two-layer
transformer with random weights and a tokenizer of its own; in the place of pretraining it first learns to predict
transcripts of random play, so that it knows the language of the games but not how to win them.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from baselines.command_line import exit_status, let_waiting_threads_sleep
from baselines.settings.run_folder import METRICS, RunFolderError, claim_folder, hold_folder, logged_lines
from baselines.training.signals import sigterm_raises

if TYPE_CHECKING:
    from baselines import sft

ENV = "textagent/TextWorldCoinCollector-v0"
KWARGS: dict[str, Any] = {"goal": "brief", "max_turns": "1.5x"}
MAX_ACTION_TOKENS = 8
"""Bound on the length of an action: the longest ones of these games, such as "go north", have a few tokens."""


console = Console()


@dataclass(frozen=True)
class Config:
    """Train a tiny agent on TextWorld games and compare it with random, SFT alone, and the oracle."""

    out: Path = Path("runs/demo")
    """Folder of the run. What a stopped run has finished is not done again."""
    seed: int = 0
    """Seed of the weights, the sampling and the order of the games."""
    level: int = 5
    """Number of rooms in a row."""
    train_tasks: int = 1000
    """Number of games to learn from: so many that few are played twice, and a policy cannot know them by heart."""
    test_tasks: int = 100
    """Number of held-out games, from the test split."""
    test_episodes: int = 4
    """Number of times that each held-out game is played by the random agent and by the policies."""
    random_episodes: int = 600
    """Number of transcripts of random play from which the policy learns the language of the games."""
    demos: int = 30
    """Number of games that the oracle demonstrates; reinforcement learning draws from all training games."""
    sft_epochs: float = 12.0
    """Number of passes over the demonstrations."""
    rl_iterations: int = 40
    """Number of iterations of GRPO."""


def make_env(level: int = 5, **kwargs: Any) -> gymnasium.Env[str, str]:
    """The environment of the demo, with the admissible actions listed."""
    from textagent_gym.wrappers import AdmissibleActionHints

    env: Any = gymnasium.make(ENV, level=level, **{**KWARGS, **kwargs})
    return AdmissibleActionHints(env, leave_out=env.unwrapped.idle_actions)


class ListedRandomAgent:
    """Draws uniformly from the actions that the observation lists: it sees all that the policies see."""

    name = "listed-random"  # `random` draws from all actions that can be typed, and a result that says so is checked.

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._random = np.random.default_rng(0)

    def reset(self, seed: int) -> None:
        """A new episode begins."""
        self._random = np.random.default_rng(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """One of the listed actions."""
        return str(self._random.choice(observation.rpartition("Possible actions: ")[2].split(", ")))


class RandomReader(ListedRandomAgent):
    """The same agent with one stream of draws for all episodes."""

    def __init__(self, env: gymnasium.Env[str, str], seed: int) -> None:
        super().__init__(env)
        super().reset(seed)

    def reset(self, seed: int) -> None:
        """A new episode begins; the stream of draws continues."""


def register() -> str:
    """Register the environment of the demo under an id of its own, by which the trainer makes it."""
    name = "textagent/Demo-v0"
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point="baselines.demo:make_env", disable_env_checker=True, order_enforce=False)
    return name


@contextmanager
def bar(what: str, total: int) -> Iterator[Any]:
    """A progress bar; the function it gives takes how much is done and, if wanted, what to show beside it."""
    columns = (TextColumn(f"{what:<34}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as progress:
        task = progress.add_task("", total=total, note="")
        yield lambda done, note="": progress.update(task, completed=done, note=note)


def _counted(done: Callable[[int], None]) -> Callable[[object], None]:
    """A function that tells `done` how often it has been called."""
    calls = itertools.count(1)
    return lambda _: done(next(calls))


def run(config: Config) -> Path:
    """Do everything; returns the page."""
    started = time.perf_counter()
    console.print(f"[bold]Demo[/bold] with seed {config.seed}; everything goes to {config.out}/")
    with sigterm_raises(), hold_folder(config.out):
        claim_folder(config.out, config)
        make_games(config)
        random_play, demos = write_random_play(config), write_demos(config)
        from transformers.utils import logging as transformers_logging

        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        sft = train_sft(config, read_language(config, random_play), demos)
        rl = train_rl(config, sft)
        page = evaluate(config, sft, rl)
    console.print(f"Done in {(time.perf_counter() - started) / 60:.1f} minutes. Look at {page}")
    return page


def make_games(config: Config) -> None:
    """Generate the games, on all processor cores; they stay in the user's cache."""
    tasks = make_env(config.level).unwrapped.tasks  # type: ignore[attr-defined]
    for split, count in (("train", config.train_tasks), ("test", config.test_tasks)):
        with bar(f"Making {split} games", count) as done:
            tasks.prepare(split, range(count), progress=done)


def write_random_play(config: Config) -> Path:
    """Transcripts of random play on the training games."""
    from textagent_gym.evaluation import play

    path = config.out / "random-play.jsonl"
    env, lines = make_env(config.level), []
    agent = RandomReader(env, config.seed)
    with bar("Playing at random", config.random_episodes) as done:
        for number in range(config.random_episodes):
            episode = play(env, agent, options={"task_index": number % config.train_tasks})
            lines.append(json.dumps({"messages": episode.messages, "task": episode.info["task"]}))
            done(number + 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_demos(config: Config) -> Path:
    """Demonstrations of the oracle on some training games, without instructions: the observation lists the actions."""
    from textagent_gym.evaluation import demonstrate

    path = config.out / "demos.jsonl"
    env, lines = make_env(config.level), []
    with bar("Collecting oracle demonstrations", config.demos) as done:
        for index in range(config.demos):
            lines.append(json.dumps(demonstrate(env, {"task_index": index}, instructions=False)))
            done(index + 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_language(config: Config, random_play: Path) -> Path:
    """A tiny policy with random weights that learns to predict transcripts of random play, word by word."""
    from baselines import sft
    from baselines.policy.models import make_tiny_policy

    transcripts = [json.loads(line)["messages"] for line in random_play.read_text(encoding="utf-8").splitlines()]
    texts = [message["content"] for messages in transcripts[: config.train_tasks] for message in messages]
    tiny = config.out / "tiny"
    make_tiny_policy(tiny, texts, hidden=64, layers=2, heads=2, seed=config.seed)
    settings = sft.Config(
        model=str(tiny),
        demos=random_play,
        out=config.out / "reader",
        every_token=True,
        epochs=1.0,
        batch_size=8,
        learning_rate=3e-3,
        seed=config.seed,
    )
    return fine_tune(settings, "Learning the language of the games")


def train_sft(config: Config, reader: Path, demos: Path) -> Path:
    """That policy, fine-tuned on the agent's words in the demonstrations."""
    from baselines import sft

    settings = sft.Config(
        model=str(reader),
        demos=demos,
        out=config.out / "sft",
        epochs=config.sft_epochs,
        batch_size=8,
        learning_rate=2e-3,
        seed=config.seed,
    )
    return fine_tune(settings, "Supervised fine-tuning")


def fine_tune(settings: sft.Config, what: str) -> Path:
    """Run TRL's trainer with a bar; not again where an earlier run has done it."""
    import datasets

    from baselines import sft

    if (settings.out / "model.safetensors").is_file():
        return settings.out
    datasets.disable_progress_bars()
    with bar(what, 1) as done:

        def show(metrics: dict[str, float]) -> None:
            done(metrics["step"] / max(1, metrics["steps"]), f"loss {metrics['loss']:.3f}" if "loss" in metrics else "")

        return sft.run(settings, show)


def train_rl(config: Config, sft: Path) -> Path:
    """The fine-tuned policy, improved by multi-turn GRPO on the same games."""
    from baselines import grpo

    policy = config.out / "grpo" / "policy"
    if policy.is_dir():
        return policy
    settings = grpo.Config(
        model=str(sft),
        out=config.out / "grpo",
        env=register(),
        set={"level": config.level, "reward_density": "dense", "num_tasks": config.train_tasks},
        iterations=config.rl_iterations,
        groups=16,
        group_size=8,
        slots=128,
        max_action_tokens=MAX_ACTION_TOKENS,
        learning_rate=3e-4,
        warmup=20,
        credit="process",
        discount=0.5,
        minibatches=4,
        microbatch=16_384,
        checkpoint_every=2,
        seed=config.seed,
    )
    with bar("Multi-turn GRPO", config.rl_iterations) as done:
        return grpo.run(
            settings, lambda metrics: done(metrics["iteration"], f"training success {metrics['success']:.2f}")
        )


def evaluate(config: Config, sft: Path, rl: Path) -> Path:
    """Random, SFT, RL and oracle on the held-out games: a table, curves, result files and a page."""
    from baselines.evaluation.evaluate import evaluate_policy
    from textagent_gym.evaluation import Row, Transcript, save, summarize, write_report
    from textagent_gym.evaluation import evaluate as play

    env = make_env(config.level, split="test")
    assert env.spec is not None
    rows, transcripts = [], []
    for agent, policy in (("random", None), ("SFT", sft), ("SFT + RL", rl), ("oracle", None)):
        episodes = 1 if agent == "oracle" else config.test_episodes
        total = config.test_tasks * episodes
        with bar(f"Evaluating {agent}", total) as done:
            if policy is None:
                result = play(
                    env,
                    ListedRandomAgent if agent == "random" else agent,
                    tasks=config.test_tasks,
                    episodes=episodes,
                    seed=config.seed,
                    progress=done,
                )
            else:
                result, collection = evaluate_policy(
                    str(policy),
                    env.spec,
                    {},
                    tasks=config.test_tasks,
                    episodes=episodes,
                    slots=128,
                    max_action_tokens=MAX_ACTION_TOKENS,
                    seed=config.seed,
                    name=agent,
                    progress=_counted(done),
                )
                for trajectory in collection.trajectories[: 6 * episodes : episodes]:
                    turns = tuple((turn.observation, turn.text) for turn in trajectory.turns)
                    ending = "solved" if trajectory.success else "not solved"
                    transcripts.append(
                        Transcript(f"{agent}, {trajectory.task}", ending, turns, trajectory.last_observation)
                    )
        save(result, config.out / f"{agent.replace(' ', '').lower()}.jsonl")
        rows.append(Row(agent, summarize(result.episodes)))
    table = Table(title=f"{config.test_tasks} held-out games", header_style="bold")
    for column in ("agent", "success [95% interval]", "turns", "invalid actions", "episodes"):
        table.add_column(column)
    for row in rows:
        s = row.summary
        table.add_row(row.agent, str(s.success), f"{s.turns.mean:.1f}", f"{s.invalid:.1%}", str(s.episodes))
    console.print(table)
    page = config.out / "report.html"
    notes = (
        f"Coin collector games of TextWorld: {config.level} rooms in a row, a coin in the last; half as many turns "
        "again as are needed.",
        "The observation lists the actions that move the game on; random draws from that list.",
        f"Two-layer transformer that began with random weights, seed {config.seed}: {config.random_episodes} "
        f"transcripts of random play, {config.demos} demonstrations, {config.rl_iterations} iterations of GRPO on "
        f"{config.train_tasks} games; {config.test_tasks} held-out games, {config.test_episodes} episodes each.",
    )
    images = [("Learning curves", plot_curves(config))]
    write_report(page, "A tiny agent learns TextWorld", rows, notes=notes, images=images, transcripts=transcripts)
    return page


def plot_curves(config: Config) -> Path:
    """SFT's loss and RL's success over training."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from baselines.sft import RECORD

    losses = [(m["iteration"], m["loss"]) for m in logged_lines(config.out / "sft" / RECORD / METRICS) if "loss" in m]
    steps = logged_lines(config.out / "grpo" / METRICS)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.plot(*zip(*losses, strict=True) if losses else ([], []))
    left.set(title="Supervised fine-tuning", xlabel="update", ylabel="loss of the agent's tokens", ylim=(0, None))
    right.plot([m["iteration"] for m in steps], [m["success"] for m in steps], label="success")
    right.plot([m["iteration"] for m in steps], [m["return"] for m in steps], label="return (dense)", alpha=0.6)
    right.set(title="Multi-turn GRPO, training games", xlabel="iteration", ylim=(0, 1))
    right.xaxis.get_major_locator().set_params(integer=True)
    right.legend()
    path = config.out / "curves.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def main() -> None:
    """Command line."""
    let_waiting_threads_sleep()
    config = tyro.cli(Config)
    try:
        run(config)
    except RunFolderError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt as stop:
        console.print(f"\nStopped. What is done lies in {config.out}/; the same command resumes from there.")
        raise SystemExit(exit_status(stop)) from None


if __name__ == "__main__":
    main()
