"""What every world promises, as checks that the author of one can run (see `certificate`).

Each promise is a function of a `Subject`. It returns what it has checked, in words, and raises `BrokenPromiseError` if
the world does something else, or `NotApplicableError` if the world declares no such capability.
"""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from statistics import fmean
from typing import Any, Literal

import gymnasium
from gymnasium.utils.env_checker import check_env

from textagent_gym.agents import Agent, RandomAgent, make_agent
from textagent_gym.core import TextEnv
from textagent_gym.evaluation.comparison import difference_interval
from textagent_gym.evaluation.elsewhere import playing_elsewhere
from textagent_gym.evaluation.episode import Episode, play
from textagent_gym.evaluation.hints import Moment, lists, singled_out
from textagent_gym.evaluation.leaks import COMMANDS, leak
from textagent_gym.evaluation.strange_texts import strange_text
from textagent_gym.evaluation.subject import (
    BrokenPromiseError,
    NotApplicableError,
    Promise,
    Subject,
    knobs_of,
)
from textagent_gym.evaluation.telling import Passage, passages_in
from textagent_gym.evaluation.walks import (
    WALK,
    Step,
    begin,
    commands_of,
    do,
    proceed,
    transcripts,
    walk,
)
from textagent_gym.knobs import AXES
from textagent_gym.texts import excerpts
from textagent_gym.vector import make_vec

DENSITIES = ("sparse", 0.5, "dense")
_MOMENT = 4  # Actions before a moment that is saved, and after it: milestones may have been reached.
_ROUNDING = 1e-9  # Sums of some hundred rewards differ by less.
_HASH_SEEDS = ("1", "2")


# The promises.


def the_oracle_solves_every_task(subject: Subject) -> str:
    """The oracle wins, in the measured number of actions, and returns exactly 1.0 at every density."""
    subject.need("oracle")
    lengths = []
    for density in DENSITIES:
        with closing(subject.make(reward_density=density)) as env:
            for index in range(subject.tasks):
                episode = _played(subject, env, make_agent("oracle", env), index)
                complexity = episode.beginning["complexity"]
                what = f"{episode.info['task']} at reward_density={density!r}"
                _expect(episode.success, True, f"the oracle solves {what}")
                _expect(episode.total_reward, 1.0, f"the return of the oracle in {what} is exactly 1.0")
                if complexity.solution_length is not None:
                    right = len(episode.turns) == complexity.solution_length or not complexity.exact
                    right = right and len(episode.turns) <= complexity.solution_length
                    _expect(right, True, f"{complexity.solution_length} actions, as measured, solve {what}: "
                            f"{len(episode.turns)} did")  # fmt: skip
                lengths.append(len(episode.turns))
    return f"{subject.tasks} tasks at {len(DENSITIES)} densities, {fmean(lengths):.1f} actions on average"


def doing_nothing_earns_nothing(subject: Subject) -> str:
    """An agent that only ever answers with an empty text wins nothing and earns nothing."""
    densities = {"reward_density": "dense"} if subject.numbered else {}
    with closing(subject.make(**densities)) as env:
        for index in range(subject.tasks):
            episode = _played(subject, env, _Null(), index)
            _expect(episode.success, False, f"empty actions do not solve task {index}")
            best = max((turn.reward for turn in episode.turns), default=0.0)
            _expect(best <= 0.0, True, f"empty actions earn nothing in task {index} (one earned {best})")
    return f"{subject.tasks} tasks"


def random_text_wins_nothing(subject: Subject) -> str:
    """An agent that writes random text solves no task."""
    with closing(subject.make()) as env:
        for index in range(subject.tasks):
            episode = _played(subject, env, RandomAgent(env), index)
            _expect(episode.success, False, f"random text does not solve task {index}")
    return f"{subject.tasks} tasks"


