"""Rollouts and whole iterations of GRPO: this suite's trainer beside TRL's, with equal work.

    python -m benchmarks.trainers --rounds 3
    python -m benchmarks.trainers --plot costs.svg      this suite alone: episodes, turns and model size

Where vLLM is installed (on a CPU `make vllm` brings it, and `.venv-vllm/bin/python` runs this), both trainers generate
with it too, and TRL with vLLM is what the ratios are taken to. Its linear layers are left unpacked on a CPU, without
which TRL cannot hand weights over, and TRL does not score the episodes again, as this suite does not.

Both trainers have the same tiny model with random weights, the same games (TextWorld's coin collector), the same
contexts and the same bounds on turns and tokens. The reward is the length of the actions, so that every episode is
learned from; the learning rate is so small that the policy, and with it the work, stays the same. TRL does not pass
the last action to the environment, which spares it one step per episode.

Times are CPU seconds of one thread, so that other programs on the machine hardly matter.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium
import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table
from transformers import PreTrainedTokenizerFast

from baselines import demo, grpo
from baselines.policy.models import context_length, load_policy, make_tiny_policy
from baselines.settings.config import GeneratorKind
from baselines.training import trainer
from baselines.training.update import update

ENV = "benchmarks/Coins-v0"
LEVEL, TASKS = 5, 8
GROUP_SIZE = 8
MICROBATCH_EPISODES, MICROBATCH_TOKENS = 16, 8_192  # Of TRL, and here: about the same memory.
LEARNING_RATE = 1e-7
END_SCALE = 5.0
"""Factor on the end token's embedding: actions of random weights end after different numbers of tokens, as those of
trained ones do, and not all at the bound."""


@dataclass(frozen=True)
class Config:
    """How much is compared."""

    rounds: int = 2
    """Number of times that both trainers run, one after the other."""
    iterations: int = 3
    """Number of iterations per run; the first is a warm-up and not counted."""
    groups: int = 8
    """Number of games per iteration, each played by 8 episodes."""
    turns: int = 8
    """Number of turns per episode."""
    action_tokens: int = 16
    """Largest number of tokens per action."""
    hidden: int = 64
    """Width of the model."""
    layers: int = 2
    """Number of layers of the model."""
    plot: Path | None = None
    """File of the costs of this suite's iterations, drawn instead of the comparison; its ending decides the format."""

    @property
    def episodes(self) -> int:
        """Number of episodes per iteration."""
        return self.groups * GROUP_SIZE


@dataclass(frozen=True)
class Iteration:
    """What one iteration did, and its times in CPU seconds; `environment` is a part of `rollout`."""

    rollout: float
    environment: float
    update: float
    turns: int
    tokens: int
    updated: int

    @property
    def generation(self) -> float:
        """The rest of the rollout: the model, and what turns texts into tokens."""
        return self.rollout - self.environment


class Coins(gymnasium.Wrapper[str, str, str, str]):
    """The game, with the number of characters of an action as its reward, and a clock."""

    seconds = 0.0  # Of all environments since they were last read.

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        started = time.process_time()
        answer = super().reset(**kwargs)
        Coins.seconds += time.process_time() - started
        return answer

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        started = time.process_time()
        observation, _, terminated, truncated, info = super().step(action)
        Coins.seconds += time.process_time() - started
        return observation, float(len(action)), terminated, truncated, info

    @classmethod
    def read_clock(cls) -> float:
        """CPU seconds that all environments took since the last call."""
        seconds, cls.seconds = cls.seconds, 0.0
        return seconds


def make_env(turns: int) -> gymnasium.Env[str, str]:
    """One environment."""
    return Coins(demo.make_env(LEVEL, num_tasks=TASKS, max_turns=turns))


class Act:
    """The same environment as TRL wants it: an object with a tool."""

    def __init__(self, turns: int) -> None:
        self._env = make_env(turns)
        self._reward = 0.0

    def reset(self, task: int, **_: Any) -> str:
        """Begin a game; returns its first observation."""
        self._reward = 0.0
        return self._env.reset(options={"task_index": task})[0]

    def act(self, command: str) -> str:
        """Act in the game.

        Args:
            command: what to do.
        """
        observation, reward, _, _, _ = self._env.step(command)
        self._reward += float(reward)
        return observation

    def get_reward(self) -> float:
        """Sum of the rewards."""
        return self._reward


class EverythingIsACall(PreTrainedTokenizerFast):
    """A tokenizer whose model calls the tool with all that it says, as an action is here."""

    def parse_response(self, response: Any, *_: Any, **__: Any) -> dict[str, Any]:
        """The message with its tool call."""
        arguments = {"command": str(self.decode(response, skip_special_tokens=True)).strip()}
        call = {"type": "function", "function": {"name": "act", "arguments": arguments}}
        return {"role": "assistant", "content": "", "tool_calls": [call]}


