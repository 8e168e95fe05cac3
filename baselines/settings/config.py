"""What every trainer can be asked for. It loads no torch, so that `--help` answers at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.constructors import PrimitiveConstructorSpec

from baselines.settings.mixture import Entry, components_of, parse_mixture, spell_mixture
from baselines.settings.schedule import difficulty_schedule, horizon_schedule
from textagent_gym.errors import InvalidOptionError
from textagent_gym.knobs import split_settings

if TYPE_CHECKING:
    from baselines.settings.dialogue import Dialogue
    from textagent_gym.vector import Wrap

Aggregation = Literal["token", "sequence", "constant"]
"""How the loss of the tokens becomes one number; see `credit.losses.aggregate`."""

PoolKind = Literal["in-process", "process", "thread", "ray"]
"""Where the environments of a rollout live; see `envs.pool.make_pool`."""

GeneratorKind = Literal["transformers", "vllm", "vllm-server"]
"""Back end that samples the actions; see `rollout.backend.make_generator`."""

Precision = Literal["float32", "bfloat16"]
"""Precision of a model's matrix products; its weights and the optimizer are of float32 in any case."""

PolicyLoss = Literal["clip", "gspo", "cispo", "episode"]
"""Loss of a sampled token; see `PolicyConfig.loss`."""

KLEstimator = Literal["k1", "k2", "k3"]
"""Estimator of the divergence from the first policy in the loss; see `credit.losses.kl_estimate`."""

Level = Literal["turn", "token"]
"""Unit that counts as a step of an episode; see `credit/rollouts.py`."""

TrackerKind = Literal["tensorboard", "wandb", "trackio"]
"""Places that metrics are logged to beside the run's folder."""

StateKind = Literal["world", "observation"]
"""What makes the states of two steps equal: the world's exact state (`TextEnv.state_key`), or the text that is read."""

LabelAgent = Literal["oracle", "expert"]
"""Who demonstrates and labels: the oracle knows everything, the expert only what it has read."""

AnswerFormatName = Literal["plain", "tag", "last-line", "react", "agentgym", "think", "call", "plan", "reflect"]
"""How the policy is told to answer, and where its action is found; see `textagent_gym.calls.FORMATS`."""

MemoryKind = Literal["whole", "window", "turn", "no-thoughts"]
"""What the policy reads again of earlier turns; see `rollout/memory.py`."""

_STALE_WEIGHT = 2.0
"""Largest weight of a token that older weights have sampled: one update changes few probabilities by that much, and a
weight without a bound would have a variance without one."""

HARMLESS = frozenset(
    {
        *("iterations", "checkpoint_every", "microbatch", "slots", "pool", "workers", "patience", "answer_seconds"),
        *("vllm_memory", "server_url", "gradient_checkpointing", "trackers"),
        *("eval_every", "eval_tasks", "eval_split", "eval_episodes", "eval_temperature", "eval_max_action_tokens"),
        "eval_set",
    }
)
"""Names of the settings that may change when a run resumes: they decide about time, memory and
what is evaluated, not about the curve."""


EnvSettings = Annotated[
    dict[str, Any],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[NAME=VALUE ...]",
        instance_from_str=split_settings,
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [f"{name}={setting}" for name, setting in value.items()],
        _action="append",  # `--set rooms=4 --set goal=brief` as on the command line of the suite.
    ),
]
"""Keyword arguments of an environment, on the command line `--set rooms=4 goal=brief`; `command_line.read_config` reads
the texts as the types of the knobs."""