def equal_seeds_give_equal_episodes(subject: Subject) -> str:
    """Equal seeds give equal episodes in this process and in others, whatever `PYTHONHASHSEED` is."""
    subject.need_deterministic()
    with playing_elsewhere(subject, _HASH_SEEDS) as elsewhere:  # At the same time as here.
        here = transcripts(subject)
        again = transcripts(subject, backwards=True)
        _expect(again, here, "equal seeds give equal episodes in one process, whatever was played before")
        for hash_seed, played in elsewhere.items():
            for seed, (one, other) in enumerate(zip(here, played(), strict=True), start=subject.seed):
                _expect(other, one, f"seed {seed} gives the same episode in a process with PYTHONHASHSEED={hash_seed}")
    return f"{subject.tasks} seeds in {1 + len(_HASH_SEEDS)} processes with other hash seeds"


def snapshots_and_replays_agree(subject: Subject) -> str:
    """What follows from a saved moment is the same from `restore`, elsewhere, and after a replay of its actions."""
    subject.need("snapshot")
    subject.need_deterministic()
    draw = Random(subject.seed)
    one, other = subject.make_base(reward_density="dense"), subject.make_base(reward_density="dense")
    moments = 0
    with closing(one), closing(other):
        for index in range(subject.tasks):
            steps, actions = walk(one, subject.options(index), draw, _MOMENT)
            if steps[-1][2] or steps[-1][3]:
                continue
            moment = one.snapshot()
            future, after = proceed(one, draw, _MOMENT)
            for name, env in (("the same environment", one), ("another environment", other)):
                env.restore(moment)
                _expect(do(env, after), future, f"a snapshot of task {index} is restored in {name}")
            other.reset(options=subject.options(index))
            _expect(
                do(other, (*actions, *after)), (*steps[1:], *future), f"task {index} is the same when it is replayed"
            )
            moments += 1
    return f"{moments} moments, restored in two environments and replayed"


def any_string_is_survived(subject: Subject) -> str:
    """A step takes any string, never raises, and tells what the contract says."""
    draw, count, index = Random(subject.seed), 0, 0
    env = subject.make()
    with closing(env):
        while count < subject.strings:
            observation, _ = env.reset(seed=subject.seed + index, options=subject.options(index % subject.tasks))
            known = [observation, *commands_of(env)]
            ended = False
            while not ended and count < subject.strings:
                action = strange_text(draw, known)
                try:
                    step = env.step(action)
                except (Exception, SystemExit) as error:
                    raise BrokenPromiseError(
                        f"a step takes any string: {action!r:.200} raised {type(error).__name__}: {error}"
                    ) from error
                _check_step(env, action, step)
                count += 1
                ended = bool(step[2] or step[3])
            index += 1
    return f"{count} random strings in {index} episodes"


def no_observation_contains_the_solution(subject: Subject) -> str:
    """Neither observations nor texts in `info` list what the oracle would do, or single out what it would do next.

    They may name it, as a list of all commands or a goal does; not more often than chance allows among the commands
    that could be given (see `hints`).
    """
    subject.need("oracle")
    kinds: dict[str, list[Passage]] = {}
    infos = {"infos": ("admissible_actions",)} if "admissible_actions" in subject.supports else {}
    with closing(subject.make_base(**infos)) as env:
        for index in range(subject.tasks):
            for passage in passages_in(subject, env, index):
                if isinstance(passage.text, str):
                    leaked = leak(passage.text, passage.plan)
                    if leaked and not lists(passage.text, passage.commands):
                        what = f"what the oracle does next stands in {passage.kind} of {passage.task}"
                        raise BrokenPromiseError(f"{what}: {leaked!r:.300}")
                kinds.setdefault(passage.kind, []).append(passage)
    plans = frozenset(passage.plan[0] for each in kinds.values() for passage in each)
    for kind, each in kinds.items():
        moments = (
            Moment(passage.task, passage.text, passage.plan[0], passage.commands or plans, passage.done, passage.past)
            for passage in each
            if passage.after_action or len(passage.plan) < COMMANDS
        )
        hint = singled_out(moments)
        if hint:
            raise BrokenPromiseError(f"what the oracle does next is told by {kind}: {hint}")
    read = sum(map(len, kinds.values()))
    return f"{read} texts, none with {COMMANDS} commands of the shortest plan in a row; none singles out the next one"


