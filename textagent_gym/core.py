"""The one contract that every world fulfils.

A domain writes two hooks, `_begin` (a task) and `_act` (on a string); `TextEnv` does the rest: seeding, the choice of
tasks, the turn budget, reward density and shaping, `info`, snapshots, and the order of calls.
"""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, NamedTuple, NotRequired, Self, TypedDict

import gymnasium
from gymnasium.error import ResetNeeded

from textagent_gym.calls import Tool
from textagent_gym.complexity import Complexity
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError, UnsupportedOperationError, WorldBrokenError
from textagent_gym.expert import Expert
from textagent_gym.options import ObservationFormat, check_count, check_episode_options, check_number, parse_max_turns
from textagent_gym.rewards import (
    MilestoneSchedule,
    RewardSchedule,
    ScoreSchedule,
    parse_density,
    potential,
    shaping_reward,
)
from textagent_gym.spaces import UnicodeText, fit
from textagent_gym.tasks import Task, TaskSource, TaskT
from textagent_gym.terminal import visible

OPTIONAL_INFOS = {"admissible_actions": "admissible_actions", "oracle_action": "oracle", "state_key": "state_key"}
"""What `infos=(...)` may ask for, and what a world must support for it."""
_log = logging.getLogger("textagent_gym")
_ENDLESS = 2**31 - 1  # Tasks of an endless split are addressed by indices below this.


class StepInfo(TypedDict):
    """The `info` of `reset` and `step`: the same keys in every domain.

    Attributes:
        task: the task's id.
        task_type: sort of the task; "" where all are of one sort.
        turn: number of actions taken so far.
        success: whether the goal has been reached.
        progress: share of the milestones known to be reached, 0.0 to 1.0; 1.0 only with success. Where milestones pay
            nothing, a world need not search for them, so a sparse reward can show less than a dense one.
        score: the world's own measure now, 0.0 to 1.0 (worlds that have one).
        valid_action: whether the world understood the action and it was applicable (after a step).
        broken: reason why the world has failed; the episode says nothing about the agent (only then).
        complexity: measured difficulty of the task (at reset).
        instructions: text on how to act (at reset, in worlds that have one).
        admissible_actions: every action that would do something now, sorted (if `infos` asks for it).
        oracle_action: first action of the optimal plan; `None` where the goal is out of reach or the planner's budget
            was spent, which `oracle` tells apart (if `infos` asks for it).
        state_key: digest of the exact state; see `TextEnv.state_key` (if `infos` asks for it).
    """

    task: str
    task_type: str
    turn: int
    success: bool
    progress: float
    score: NotRequired[float]
    valid_action: NotRequired[bool]
    broken: NotRequired[str]
    complexity: NotRequired[Complexity]
    instructions: NotRequired[str]
    admissible_actions: NotRequired[tuple[str, ...]]
    oracle_action: NotRequired[str | None]
    state_key: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a world answers to one action.

    Attributes:
        observation: the text that the agent reads.
        milestones: number of milestones reached so far, at most the task's; `TextEnv` remembers the largest, unless
            credit can be lost.
        valid: whether the world understood the action and it was applicable.
        success: whether the goal has been reached; the episode ends.
        failure: whether the world has ended the episode with the goal out of reach.
        score: the world's own measure now, 0.0 to 1.0; it may fall. `None` leaves it as it was.
        broken: reason why the world has failed, through no fault of the agent's; the episode is truncated.
    """

    observation: str
    milestones: int = 0
    valid: bool = True
    success: bool = False
    failure: bool = False
    score: float | None = None
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved moment of an episode: made by `TextEnv.snapshot`, taken back by `TextEnv.restore`, however often."""

    task: Task
    episode: _Episode
    actions: tuple[str, ...]
    world: object