Mixture = Annotated[
    list[Entry],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[ID=WEIGHT [NAME=VALUE ...] ...]",
        instance_from_str=parse_mixture,
        is_instance=lambda value: isinstance(value, list),
        str_from_instance=spell_mixture,
    ),
]
"""Environments with weights, on the command line as `--mixture ALFWorld=0.5 receptacles=5`."""


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """Settings of the episodes that a policy plays while it learns.

    Raises:
        InvalidOptionError: a value is out of its range.
    """

    model: str
    """Folder or hub name of the policy to begin with."""
    env: str
    """Id of the environment; any registered text environment works."""
    set: EnvSettings = field(default_factory=dict)
    """Keyword arguments of the environment, such as rooms=4; `textagent-gym info ID` shows all."""
    hints: bool = False
    """Whether every observation lists the admissible actions, also in evaluations."""
    out: Path
    """Folder of the run; a run that stopped there resumes."""
    slots: int = 64
    """Number of episodes played at once by each process."""
    pool: PoolKind = "in-process"
    """Place of the environments: "in-process" for cheap worlds, "process" for worlds that compute,
    "thread" for worlds that wait (for a container, a browser, a server), "ray" for the machines of a Ray cluster."""
    workers: int | None = None
    """Number of worker processes, threads or actors; by default one per core for processes, one per slot for threads,
    and actors for half of the cluster's CPUs, because evaluations have as many of their own."""
    patience: float = 0.05
    """Seconds for which a batch waits for slower environments of a pool.
    With `inf` it waits for all of them, which makes equal runs give equal results to the last bit."""
    answer_seconds: float = 600.0
    """Seconds after which an environment that has not answered counts as broken; without effect in process, where
    nothing can be interrupted."""
    generator: GeneratorKind = "transformers"
    """Back end that samples the actions: "transformers" anywhere, "vllm" for large models, which is installed apart, or
    "vllm-server" for vLLM on other devices."""
    vllm_memory: float = 0.4
    """Share of a GPU's memory that vLLM takes for its weights and its cache."""
    server_url: str = "http://localhost:8000"
    """Address of the server, with generator="vllm-server"; see docs/scale.md for how it is started."""
    temperature: float = 1.0
    """Sampling temperature; 0 takes the likeliest token."""
    max_action_tokens: int = 24
    """Largest number of tokens per action, the end token included."""
    system: str | None = None
    """System message of every conversation, before the environment's instructions.
    By default it is the one that the model was saved with."""
    seed: int = 0
    """Seed of the tasks, the sampling and the order of the updates."""

    def __post_init__(self) -> None:
        for name in ("slots", "max_action_tokens"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("temperature", "patience", "seed"):
            check_at_least(name, getattr(self, name), 0)
        if self.workers is not None:
            check_at_least("workers", self.workers, 1)
        check_above_zero("answer_seconds", self.answer_seconds)
        if not 0 < self.vllm_memory <= 1:
            raise InvalidOptionError(f"vllm_memory must be above 0 and at most 1, got {self.vllm_memory}")
        if not self.server_url.startswith(("http://", "https://")):
            raise InvalidOptionError(f"server_url must begin with http:// or https://, got {self.server_url}")

    @property
    def wrappers(self) -> tuple[Wrap, ...]:
        """Wrappers around every environment, from the inside out."""
        from textagent_gym.wrappers import AdmissibleActionHints

        return (AdmissibleActionHints,) if self.hints else ()


@dataclass(frozen=True, kw_only=True)
class TrainerConfig(RolloutConfig):
    """Settings that all methods of reinforcement learning share.

    Raises:
        InvalidOptionError: a value is out of its range.
    """

    iterations: int = 50
    """Number of times that episodes are collected and learned from; a finished run resumes if it is raised."""
    groups: int = 8
    """Number of different tasks per iteration, over all processes."""
    group_size: int = 8
    """Number of episodes per task."""
    learning_rate: float = 1e-4
    """Learning rate, constant after the warm-up. The default suits a tiny model; about 1e-6 suits a pretrained one."""
    warmup: int = 0
    """Number of updates over which the learning rate rises to its full value, as Adam's first steps are its boldest."""
    epochs: int = 1
    """Number of passes over each iteration's episodes."""
    minibatches: int = 2
    """Number of updates per pass."""
    staleness: int = 0
    """Number of updates, 0 or 1, that are missing from the weights which play an iteration's episodes. With 1, the next
    iteration is played while the update runs; its tokens are then weighted as by `max_sampling_weight`. 0 is exact."""
    microbatch: int = 8_192
    """Number of tokens that go through the model at once, in episodes (or their contexts) of nearly the same length; a
    longer one goes by itself. It bounds the memory and changes nothing else."""
    precision: Precision = "float32"
    """Precision of the matrix products of generation and of updates. The weights that are learned, the optimizer and
    the losses are of float32 in any case; vLLM in this process holds its copy of the weights in this precision."""
    gradient_checkpointing: bool = False
    """Whether the update computes what is inside of the layers twice instead of keeping it, which spares memory."""
    lora_rank: int = 0
    """Rank of low-rank adapters (LoRA), which alone are learned; the saved policy holds their sum with the weights.
    0 learns all weights."""
    lora_alpha: float = 32.0
    """Weight of the adapters, times their rank."""
    aggregation: Aggregation = "token"
    """Divisor that makes the loss of the tokens one number: "token" (number of tokens in the minibatch),
    "sequence" (number of tokens in each episode) or "constant" (`max_action_tokens`, for every episode)."""
    max_gradient: float = 1.0
    """Largest norm of a model's gradient; a longer one is scaled down to it."""
    format: AnswerFormatName | None = None
    """Format of the policy's answers, which its instructions state: "plain" (the answer is the action), or one that
    holds thoughts too. By default it is the one that the model was saved with, or "plain"."""
    memory: MemoryKind | None = None
    """What the policy reads again of earlier turns: "whole" (all), "window" (the last ones), "turn" (the last ones in
    short, in one message) or "no-thoughts" (all, without their thoughts).
    By default it is the one that the model was saved with, or "whole"."""
    memory_turns: int | None = None
    """Largest number of earlier turns that the memory "window" or "turn" shows.
    By default it is the one that the model was saved with, or 8."""
    trackers: tuple[TrackerKind, ...] = ()
    """Places that the metrics are logged to as well; each needs the package of that name."""
    checkpoint_every: int = 10
    """Number of iterations between two checkpoints."""
    eval_every: int = 0
    """Number of iterations between two evaluations on held-out tasks, the first one before training and the last one
    after it; 0 for none."""
    eval_tasks: int = 100
    """Number of tasks per evaluation, from the first one of the split; fewer where the split has fewer."""
    eval_split: str | None = None
    """Split of these tasks; by default "test", or another held-out one if there is no test split."""
    eval_episodes: int = 1
    """Number of episodes per task of an evaluation."""
    eval_temperature: float | None = None
    """Sampling temperature in evaluations; by default that of training."""
    eval_max_action_tokens: int | None = None
    """Largest number of tokens per action in evaluations; by default that of training."""
    eval_set: EnvSettings = field(default_factory=dict)
    """Keyword arguments of the environment that are different in evaluations, such as max_turns=50."""
    mixture: Mixture = field(default_factory=list)
    """Further environments and their weights; `env` has the weight 1. A group is always of one environment.
    Settings after an id are that environment's; in a recipe, an entry is a mapping with env, set and weight."""
    horizon: tuple[int, ...] = ()
    """Turn budgets of the episodes, from the first to the last; a single one is fixed. By default the environment's."""
    horizon_every: int | None = None
    """Number of iterations per turn budget of the horizon (ScalingInter-RL)."""
    horizon_success: float | None = None
    """Success rate from which on the next turn budget of the horizon holds."""
    difficulty: tuple[str, ...] = ()
    """Levels of difficulty, from easy to hard: axes on which tasks are measured and ranked (state_size, action_size,
    solution_length), or settings of `env` per level, such as rooms=2 rooms=4,objects=6."""
    difficulty_levels: int = 4
    """Number of levels into which ranked tasks are divided."""
    difficulty_tasks: int = 100
    """Largest number of tasks that are measured and played per environment, from the first of its split."""
    difficulty_every: int | None = None
    """Number of iterations per level of difficulty."""
    difficulty_success: float | None = None
    """Success rate from which on the next level of difficulty is played."""
    success_window: int = 5
    """Number of iterations whose mean success is compared with `horizon_success` or `difficulty_success`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one = ("groups", "group_size", "epochs", "minibatches", "microbatch", "checkpoint_every")
        of_evaluations = ("eval_tasks", "eval_episodes")
        of_curricula = ("difficulty_levels", "difficulty_tasks", "success_window")
        for name in (*at_least_one, *of_evaluations, *of_curricula):
            check_at_least(name, getattr(self, name), 1)
        for name in ("iterations", "learning_rate", "warmup", "eval_every", "lora_rank"):
            check_at_least(name, getattr(self, name), 0)
        for name, low in (("memory_turns", 1), ("eval_temperature", 0), ("eval_max_action_tokens", 1)):
            if getattr(self, name) is not None:
                check_at_least(name, getattr(self, name), low)
        if "split" in self.eval_set:
            raise InvalidOptionError(f"eval_set holds split={self.eval_set['split']}: give it as eval_split")
        if self.staleness not in (0, 1):
            raise InvalidOptionError(f"staleness must be 0 or 1, got {self.staleness}")
        check_above_zero("max_gradient", self.max_gradient)
        check_above_zero("lora_alpha", self.lora_alpha)
        components_of(self.mixture)
        horizon_schedule(self)
        difficulty_schedule(self)

    @property
    def wrappers(self) -> tuple[Wrap, ...]:
        """Wrappers around every environment, from the inside out."""
        return (*self.dialogue.wrappers, *super().wrappers)  # Hints stand under what is said of an answer, too.

    @property
    def dialogue(self) -> Dialogue:
        """Format of the policy's answers and memory of its conversations.

        Raises:
            InvalidOptionError: they do not go together.
        """
        from baselines.settings.dialogue import dialogue_of

        return dialogue_of(self.model, self.format, self.memory, self.memory_turns)

    def check_memory(self, memory: MemoryKind) -> None:
        """Raise `InvalidOptionError` if the loss cannot be computed with a memory; it always can by default."""


@dataclass(frozen=True, kw_only=True)
class PolicyConfig(TrainerConfig):
    """Settings of the policy's loss, which methods of policy gradients share; see `credit.losses.policy_losses`."""

    loss: PolicyLoss = "clip"
    """Loss of a sampled token: "clip" (PPO: each token's probability ratio, clipped), "gspo" (the episode's mean
    ratio, clipped; bounds of 3e-4 and 4e-4 suit it, and aggregation="sequence"), "cispo" (log-probability, weighted by
    the ratio up to 1 + clip_high), or "episode" (the product of the episode's ratios, clipped; for
    aggregation="sequence")."""
    clip_low: float = 0.2
    """Distance below 1 at which the probability ratio is clipped."""
    clip_high: float = 0.28
    """Distance above 1 at which the probability ratio is clipped."""
    kl: float = 0.0
    """Weight of the divergence from the first policy; 0 spares the memory that the first policy would take."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Place of the divergence: in the loss of each token, or in the reward of each step."""
    kl_estimator: KLEstimator = "k3"
    """Estimator of the divergence in the loss; in the reward it is always k1, whose sums are unbiased."""
    max_sampling_weight: float | None = None
    """Largest weight of a token whose probability differs between the generator and the trainer (truncated importance
    sampling). By default the generator is trusted, which spares a pass over the episodes; with a staleness it is 2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("clip_low", "clip_high", "kl"):
            check_at_least(name, getattr(self, name), 0)
        if self.max_sampling_weight is not None:
            check_above_zero("max_sampling_weight", self.max_sampling_weight)

    def check_memory(self, memory: MemoryKind) -> None:
        """See `TrainerConfig`; an episode's ratio is computed over one row, which holds the whole episode."""
        if self.loss in ("gspo", "episode") and memory != "whole":
            raise InvalidOptionError(
                f"loss={self.loss!r} has one ratio per episode, so it needs memory='whole', got memory={memory!r}"
            )

    @property
    def reward_kl(self) -> float:
        """Weight of the divergence in the rewards."""
        return self.kl if self.kl_in == "reward" else 0.0

    @property
    def reference(self) -> bool:
        """Whether the first policy is needed."""
        return self.kl > 0

    @property
    def rescored(self) -> bool:
        """Whether the trainer computes the sampled tokens' log-probabilities itself."""
        return self.largest_weight is not None

    @property
    def largest_weight(self) -> float | None:
        """Largest weight of a token by its probability; `None` where all weights are 1."""
        return _STALE_WEIGHT if self.staleness and self.max_sampling_weight is None else self.max_sampling_weight


def check_at_least(name: str, value: float, low: int) -> None:
    """Refuse a setting that is too small.

    Raises:
        InvalidOptionError: the value is below `low`, or not a number.
    """
    if not value >= low:
        raise InvalidOptionError(f"{name} must be at least {low}, got {value}")


def check_above_zero(name: str, value: float) -> None:
    """Refuse a setting that is not positive.

    Raises:
        InvalidOptionError: the value is 0 or less, or not a number.
    """
    if not value > 0:
        raise InvalidOptionError(f"{name} must be above 0, got {value}")