def density_changes_rewards_alone(subject: Subject) -> str:
    """Equal actions give equal observations and ends at every density; unsolved episodes return less than 1.0.

    They return nothing where only success pays, and no episode returns more than 1.0.
    """
    subject.need_numbered()
    subject.need_deterministic()
    envs = [subject.make_base(reward_density=density) for density in DENSITIES]
    count = 0
    for index in range(subject.tasks):
        steps, actions = walk(envs[0], subject.options(index), Random(subject.seed + index), WALK)
        first = envs[0].task.id, _without_reward(steps)
        for env, density in zip(envs, DENSITIES, strict=True):
            begun = begin(env, subject.options(index))
            other = (begun, *do(env, actions))
            _expect((env.task.id, _without_reward(other)), first, f"task {index} reads the same at {density!r}")
            most = max(accumulate(step[1] for step in other if not step[4]["success"]))
            if density == "sparse":
                _expect(most <= 0.0, True, f"task {index} returns nothing at 'sparse' before it is solved ({most})")
            _expect(most < 1.0, True, f"task {index} returns less than 1.0 at {density!r} before it is solved ({most})")
            total = sum(step[1] for step in other)
            _expect(total <= 1.0 + _ROUNDING, True, f"task {index} returns at most 1.0 at {density!r} ({total})")
        count += len(actions)
    for env in envs:
        env.close()
    return f"{count} actions in {subject.tasks} tasks at {len(DENSITIES)} densities"


def splits_are_disjoint(subject: Subject) -> str:
    """No task of a split is in another one, neither by its id nor by all that an agent can see."""
    subject.need_numbered()
    seen: dict[Any, tuple[str, int]] = {}
    counts = []
    with closing(subject.make_base()) as env:
        splits = env.tasks.splits
    if len(splits) < 2:
        raise NotApplicableError(f"the world has one split: {splits[0]}")
    for split in splits:
        with closing(subject.make_base(split=split)) as env:
            size = env.tasks.size(split)
            count = subject.tasks if size is None else min(subject.tasks, size)
            for index in range(count):
                observation, _ = env.reset(options=subject.options(index))
                plan = env.oracle() if "oracle" in subject.supports else ()
                for key in (env.task.id, (observation, commands_of(env), plan)):
                    other = seen.setdefault(key, (split, index))
                    _expect(other[0], split, f"task {index} of split {split!r} is in no other (it is task {other[1]})")
            counts.append(count)
    return f"{sum(counts)} tasks of {len(splits)} splits, by their ids, first observations, actions and solutions"


def harder_settings_are_harder(subject: Subject) -> str:
    """Of the settings of a difficulty axis, the harder ones measure harder and are not easier for random play.

    The measured complexity grows; the oracle needs more actions where the length of the solution is the axis, and
    fewer nowhere; and an agent that draws admissible actions does not win more often (95% interval over tasks).
    """
    subject.need_numbered()
    if not subject.harder:
        raise NotApplicableError("the world declares no knob that is an axis, and none was named")
    compared = []
    for name, values in subject.harder.items():
        axis = next((knob.axis for knob in knobs_of(subject.id, subject.kwargs) if knob.name == name), None)
        measured = [_measured(subject, name, value) for value in values]
        for (easy, easier), (hard, harder) in pairwise(zip(values, measured, strict=True)):
            where = f"{name}={hard!r} is harder than {name}={easy!r}"
            grown = [key for key, mean in harder.means.items() if mean > easier.means.get(key, math.inf)]
            _expect(axis in grown if axis else bool(grown), True, f"{where}: {harder.means} after {easier.means}")
            if axis == "solution_length" and easier.oracle:
                longer = fmean(harder.oracle) > fmean(easier.oracle)
                _expect(longer, True, f"{where} for the oracle: {fmean(harder.oracle)} after {fmean(easier.oracle)}")
            if easier.random:
                difference = difference_interval([b - a for a, b in zip(easier.random, harder.random, strict=False)])
                _expect(difference.low <= 0, True, f"{where} for admissible-random: its success grew by {difference}")
        compared.append(f"{name} {' < '.join(map(str, values))}")
    return f"{', '.join(compared)}, {subject.tasks} tasks each"


