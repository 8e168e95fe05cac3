"""The one contract that every world fulfils.

A domain writes two hooks, `_begin` (a task) and `_act` (on a string); `TextEnv` does the rest: seeding, the choice of
tasks, the turn budget, reward density and shaping, `info`, snapshots, and the order of calls.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, NotRequired, Protocol, TypedDict

import gymnasium
from gymnasium.error import ResetNeeded

from textagent_gym.complexity import Complexity
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError
from textagent_gym.rewards import RewardSchedule, parse_density, potential, shaping_reward
from textagent_gym.spaces import UnicodeText, fit
from textagent_gym.tasks import Task, TaskSource, TaskT
from textagent_gym.terminal import visible

OPTIONAL_INFOS = ("admissible_actions", "oracle_action")
"""What `infos=(...)` may ask for."""

ObservationFormat = Literal["plain", "upstream"]
_UNKNOWN_LENGTH_TURNS = 100  # Turn budget where a multiple of the solution length was asked for and no plan is known.
_ENDLESS = 2**31 - 1  # Tasks of an endless split are addressed by indices below this.


class StepInfo(TypedDict):
    """The `info` of `reset` and `step`: the same keys in every domain.

    Attributes:
        task: the task's id.
        task_type: what sort of task it is; "" where all are of one sort.
        turn: actions taken so far.
        success: the goal has been reached.
        progress: share of the milestones reached, 0.0 to 1.0; 1.0 only with success.
        valid_action: the world understood the action and it was applicable (after a step).
        complexity: measured difficulty of the task (at reset).
        admissible_actions: every action that would do something now, sorted (asked for).
        oracle_action: first action of the optimal plan, `None` where the goal is out of reach (asked for).
    """

    task: str
    task_type: str
    turn: int
    success: bool
    progress: float
    valid_action: NotRequired[bool]
    complexity: NotRequired[Complexity]
    admissible_actions: NotRequired[tuple[str, ...]]
    oracle_action: NotRequired[str | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a world answers to one action.

    Attributes:
        observation: the text that the agent reads.
        milestones: how many milestones have been reached so far; `TextEnv` remembers the largest.
        valid: the world understood the action and it was applicable.
        success: the goal has been reached; the episode ends.
        failure: the goal cannot be reached and the world has ended the episode.
    """

    observation: str
    milestones: int = 0
    valid: bool = True
    success: bool = False
    failure: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved moment of an episode: made by `TextEnv.snapshot`, taken back by `TextEnv.restore`, however often."""

    task: Task
    episode: _Episode
    world: object


@dataclass(frozen=True, slots=True)
class _Episode:
    """What `TextEnv` itself keeps of an episode; replaced, never changed, so a snapshot may share it."""

    turn: int
    milestones: int
    earned: float
    potential: float
    success: bool
    failure: bool
    truncated: bool
    observation: str

    @property
    def ended(self) -> bool:
        return self.success or self.failure or self.truncated


class Expert(Protocol):
    """Plays an episode by what it reads, like any agent; it may also watch somebody else play and be asked in between.

    `observe` is called with everything that is said, in order.
    """

    def observe(self, action: str | None, observation: str) -> None:
        """Read what was said: after an action, or at the beginning (`None`)."""
        ...

    def action(self) -> str:
        """What to do next."""
        ...


class TextEnvKwargs(TypedDict, total=False):
    """Keyword arguments that every environment of the suite takes; `TextEnv` says what they mean."""

    split: str
    num_tasks: int | None
    max_turns: int | str | None
    reward_density: float | str
    shaping: Literal["potential"] | None
    shaping_discount: float
    invalid_action_penalty: float
    turn_penalty: float
    infos: Sequence[str]
    observation_format: ObservationFormat
    render_mode: str | None


class TextEnv(gymnasium.Env[str, str], Generic[TaskT]):
    """A `gymnasium.Env` over text: observations and actions are strings.

    Args:
        tasks: where the tasks come from.
        split: which of their splits is played.
        num_tasks: play only the first so many tasks of the split; `None` for all of them.
        max_turns: turn budget, a number, or a multiple of the task's optimal solution length such as `"2x"`;
            `None` for the domain's default.
        reward_density: 0.0 or "sparse" (only success pays) to 1.0 or "dense" (every milestone pays).
            A solved episode returns 1.0 at every density, an unsolved one less, and no observation depends on it.
        shaping: "potential" adds policy-invariant shaping from the optimal distance to the goal.
        shaping_discount: the discount of the shaping, 0.0 to 1.0; the learner's own for exact invariance.
        invalid_action_penalty: taken from the reward of a turn whose action was not valid, at least 0.0.
        turn_penalty: taken from the reward of every turn, at least 0.0.
        infos: what else `info` shall hold; any of "admissible_actions" and "oracle_action".
        observation_format: "plain" (what a person would read) or "upstream" (the reference implementation's text).
        render_mode: "ansi" (`render` returns the last observation), "human" (prints it) or `None`.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.

    `step` takes any string and never raises for what is in it; `gymnasium.error.ResetNeeded` is raised for a step
    before the first reset or after the end. `terminated` says that the world ended, solved or lost; `truncated` that
    the turn budget ran out, and such an episode is never a success.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's name)
    default_max_turns: ClassVar[int | str] = "4x"
    idle_actions: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        tasks: TaskSource[TaskT],
        *,
        split: str | None = None,
        num_tasks: int | None = None,
        max_turns: int | str | None = None,
        reward_density: float | str = "sparse",
        shaping: Literal["potential"] | None = None,
        shaping_discount: float = 1.0,
        invalid_action_penalty: float = 0.0,
        turn_penalty: float = 0.0,
        infos: Sequence[str] = (),
        observation_format: ObservationFormat = "plain",
        render_mode: str | None = None,
    ) -> None:
        self.tasks = tasks
        self.split = tasks.check_split(tasks.splits[0] if split is None else split)
        self.num_tasks = _whole_number("num_tasks", num_tasks)
        self._max_turns = _parse_max_turns(self.default_max_turns if max_turns is None else max_turns)
        self.reward_density = parse_density(reward_density)
        if shaping not in (None, "potential"):
            raise InvalidOptionError(f'shaping must be None or "potential", got {shaping!r}')
        self.shaping = shaping
        self.shaping_discount = _number("shaping_discount", shaping_discount, 0.0, 1.0)
        self.invalid_action_penalty = _number("invalid_action_penalty", invalid_action_penalty, 0.0, None)
        self.turn_penalty = _number("turn_penalty", turn_penalty, 0.0, None)
        self.infos = _parse_infos(infos)
        if observation_format not in ("plain", "upstream"):
            raise InvalidOptionError(f'observation_format must be "plain" or "upstream", got {observation_format!r}')
        self.observation_format = observation_format
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InvalidOptionError(f'render_mode must be None, "ansi" or "human", got {render_mode!r}')
        self.render_mode = render_mode
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self._task: TaskT | None = None
        self._episode: _Episode | None = None

    # What a domain writes.

    @abstractmethod
    def _begin(self, task: TaskT) -> str:
        """Start a task and return the first observation, which states the goal."""

    @abstractmethod
    def _act(self, action: str) -> Outcome:
        """Do what the string says, whatever it says."""

    def _admissible_actions(self) -> tuple[str, ...]:
        raise UnsupportedOperationError(f"{type(self).__name__} cannot list the admissible actions of this task.")

    def _oracle(self) -> tuple[str, ...] | None:
        raise UnsupportedOperationError(f"{type(self).__name__} has no oracle for this task.")

    def _expert(self) -> Expert:
        raise UnsupportedOperationError(f"{type(self).__name__} has no expert that plays by what it reads.")

    def _distance(self) -> int | None:
        """Length of the shortest plan from here; `None` where the goal is out of reach."""
        plan = self._oracle()
        return None if plan is None else len(plan)

    def _snapshot(self) -> object:
        raise UnsupportedOperationError(f"{type(self).__name__} cannot save a state.")

    def _restore(self, world: object) -> None:
        """Go back to what `_snapshot` returned; the same task has been begun."""
        raise UnsupportedOperationError(f"{type(self).__name__} cannot go back to a state.")

    # What everybody calls.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: restarts the env's own random generator; equal seeds give equal episodes everywhere.
            options: `{"task": id}` or `{"task_index": n}` (the n-th of the split) plays that task; otherwise the next
                one is drawn from the env's own generator.

        Returns:
            the first observation, which states the goal, and `info` (see `StepInfo`).

        Raises:
            UnknownTaskError: there is no such task.
            InvalidOptionError: an unknown option, or both of them.
        """
        super().reset(seed=seed)
        task = self._choose_task(options or {})
        self._task = None  # Should `_begin` fail, the env says that it needs a reset instead of playing on.
        self._episode = None
        observation = fit(self._begin(task))
        self._task = task
        start = potential(self._distance(), self._solution_length()) if self.shaping else 0.0
        self._episode = _Episode(0, 0, 0.0, start, False, False, False, observation)
        if self.render_mode == "human":
            self.render()
        return observation, {**self._info(), "complexity": task.complexity}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act, with any string at all.

        Returns:
            observation, reward, terminated, truncated and `info` (see `StepInfo`).

        Raises:
            gymnasium.error.ResetNeeded: the episode has not begun, or has ended.
            TypeError: the action is not a string.
        """
        if not isinstance(action, str):
            raise TypeError(f"an action is a string, got {type(action).__name__}")
        before = self._episode
        if before is None or self._task is None:
            raise ResetNeeded("Call env.reset() before the first env.step().")
        if before.ended:
            raise ResetNeeded("The episode has ended: call env.reset() before the next env.step().")
        outcome = self._act(str(action))
        task, turn = self._task, before.turn + 1
        success = outcome.success
        reached = task.milestones if success else min(max(before.milestones, outcome.milestones), task.milestones - 1)
        failure = outcome.failure and not success
        terminated = success or failure
        truncated = not terminated and turn >= self.max_turns
        reward = RewardSchedule.of(task.milestones, self.reward_density).earned(reached, success=success)
        reward -= before.earned
        # Summed as a caller sums: a solved episode's rewards then add up to exactly 1.0 in floating point.
        earned = before.earned + reward
        now = before.potential
        if self.shaping:
            now = 0.0 if terminated else potential(self._distance(), self._solution_length())
            reward += shaping_reward(before.potential, now, discount=self.shaping_discount, terminated=terminated)
        reward -= self.turn_penalty + (0.0 if outcome.valid else self.invalid_action_penalty)
        self._episode = _Episode(turn, reached, earned, now, success, failure, truncated, fit(outcome.observation))
        if self.render_mode == "human":
            self.render()
        info = {**self._info(), "valid_action": outcome.valid}
        return self._episode.observation, reward, terminated, truncated, info

    def render(self) -> str | None:
        """The last observation, as a terminal may be sent it: returned for "ansi", printed for "human"."""
        text = visible(self._episode.observation) if self._episode else ""
        if self.render_mode == "human":
            print(text, flush=True)
            return None
        return text if self.render_mode == "ansi" else None

    @property
    def task(self) -> TaskT:
        """The task being played.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun.
        """
        if self._task is None:
            raise ResetNeeded("Call env.reset() first: no task is being played.")
        return self._task

    @property
    def observation(self) -> str:
        """The last observation, as no wrapper has changed it."""
        return self._current().observation

    @property
    def max_turns(self) -> int:
        """Turn budget of the task being played."""
        if isinstance(self._max_turns, int):
            return self._max_turns
        length = self.task.complexity.solution_length
        return _UNKNOWN_LENGTH_TURNS if length is None else max(1, int(self._max_turns * length + 0.5))

    def admissible_actions(self) -> tuple[str, ...]:
        """Every action that would do something now, sorted; empty once the episode has ended.

        Raises:
            UnsupportedOperationError: the domain cannot enumerate them.
        """
        return () if self._current().ended else self._admissible_actions()

    def oracle(self) -> tuple[str, ...] | None:
        """The optimal remaining plan from the current state: empty once solved, `None` where the goal is out of reach.

        Raises:
            UnsupportedOperationError: the domain cannot compute it.
        """
        episode = self._current()
        if episode.success:
            return ()
        return None if episode.failure else self._oracle()

    def expert(self) -> Expert:
        """A new expert that plays by what it reads alone, for demonstrations that know no more than an agent can.

        Raises:
            UnsupportedOperationError: the domain has none.
        """
        self._current()
        return self._expert()

    def snapshot(self) -> Snapshot:
        """Save the current moment of the episode.

        Raises:
            UnsupportedOperationError: the domain cannot save a state.
        """
        return Snapshot(self.task, self._current(), self._snapshot())

    def restore(self, token: Snapshot) -> None:
        """Go back to a saved moment, of this env or of another one made with the same arguments."""
        if self._task != token.task:
            self._task = self._episode = None
            self._begin(token.task)  # type: ignore[arg-type]
            self._task = token.task  # type: ignore[assignment]
        self._restore(token.world)
        self._episode = token.episode

    def _current(self) -> _Episode:
        if self._episode is None:
            raise ResetNeeded("Call env.reset() first: no episode has begun.")
        return self._episode

    def _solution_length(self) -> int:
        length = self.task.complexity.solution_length
        if length is None:
            raise UnsupportedOperationError("shaping needs the optimal distance, which is unknown for this task.")
        return length

    def _choose_task(self, options: dict[str, Any]) -> TaskT:
        unknown = set(options) - {"task", "task_index"}
        if unknown or len(options) > 1:
            raise InvalidOptionError(f'options must be {{"task": id}} or {{"task_index": n}}, got {options!r}')
        if "task" in options:
            return self.tasks.find(options["task"])
        if "task_index" in options:
            return self.tasks.task(self.split, int(options["task_index"]))
        size = self.tasks.size(self.split)
        count = min(_ENDLESS if size is None else size, self.num_tasks or _ENDLESS)
        return self.tasks.task(self.split, int(self.np_random.integers(count)))

    def _info(self) -> dict[str, Any]:
        episode = self._current()
        info: dict[str, Any] = {
            "task": self.task.id,
            "task_type": self.task.task_type,
            "turn": episode.turn,
            "success": episode.success,
            "progress": episode.milestones / self.task.milestones,
        }
        if "admissible_actions" in self.infos:
            info["admissible_actions"] = self.admissible_actions()
        if "oracle_action" in self.infos:
            plan = self.oracle()
            info["oracle_action"] = plan[0] if plan else None
        return info