def make_policy(folder: Path, config: Config) -> None:
    """A tiny policy whose actions have different lengths."""
    env = make_env(config.turns)
    texts = [env.reset(options={"task_index": index})[0] for index in range(TASKS)]
    make_tiny_policy(folder, texts, hidden=config.hidden, layers=config.layers, heads=max(2, config.hidden // 32))
    model, tokenizer = load_policy(str(folder))
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.eos_token_id] *= END_SCALE
    model.save_pretrained(folder)


def run_ours(config: Config, policy: Path, out: Path, *, generator: GeneratorKind = "transformers") -> list[Iteration]:
    """The iterations of this suite's GRPO."""
    iterations = []
    started = collected = time.process_time()

    def timed_update(*args: Any, **kwargs: Any) -> dict[str, float]:
        nonlocal collected
        collected = time.process_time()
        return update(*args, **kwargs)

    def log(metrics: dict[str, Any]) -> None:
        nonlocal started
        ended = time.process_time()
        iterations.append(
            Iteration(
                collected - started,
                Coins.read_clock(),
                ended - collected,
                metrics["env_steps"],
                metrics["action_tokens"],
                int(metrics["useful_groups"]) * GROUP_SIZE,
            )
        )
        started = ended

    settings = grpo.Config(
        model=str(policy),
        env=ENV,
        set={"turns": config.turns},
        out=out,
        iterations=config.iterations,
        groups=config.groups,
        group_size=GROUP_SIZE,
        slots=config.episodes,
        generator=generator,
        max_action_tokens=config.action_tokens,
        learning_rate=LEARNING_RATE,
        minibatches=1,
        microbatch=MICROBATCH_TOKENS,
        checkpoint_every=config.iterations,
    )
    Coins.read_clock()
    with patch.object(trainer, "update", timed_update):
        grpo.run(settings, log)
    return iterations


def run_trl(config: Config, policy: Path, out: Path, *, vllm: bool = False) -> list[Iteration]:
    """The iterations of TRL's GRPO, which generates with transformers or with vLLM in its process."""
    import datasets
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    if vllm:
        import vllm._custom_ops as operators

        operators._supports_onednn = False
    iterations: list[Iteration] = []
    notes: dict[str, Any] = {}

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            started = time.process_time()
            outputs = super()._generate_and_score_completions(inputs)
            sampled = outputs["tool_mask"] * outputs["completion_mask"]
            begins = torch.diff(sampled, dim=1, prepend=torch.zeros_like(sampled[:, :1])) == 1
            notes.update(rollout=time.process_time() - started, environment=Coins.read_clock())
            notes.update(turns=int(begins.sum()), tokens=int(sampled.sum()))
            notes["updated"] = int((outputs["advantages"].abs() > 1e-8).sum())
            return outputs

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            notes["started"] = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            total = time.process_time() - notes.pop("started")
            iterations.append(Iteration(update=total - notes["rollout"], **notes))

    model, _ = load_policy(str(policy))
    tokenizer = EverythingIsACall.from_pretrained(policy)
    tokenizer.response_template = "everything"  # TRL wants one; it is not read.
    # A tool speaks as the user does, so that the contexts of both trainers have the same ids.
    tokenizer.chat_template = (
        "{% for m in messages %}<|{{ 'user' if m.role == 'tool' else m.role }}|>{{ m.content }}"
        "{% for call in m.tool_calls or [] %}{{ call.function.name }} {{ call.function.arguments }}{% endfor %}"
        "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    instructions = make_env(config.turns).reset(seed=0)[1]["instructions"]
    prompt = [{"role": "system", "content": instructions}, {"role": "user", "content": ""}]
    batches = config.episodes // MICROBATCH_EPISODES
    arguments = GRPOConfig(
        output_dir=str(out),
        max_steps=config.iterations,
        per_device_train_batch_size=MICROBATCH_EPISODES,
        gradient_accumulation_steps=batches,
        steps_per_generation=batches,
        num_generations=GROUP_SIZE,
        max_completion_length=context_length(model),
        generation_kwargs={"max_tokens" if vllm else "max_new_tokens": config.action_tokens},
        use_vllm=vllm,
        vllm_importance_sampling_correction=False,
        max_tool_calling_iterations=config.turns - 1,
        temperature=1.0,
        top_k=0,
        beta=0.0,
        loss_type="bnpo",
        learning_rate=LEARNING_RATE,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
    )
    timed = Timed(
        model=model,
        args=arguments,
        train_dataset=datasets.Dataset.from_list(
            [{"prompt": prompt, "task": number % TASKS} for number in range(config.groups)]
        ),
        processing_class=tokenizer,
        environment_factory=lambda: Act(config.turns),
        callbacks=[Clock()],
    )
    Coins.read_clock()
    timed.train()
    return iterations


def draw(config: Config, home: Path, file: Path) -> None:
    """What an iteration costs with more episodes, more turns, and a larger model."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    base = replace(config, groups=4, iterations=2)
    panels = {
        "episodes": {str(groups * GROUP_SIZE): replace(base, groups=groups) for groups in (2, 4, 8)},
        "turns per episode": {str(turns): replace(base, turns=turns) for turns in (4, 8, 16)},
        "weights": {
            "0.2M": base,
            "3.5M": replace(base, hidden=192, layers=6),
            "50M": replace(base, hidden=512, layers=12, iterations=1),  # Of minutes: no warm-up matters.
        },
    }
    costs: dict[Config, Iteration] = {}
    for case in dict.fromkeys(case for cases in panels.values() for case in cases.values()):
        folder = home / str(len(costs))
        make_policy(folder / "policy", case)
        costs[case] = run_ours(case, folder / "policy", folder / "out")[-1]
    figure, axes = plt.subplots(1, len(panels), figsize=(10, 3.2), layout="constrained")
    for panel, (name, cases) in zip(axes, panels.items(), strict=True):
        seconds = np.array([costs[case].rollout + costs[case].update for case in cases.values()])
        # Models differ too much for one axis of seconds.
        unit, label = (seconds, "share of an iteration") if name == "weights" else (1.0, "CPU seconds of an iteration")
        bottom = np.zeros(len(cases))
        for part in ("generation", "environment", "update"):
            heights = np.array([getattr(costs[case], part) for case in cases.values()]) / unit
            bars = panel.bar(list(cases), heights, bottom=bottom, label=part)
            bottom += heights
        panel.bar_label(bars, [f"{each:.3g} s" for each in seconds])
        panel.margins(y=0.12)
        panel.set(xlabel=name, ylabel=label)
    axes[0].legend()
    figure.savefig(file)
    plt.close(figure)


def median(iterations: list[Iteration], field: str) -> float:
    """Median of one measurement."""
    return float(np.median([getattr(iteration, field) for iteration in iterations]))


def alone(run: Callable[..., list[Iteration]], config: Config, policy: Path, out: Path) -> list[Iteration]:
    """The counted iterations of one trainer, in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=prepare) as process:
        return process.submit(run, config, policy, out).result()[1:]


def prepare() -> None:
    """Let this process compute with one thread, and know the environment."""
    os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="ERROR")
    os.environ.update(OMP_NUM_THREADS="1", VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_CPU_KVCACHE_SPACE="1")
    torch.set_num_threads(1)
    gymnasium.register(ENV, entry_point=make_env, disable_env_checker=True, order_enforce=False)