def an_environment_pickles(subject: Subject) -> str:
    """An environment pickles, before and in the middle of an episode, and continues as it would have."""
    subject.need_deterministic()
    draw = Random(subject.seed)
    with closing(subject.make()) as wrapped:
        env = wrapped.unwrapped
        fresh = pickle.loads(pickle.dumps(env))
        _expect(begin(fresh, seed=subject.seed), begin(env, seed=subject.seed), "a fresh environment pickles")
        for index in range(subject.tasks):
            steps, _ = walk(env, subject.options(index), draw, _MOMENT, seed=subject.seed)
            if steps[-1][2] or steps[-1][3]:
                continue
            other = pickle.loads(pickle.dumps(env))
            future, after = proceed(env, draw, _MOMENT)
            _expect(do(other, after), future, f"a pickled episode of task {index} continues as it would have")
            other.close()
        fresh.close()
    return f"{subject.tasks} episodes, pickled after {_MOMENT} actions"


def vectors_play_the_same(subject: Subject) -> str:
    """Environments side by side, in this process and in another, play what one alone does."""
    subject.need_deterministic()
    seeds = [subject.seed, subject.seed + 1]
    alone = []
    for seed in seeds:
        with closing(subject.make()) as env:
            alone.append((env.reset(seed=seed)[0], env.step("look")[0]))
    kinds: tuple[tuple[Literal["in-process", "process"], int | None], ...] = (("in-process", None), ("process", 1))
    for kind, workers in kinds:
        envs = make_vec(gymnasium.spec(subject.id), 2, kind=kind, workers=workers, **subject.kwargs)
        with closing(envs):
            first, _ = envs.reset(seed=seeds)
            second = envs.step(("look", "look"))[0]
        _expect([*zip(first, second, strict=True)], alone, f"two environments {kind} play what one alone does")
    return "two environments in this process, and two in another"


def gymnasium_has_nothing_to_say(subject: Subject) -> str:
    """Gymnasium's checker neither fails nor warns."""
    with closing(subject.make()) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        # What it says of renderers concerns the modes that an environment was not made with.
        warnings.filterwarnings("ignore", message=".*render.*")
        try:
            check_env(env.unwrapped, skip_render_check=True)
        except Exception as error:
            raise BrokenPromiseError(f"Gymnasium's checker says: {type(error).__name__}: {error}") from error
    return "no errors, no warnings"


PROMISES: tuple[Promise, ...] = (
    the_oracle_solves_every_task,
    doing_nothing_earns_nothing,
    random_text_wins_nothing,
    equal_seeds_give_equal_episodes,
    snapshots_and_replays_agree,
    any_string_is_survived,
    no_observation_contains_the_solution,
    density_changes_rewards_alone,
    splits_are_disjoint,
    harder_settings_are_harder,
    an_environment_pickles,
    vectors_play_the_same,
    gymnasium_has_nothing_to_say,
)
"""What every world does."""


# What they share.


class _Null:
    """Answers with an empty text."""

    name = "null"

    def reset(self, seed: int) -> None:
        """A new episode begins."""

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """Nothing."""
        return ""


def _expect(value: object, expected: object, promise: str) -> None:
    """Raise `BrokenPromiseError` unless a value is as expected.

    Args:
        value, expected: the values; what they are is not told of two truth values, and of long ones where they begin to
            differ.
        promise: what is so where they are equal, as a sentence.
    """
    if value != expected:
        raise BrokenPromiseError(f"it is not so that {promise}{_difference(value, expected)}")