def _parse_max_turns(value: int | str) -> int | float:
    """A turn budget as a number, or as a multiple of the solution length (a float)."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, str) and value.endswith("x"):
        try:
            multiple = float(value[:-1])
        except ValueError:
            multiple = 0.0
        if 1.0 <= multiple < float("inf"):
            return multiple
    raise InvalidOptionError(f'max_turns must be a whole number from 1 or a multiple such as "2x", got {value!r}')


def _parse_infos(infos: Sequence[str]) -> tuple[str, ...]:
    unknown = [infos] if isinstance(infos, str) else [name for name in infos if name not in OPTIONAL_INFOS]
    if unknown:
        raise InvalidOptionError(f"infos must be a sequence of names out of {OPTIONAL_INFOS}, got {infos!r}")
    return tuple(infos)


def _whole_number(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidOptionError(f"{name} must be a whole number of at least 1, or None, got {value!r}")
    return value


def _number(name: str, value: float, low: float, high: float | None) -> float:
    correct = isinstance(value, int | float) and not isinstance(value, bool)
    if not correct or value < low or (high is not None and value > high) or value == float("inf"):
        bounds = f"from {low}" + (f" to {high}" if high is not None else " up")
        raise InvalidOptionError(f"{name} must be a number {bounds}, got {value!r}")
    return float(value)