def main(config: Config) -> None:
    """Print times, work and ratios; a row per trainer, from the medians of all rounds. Or draw the costs."""
    prepare()
    if config.plot is not None:
        with tempfile.TemporaryDirectory() as home:
            draw(config, Path(home), config.plot)
        return
    trainers: dict[str, Callable[..., list[Iteration]]] = {"TRL, transformers": run_trl, "textagent-gym": run_ours}
    if importlib.util.find_spec("vllm") is not None:
        ours = partial(run_ours, generator="vllm")
        trainers = {"TRL, vLLM": partial(run_trl, vllm=True), **trainers, "textagent-gym, vLLM": ours}
    runs: dict[str, list[Iteration]] = {name: [] for name in trainers}
    console = Console()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        make_policy(folder / "policy", config)
        for number in range(config.rounds):
            for order, (name, run) in enumerate(trainers.items()):
                runs[name] += alone(run, config, folder / "policy", folder / f"{number}-{order}")
    title = f"{config.episodes} episodes per iteration, CPU seconds of one thread (load {os.getloadavg()[0]:.1f})"
    table = Table(title=title, header_style="bold")
    columns = ("trainer", "turns", "sampled tokens", "updated episodes", "generation s", "environment s", "update s")
    for column in (*columns, "iteration s", "episodes/s of rollout", "ratio of rollout", "ratio of iteration"):
        table.add_column(column)
    basis: tuple[float, float] | None = None
    for name, iterations in runs.items():
        rollout, environment, update = (median(iterations, part) for part in ("rollout", "environment", "update"))
        basis = basis or (rollout, rollout + update)
        table.add_row(
            name,
            *(f"{median(iterations, part):,.0f}" for part in ("turns", "tokens", "updated")),
            *(f"{part:.2f}" for part in (rollout - environment, environment, update, rollout + update)),
            f"{config.episodes / rollout:.1f}",
            f"{basis[0] / rollout:.2f}",
            f"{basis[1] / (rollout + update):.2f}",
        )
    console.print(table)


if __name__ == "__main__":
    main(tyro.cli(Config))