def _difference(value: object, expected: object) -> str:
    """In what two values differ, in brackets; "" for truth values."""
    place = ""
    while isinstance(value, list | tuple) and isinstance(expected, list | tuple) and len(value) == len(expected):
        number = next((n for n, pair in enumerate(zip(value, expected, strict=True)) if pair[0] != pair[1]), None)
        if number is None:  # A list and a tuple.
            break
        place += f"[{number}]"
        value, expected = value[number], expected[number]
    if isinstance(value, bool) and not place:
        return ""
    one, other = (each if isinstance(each, str) else repr(each) for each in (value, expected))
    here, there = excerpts(one, other)
    return f" ({f'at {place}, ' if place else ''}expected {there!r}, got {here!r})"


def _played(subject: Subject, env: gymnasium.Env[str, str], agent: Agent, index: int) -> Episode:
    """An episode of a task, whose world must not break."""
    episode = play(env, agent, options=subject.options(index), seed=subject.seed + index)
    _expect(episode.broken, "", f"the world of task {index} does not break")
    return episode


def _without_reward(steps: Sequence[Step]) -> list[tuple[Any, ...]]:
    """Steps without rewards, and without progress, which a world need not work out where nothing pays for it."""
    return [
        (observation, terminated, truncated, {name: value for name, value in info.items() if name != "progress"})
        for observation, _, terminated, truncated, info in steps
    ]


def _check_step(env: gymnasium.Env[str, str], action: str, step: tuple[Any, ...]) -> None:
    """Raise `BrokenPromiseError` for a step that does not return what the contract says."""
    observation, reward, terminated, truncated, info = step
    after = f"after {action!r:.100}"
    if observation not in env.observation_space:
        raise BrokenPromiseError(f"the observation {after} is not in its space: {_outside(observation, env)}")
    _expect(math.isfinite(float(reward)), True, f"the reward {after} is a number")
    _expect((type(terminated), type(truncated)), (bool, bool), f"both ends {after} are truth values")
    _expect("broken" in info, False, f"the world does not break {after}")
    if isinstance(env.unwrapped, TextEnv):
        _expect(info["success"] and not terminated, False, f"a success {after} ends the episode")


def _outside(observation: object, env: gymnasium.Env[str, str]) -> str:
    """Why an observation is not in its space, in words."""
    space = env.observation_space
    if not isinstance(space, gymnasium.spaces.Text) or not isinstance(observation, str):
        return f"it is {observation!r:.100}, and the space {space}"
    if not space.min_length <= len(observation) <= space.max_length:
        return f"it has {len(observation)} characters, and the space allows {space.min_length} to {space.max_length}"
    missing = next(character for character in observation if character not in space.character_set)
    return f"it holds {missing!r}, which the space's charset lacks"


@dataclass(frozen=True, slots=True)
class _Measured:
    """What one setting is like: means of the measured complexity, actions of the oracle, successes at random."""

    means: dict[str, float]
    oracle: list[int]
    random: list[float]


def _measured(subject: Subject, name: str, value: Any) -> _Measured:
    """Play the tasks of a setting; the turn budget is the same for all of them."""
    values: dict[str, list[float]] = {}
    oracle, random = [], []
    with closing(subject.make(**{name: value}, max_turns=WALK)) as env:
        for index in range(subject.tasks):
            _, info = env.reset(options=subject.options(index))
            for key in AXES:
                measured = getattr(info["complexity"], key)
                if measured is not None:
                    values.setdefault(key, []).append(measured)
            if "oracle" in subject.supports:
                plan = env.unwrapped.oracle()  # type: ignore[attr-defined]
                oracle.append(len(plan or ()))
            if "admissible_actions" in subject.supports:
                episode = _played(subject, env, make_agent("admissible-random", env), index)
                random.append(float(episode.success))
    return _Measured({key: fmean(each) for key, each in values.items()}, oracle, random)