class _Episode(NamedTuple):
    """What `TextEnv` itself keeps of an episode; replaced, never changed, so a snapshot may share it."""

    observation: str
    max_turns: int
    schedule: RewardSchedule
    turn: int = 0
    milestones: int = 0
    score: float = 0.0
    earned: float = 0.0
    potential: float = 0.0
    success: bool = False
    failure: bool = False
    truncated: bool = False
    broken: str = ""

    @property
    def ended(self) -> bool:
        return self.success or self.failure or self.truncated


class TextEnv(gymnasium.Env[str, str], Generic[TaskT]):
    """A `gymnasium.Env` over text: observations and actions are strings.

    Args:
        tasks: source of the tasks.
        split: split of the tasks that is played.
        num_tasks: number of tasks that are played, from the first of the split on; `None` for all of them.
        max_turns: turn budget, a number, or a multiple of the task's optimal solution length such as `"2x"`;
            `None` for the domain's default.
        reward_density: 0.0 or "sparse" (only success pays) to 1.0 or "dense" (every milestone pays).
            A solved episode returns 1.0 at every density, an unsolved one less, and no observation depends on it.
        shaping: "potential" adds policy-invariant shaping from the optimal distance to the goal.
        shaping_discount: the discount of the shaping, 0.0 to 1.0; the learner's own for exact invariance.
        invalid_action_penalty: amount taken from the reward of a turn whose action was not valid, at least 0.0.
        turn_penalty: amount taken from the reward of every turn, at least 0.0.
        infos: further keys of `info`; any of "admissible_actions", "oracle_action" and "state_key".
        instructions: "observation" puts the text on how to act (`TextEnv.instructions`) before the first observation.
        observation_format: "plain" (what a person would read) or "upstream" (the reference implementation's text).
        render_mode: "ansi" (`render` returns the last observation), "human" (prints it) or `None`.

    Raises:
        InvalidOptionError: an argument has a value that does not exist, or asks for what the world does not have.

    `step` takes any string and never raises for what is in it; `gymnasium.error.ResetNeeded` is raised for a step
    before the first reset or after the end. `terminated` says that the world ended, solved or lost; `truncated` that
    the turn budget ran out, or that the world has failed (`info["broken"]` says why); such an episode is never a
    success. An environment pickles, also in the middle of an episode: what it has played is played again.

    For authors of worlds: `_begin` and `_act` are all that a world must write. `_admissible_actions`, `_oracle`,
    `_expert`, `_distance`, `_snapshot` with `_restore`, `_state_key`, and `_abandon` are written where the world can do
    it, and `supports` follows from that. Nothing starts in `__init__`; what a world starts is used in the thread that
    called `reset`; every wait has a time limit; a failure that is not the agent's is a `WorldBrokenError`.

    Attributes:
        default_max_turns: turn budget of the world; a number, or a multiple of the solution length.
        fallback_max_turns: turn budget where the default is a multiple and no solution length is known.
        deterministic: whether equal actions have equal results, so that a moment can be reached again by replaying.
        scored: whether the world has a score of its own.
        pays: quantity that reward density divides: "milestones", or the "score".
        keeps_milestones: whether a milestone stays reached; else the world says after each action how many are reached.
        idle_actions: beginnings of commands that only look.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's name)
    default_max_turns: ClassVar[int | str] = "4x"
    fallback_max_turns: ClassVar[int] = 100
    deterministic: ClassVar[bool] = True
    scored: ClassVar[bool] = False
    pays: ClassVar[Literal["milestones", "score"]] = "milestones"
    keeps_milestones: ClassVar[bool] = True
    idle_actions: ClassVar[tuple[str, ...]] = ()
    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, for pickling."""
        env = super().__new__(cls)
        env._made_with = (args, kwargs)
        return env

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
        instructions: Literal["observation"] | None = None,
        observation_format: ObservationFormat = "plain",
        render_mode: str | None = None,
    ) -> None:
        self.tasks = tasks
        self.split = tasks.check_split(tasks.splits[0] if split is None else split)
        self.num_tasks = check_count("num_tasks", num_tasks)
        self._max_turns = None if max_turns is None else parse_max_turns(max_turns)
        self._default_max_turns = parse_max_turns(self.default_max_turns)
        self.reward_density = parse_density(reward_density)
        if shaping not in (None, "potential"):
            raise InvalidOptionError(f'shaping must be None or "potential", got {shaping!r}')
        self.shaping = shaping
        self.shaping_discount = check_number("shaping_discount", shaping_discount, 0.0, 1.0)
        self.invalid_action_penalty = check_number("invalid_action_penalty", invalid_action_penalty, 0.0, None)
        self.turn_penalty = check_number("turn_penalty", turn_penalty, 0.0, None)
        self.infos = self._parse_infos(infos)
        if shaping and not self._can("_oracle") and not self._can("_distance"):
            raise InvalidOptionError(f"{type(self).__name__} knows no distance to the goal: shaping must be None")
        if instructions not in (None, "observation"):
            raise InvalidOptionError(f'instructions must be None or "observation", got {instructions!r}')
        self.shows_instructions = instructions is not None
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
        self._actions: list[str] = []

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

    def _oracle_action(self) -> str | None:
        """First action of what `_oracle` returns, where that is quicker to find; `None` where there is none."""
        plan = self._oracle()
        return plan[0] if plan else None

    def _expert(self) -> Expert:
        raise UnsupportedOperationError(f"{type(self).__name__} has no expert that plays by what it reads.")

    def _distance(self) -> int | None:
        """Length of the shortest plan from here; `None` where the goal is out of reach."""
        plan = self._oracle()
        return None if plan is None else len(plan)

    def _snapshot(self) -> object:
        """Whatever `_restore` needs; `None` has the actions replayed."""
        if not self.deterministic:
            raise UnsupportedOperationError(f"{type(self).__name__} cannot save a state.")
        return None

    def _restore(self, world: object) -> None:
        """Go back to what `_snapshot` returned; the same task has been begun."""
        raise UnsupportedOperationError(f"{type(self).__name__} cannot go back to a state.")

    def _state_key(self) -> object:
        """What decides every later text and success: numbers, texts and tuples of them, whose `repr` is digested."""
        raise UnsupportedOperationError(f"{type(self).__name__} cannot tell its states apart.")

    def _abandon(self) -> None:
        """Throw away what is left of a world that has failed: the next `_begin` starts afresh."""

    @property
    def instructions(self) -> str:
        """How to act, for somebody who has never seen the world; "" where it does not say."""
        return ""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that an action may call; none where actions are commands in the world's own words."""
        return ()

    @property
    def supports(self) -> frozenset[str]:
        """What the world can do; any of "admissible_actions", "oracle", "expert", "snapshot", "state_key", "score"."""
        hooks = ("admissible_actions", "oracle", "expert", "state_key")
        supported = {name for name in hooks if self._can(f"_{name}")}
        if self.deterministic or self._can("_snapshot"):
            supported.add("snapshot")
        return frozenset(supported | ({"score"} if self.scored else set()))

    def _can(self, hook: str) -> bool:
        return getattr(type(self), hook) is not getattr(TextEnv, hook)

    # What everybody calls.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: seed with which the env's own random generator restarts; equal seeds give equal episodes everywhere.
            options: `task` (an id) or `task_index` (a position in the split) plays that task, otherwise the next one is
                drawn from the env's own generator; `max_turns` and `reward_density` hold for this episode alone.

        Returns:
            the first observation, which states the goal, and `info` (see `StepInfo`).

        Raises:
            UnknownTaskError: there is no such task.
            InvalidOptionError: an unknown option, or a value that it cannot have; or the split holds no tasks.
            WorldBrokenError: the world has failed, and so has a fresh one.
        """
        super().reset(seed=seed)
        options = check_episode_options(options)
        task = self._choose_task(options)
        self._task = self._episode = None  # Should anything fail, the env says that it needs a reset.
        observation = self._begin_afresh(task)
        self._task = task
        instructions = self.instructions
        if self.shows_instructions and instructions:
            observation = f"{instructions}\n\n{observation}"
        self._actions = []
        try:
            self._episode = _Episode(
                fit(observation),
                self._turn_budget(options.get("max_turns")),
                self._reward_schedule(options.get("reward_density", self.reward_density)),
                potential=potential(self._distance(), self._solution_length()) if self.shaping else 0.0,
            )
            info = {**self._info(), "complexity": task.complexity}
        except BaseException:
            self._task = self._episode = None
            raise
        if instructions:
            info["instructions"] = instructions
        if self.render_mode == "human":
            self.render()
        return self._episode.observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act, with any string at all.

        Returns:
            observation, reward, terminated, truncated and `info` (see `StepInfo`).

        Raises:
            gymnasium.error.ResetNeeded: the episode has not begun, or has ended.
            TypeError: the action is not a string, or the world's author has not returned an `Outcome` of texts.
            ValueError: the world's author counts more milestones than the task has.
        """
        if not isinstance(action, str):
            raise TypeError(f"an action is a string, got {type(action).__name__}")
        before = self._episode
        if before is None or self._task is None:
            raise ResetNeeded("Call env.reset() before the first env.step().")
        if before.success or before.failure or before.truncated:
            raise ResetNeeded("The episode has ended: call env.reset() before the next env.step().")
        try:
            outcome = self._act(str(action))
        except WorldBrokenError as error:
            outcome = Outcome("", broken=str(error) or type(error).__name__)
        try:
            if outcome.broken:
                return self._broken(before, outcome.broken)
            after = self._advance(before, outcome)
        except (AttributeError, TypeError):
            self._check_outcome(outcome)  # Here, not before: a right one is not looked at twice.
            raise
        self._actions.append(str(action))
        reward = after.earned - before.earned
        if self.shaping:
            terminated = after.success or after.failure
            now = 0.0 if terminated else potential(self._distance(), self._solution_length())
            reward += shaping_reward(before.potential, now, discount=self.shaping_discount, terminated=terminated)
            after = after._replace(potential=now)
        reward -= self.turn_penalty + (0.0 if outcome.valid else self.invalid_action_penalty)
        self._episode = after
        if self.render_mode == "human":
            self.render()
        info = self._info()
        info["valid_action"] = outcome.valid
        return after.observation, reward, after.success or after.failure, after.truncated, info

    def _advance(self, before: _Episode, outcome: Outcome) -> _Episode:
        """The episode after an action."""
        assert self._task is not None
        turn, most = before.turn + 1, self._task.milestones
        if outcome.milestones > most:
            raise ValueError(
                f"{type(self).__name__}._act counts {outcome.milestones} milestones, and {self.task.id} has {most}"
            )
        success = outcome.success
        failure = outcome.failure and not success
        reached = outcome.milestones
        if reached < before.milestones and self.keeps_milestones:
            reached = before.milestones
        if success:
            reached = most
        elif reached >= most:
            reached = most - 1
        elif reached < 0:
            reached = 0
        score = before.score if outcome.score is None else min(max(outcome.score, 0.0), 1.0)
        earned = before.schedule.earned(score if self.pays == "score" else reached, success=success)
        # Summed as a caller sums: a solved episode's rewards then add up to exactly 1.0 in floating point.
        earned = before.earned + (earned - before.earned)
        text, truncated = fit(outcome.observation), not (success or failure) and turn >= before.max_turns
        most_turns, schedule, kept = before.max_turns, before.schedule, before.potential
        # By position, which takes half the time that names take.
        return _Episode(text, most_turns, schedule, turn, reached, score, earned, kept, success, failure, truncated)

    def _check_outcome(self, outcome: object) -> None:
        """Raise `TypeError` for what a world's author may not return from `_act`."""
        if not isinstance(outcome, Outcome):
            raise TypeError(f"{type(self).__name__}._act must return an Outcome, got {outcome!r:.100}") from None
        for name, kind in (("observation", str), ("broken", str), ("milestones", int)):
            value = getattr(outcome, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{type(self).__name__}._act must return an Outcome whose {name} is of type {kind.__name__}, "
                    f"got {value!r:.100}"
                ) from None

    def _broken(self, before: _Episode, why: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """End an episode whose world has failed."""
        _log.warning("The world of %s has failed: %s", self.task.id, visible(why))
        self._abandon()
        text = fit(f"The world has failed, and the episode ends: {why}")
        self._episode = before._replace(observation=text, turn=before.turn + 1, truncated=True, broken=fit(why))
        if self.render_mode == "human":
            self.render()
        return text, 0.0, False, True, {**self._info(), "valid_action": False}

    def _begin_afresh(self, task: TaskT) -> str:
        """Begin a task; where the world fails, in a fresh one."""
        try:
            observation = self._begin(task)
        except WorldBrokenError as error:
            _log.warning("The world of %s has failed, and a fresh one is tried: %s", task.id, visible(str(error)))
            self._abandon()
            observation = self._begin(task)
        if not isinstance(observation, str):
            raise TypeError(
                f"{type(self).__name__}._begin must return the first observation, a text, got {observation!r:.100}"
            )
        return observation

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
        return self._current().max_turns

    def _turn_budget(self, wanted: int | str | None) -> int:
        """Turn budget of a task, from an option of the episode, of the environment, or of the world."""
        asked = self._max_turns if wanted is None else parse_max_turns(wanted)
        turns = self._default_max_turns if asked is None else asked
        if isinstance(turns, int):
            return turns
        length = self.task.complexity.solution_length
        if length is not None:
            return max(1, int(turns * length + 0.5))
        if asked is None:
            return self.fallback_max_turns
        raise InvalidOptionError(f"max_turns must be a number for {self.task.id}: its solution length is not known")

    def _reward_schedule(self, density: float | str) -> RewardSchedule:
        """What pays in an episode of the task being played."""
        share = parse_density(density)
        return ScoreSchedule(share) if self.pays == "score" else MilestoneSchedule.of(self.task.milestones, share)

    def admissible_actions(self) -> tuple[str, ...]:
        """Every action that would do something now, sorted; empty once the episode has ended.

        Raises:
            UnsupportedOperationError: the domain cannot enumerate them.
        """
        return () if self._current().ended else self._admissible_actions()

    def oracle(self) -> tuple[str, ...] | None:
        """The optimal remaining plan from the current state: empty once solved, `None` where the goal is out of reach.

        Raises:
            PlanningBudgetError: no plan was found before the planner's budget was spent.
            UnsupportedOperationError: the domain cannot compute it.
        """
        episode = self._current()
        if episode.success:
            return ()
        return None if episode.failure or episode.broken else self._oracle()

    def expert(self) -> Expert:
        """A new expert that plays by what it reads alone, for demonstrations that know no more than an agent can.

        Raises:
            UnsupportedOperationError: the domain has none.
        """
        self._current()
        return self._expert()

    def state_key(self) -> str:
        """Digest of the exact state, 32 hexadecimal digits: equal for equal futures, and different for different ones.

        Equal keys, in environments made with the same arguments, mean that equal admissible actions will be answered by
        equal texts, rewards and ends, as long as the turn budget lasts: the number of the turn does not count, so that
        a state that is reached again has the key that it had. What has been earned does count, because no milestone
        pays twice.

        Raises:
            gymnasium.error.ResetNeeded: no episode has begun.
            UnsupportedOperationError: the domain cannot tell.
        """
        episode = self._current()
        reached = episode.score if self.pays == "score" else episode.milestones
        earned = episode.schedule.earned(reached, success=episode.success)
        state = (self.task.id, earned, episode.success, episode.failure, self._state_key())
        return hashlib.blake2b(repr(state).encode(), digest_size=16).hexdigest()

    def snapshot(self) -> Snapshot:
        """Save the current moment of the episode.

        Raises:
            UnsupportedOperationError: the domain cannot save a state.
        """
        return Snapshot(self.task, self._current(), tuple(self._actions), self._snapshot())

    def restore(self, token: Snapshot) -> None:
        """Go back to a saved moment, of this env or of another one made with the same arguments.

        Raises:
            InvalidOptionError: the token is not a snapshot.
            UnknownTaskError: the token is of a task that is not played here.
        """
        if not isinstance(token, Snapshot):
            raise InvalidOptionError(f"restore takes what snapshot() returned, got {type(token).__name__}")
        if token.world is None:
            self._replay(self.tasks.find(token.task.id), token.actions)
        else:
            if self._task is None or self._task.id != token.task.id:
                self._replay(self.tasks.find(token.task.id), ())
            self._restore(token.world)
        self._actions = list(token.actions)
        self._episode = token.episode

    def _replay(self, task: TaskT, actions: Sequence[str]) -> None:
        """Put the world into the state after some actions."""
        self._task = self._episode = None
        self._begin_afresh(task)
        self._task = task
        for action in actions:
            self._act(action)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it takes to make the environment, and to play again what it has played."""
        generator = (self._np_random, self._np_random_seed)
        state = (self.spec, generator, self._task and self._task.id, self._episode, tuple(self._actions))
        return _make, (type(self), *self._made_with), state

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.spec, generator, task_id, episode, actions = state
        if task_id is not None:
            self._replay(self.tasks.find(task_id), actions)
        self._episode = episode
        self._actions = list(actions)
        self._np_random, self._np_random_seed = generator

    def _parse_infos(self, infos: Sequence[str]) -> tuple[str, ...]:
        unknown = isinstance(infos, str) or not isinstance(infos, Sequence) or not set(infos) <= set(OPTIONAL_INFOS)
        if unknown:
            raise InvalidOptionError(f"infos must be a sequence of names out of {tuple(OPTIONAL_INFOS)}, got {infos!r}")
        for name in infos:
            if OPTIONAL_INFOS[name] not in self.supports:
                raise InvalidOptionError(f"{type(self).__name__} cannot give {name!r} in info")
        return tuple(infos)

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
        if "task" in options:
            return self.tasks.find(options["task"])
        if "task_index" in options:
            return self.tasks.task(self.split, options["task_index"])
        size = self.tasks.size(self.split)
        if size == 0:
            raise InvalidOptionError(f"split {self.split!r} holds no tasks with these options")
        count = min(_ENDLESS if size is None else size, self.num_tasks or _ENDLESS)
        return self.tasks.task(self.split, int(self.np_random.integers(count)))

    def _info(self) -> dict[str, Any]:
        episode, task = self._current(), self.task
        info: dict[str, Any] = {
            "task": task.id,
            "task_type": task.task_type,
            "turn": episode.turn,
            "success": episode.success,
            "progress": episode.milestones / task.milestones,
        }
        if self.scored:
            info["score"] = episode.score
        if episode.broken:
            return {**info, "broken": episode.broken}
        if "admissible_actions" in self.infos:
            info["admissible_actions"] = self.admissible_actions()
        if "oracle_action" in self.infos:
            try:
                info["oracle_action"] = None if episode.success or episode.failure else self._oracle_action()
            except PlanningBudgetError:  # A step never raises.
                info["oracle_action"] = None
        if "state_key" in self.infos:
            info["state_key"] = self.state_key()
        return info


def _make(cls: type[TextEnv[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TextEnv[Any]:
    return cls(*args, **kwargs)
