"""What every world promises, as checks that the author of one can run (see `certificate`).

Each promise is a function of a `Subject`. It returns what it has checked, in words, and raises `BrokenPromiseError` if
the world does something else, or `NotApplicableError` if the world declares no such capability.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass
from itertools import accumulate, pairwise
from random import Random
from statistics import fmean
from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec, registry
from gymnasium.utils.env_checker import check_env

from textagent_gym.agents import Agent, RandomAgent, make_agent
from textagent_gym.core import TextEnv
from textagent_gym.errors import TextAgentError
from textagent_gym.evaluation.comparison import difference_interval
from textagent_gym.evaluation.episode import Episode, play
from textagent_gym.knobs import Knob, options_of
from textagent_gym.registration import full_id
from textagent_gym.spaces import check_text_spaces
from textagent_gym.vector import make_vec

DENSITIES = ("sparse", 0.5, "dense")
_MOMENT = 4  # Actions before a moment that is saved, and after it: milestones may have been reached.
_WALK = 30  # Actions of an episode that is compared step by step.
_LONGEST = 100  # Actions of an episode in an environment without a turn budget of its own.
_LEAK = 3  # Commands of a plan in a row that give it away: one or two are in many a description.
_TOLD = ("admissible_actions", "oracle_action")  # What `infos` asks for.
_NEAR = 30  # Characters between two commands of a list: " and then, after that, you could ".
_ROUNDING = 1e-9  # Sums of some hundred rewards differ by less.
_SECONDS = 600.0  # Seconds for a process that plays the same episodes: a world may have to make its games.
_HASH_SEEDS = ("1", "2")


class BrokenPromiseError(TextAgentError, AssertionError):
    """A world does not do what every world does; the message says what, and what came instead."""


class NotApplicableError(TextAgentError):
    """A promise does not concern a world; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A world that is checked.

    Attributes:
        id: registered id.
        kwargs: keyword arguments of the environment.
        tasks: number of tasks that each check plays, at most as many as the split has.
        strings: number of random strings that the world must survive.
        seed: seed of everything that is drawn.
        harder: values of keyword arguments, each from easy to hard.
        supports: what the world declares; see `TextEnv.supports`.
        numbered: whether the world is a `TextEnv`, whose tasks have numbers.
        deterministic: whether equal actions have equal results.
    """

    id: str
    kwargs: dict[str, Any]
    tasks: int
    strings: int
    seed: int
    harder: Mapping[str, tuple[Any, ...]]
    supports: frozenset[str]
    numbered: bool
    deterministic: bool

    @classmethod
    def of(
        cls,
        name: str,
        kwargs: dict[str, Any],
        *,
        tasks: int,
        strings: int,
        seed: int,
        harder: Mapping[str, tuple[Any, ...]] | None,
    ) -> Subject:
        """The subject of an id; see `certificate.certify` for the arguments and the errors."""
        id = full_id(name)
        with closing(gymnasium.make(id, **kwargs)) as env:
            check_text_spaces(env)
            base = env.unwrapped
            supports: frozenset[str] = frozenset()
            sizes: list[int | None] = []
            deterministic = not gymnasium.spec(id).nondeterministic
            if isinstance(base, TextEnv):
                supports, sizes = base.supports, [base.tasks.size(base.split), base.num_tasks]
                deterministic = deterministic and base.deterministic
        count = min(size for size in (tasks, *sizes) if size is not None)
        return cls(
            id=id,
            kwargs=kwargs,
            tasks=count,
            strings=strings,
            seed=seed,
            harder=_axes(id, kwargs) if harder is None else harder,
            supports=supports,
            numbered=isinstance(base, TextEnv),
            deterministic=deterministic,
        )

    def make(self, **kwargs: Any) -> gymnasium.Env[str, str]:
        """An environment of the world, with further keyword arguments."""
        spec = gymnasium.spec(self.id)
        limit = None if self.numbered else spec.max_episode_steps or _LONGEST
        return gymnasium.make(self.id, max_episode_steps=limit, **{**self.kwargs, **kwargs})

    def make_base(self, **kwargs: Any) -> TextEnv[Any]:
        """The `TextEnv` of the world."""
        self.need_numbered()
        base = self.make(**kwargs).unwrapped
        assert isinstance(base, TextEnv)
        return base

    def options(self, index: int) -> dict[str, Any] | None:
        """Options of the reset that play a task."""
        return {"task_index": index} if self.numbered else None

    def need(self, *capabilities: str) -> None:
        """Raise `NotApplicableError` unless the world declares capabilities."""
        self.need_numbered()
        for capability in capabilities:
            if capability not in self.supports:
                raise NotApplicableError(f"the world declares no {capability.replace('_', ' ')}")

    def need_numbered(self) -> None:
        """Raise `NotApplicableError` unless the world is a `TextEnv`."""
        if not self.numbered:
            raise NotApplicableError("the world is not built on textagent_gym.TextEnv")

    def need_deterministic(self) -> None:
        """Raise `NotApplicableError` if the world declares that equal actions may have other results."""
        if not self.deterministic:
            raise NotApplicableError("the world declares that equal actions may have other results")


Promise = Callable[[Subject], str]


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
            _expect(episode.success, False, f"empty actions solve task {index}")
            best = max((turn.reward for turn in episode.turns), default=0.0)
            _expect(best <= 0.0, True, f"empty actions earn nothing in task {index} (one earned {best})")
    return f"{subject.tasks} tasks"


def random_text_wins_nothing(subject: Subject) -> str:
    """An agent that writes random text solves no task."""
    with closing(subject.make()) as env:
        for index in range(subject.tasks):
            episode = _played(subject, env, RandomAgent(env), index)
            _expect(episode.success, False, f"random text solves task {index}")
    return f"{subject.tasks} tasks"


def equal_seeds_give_equal_episodes(subject: Subject) -> str:
    """Equal seeds give equal episodes in this process and in others, whatever `PYTHONHASHSEED` is."""
    subject.need_deterministic()
    here = transcripts(subject)
    again = transcripts(subject, backwards=True)
    _expect(again, here, "equal seeds give equal episodes in one process, whatever was played before")
    asked = json.dumps([gymnasium.spec(subject.id).to_json(), subject.kwargs, subject.tasks, subject.seed])
    program = "import sys; from textagent_gym.evaluation.promises import print_transcripts; print_transcripts()"
    for hash_seed in _HASH_SEEDS:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=asked,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise BrokenPromiseError(f"another process cannot play the world: {done.stderr[-500:]}")
        there = json.loads(done.stdout.splitlines()[-1])
        for seed, (one, other) in enumerate(zip(here, there, strict=True), start=subject.seed):
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
            steps, actions = _walk(one, subject.options(index), draw, _MOMENT)
            if steps[-1][2] or steps[-1][3]:
                continue
            moment = one.snapshot()
            future, after = _continue(one, draw, _MOMENT)
            for name, env in (("the same environment", one), ("another environment", other)):
                env.restore(moment)
                _expect(_do(env, after), future, f"a snapshot of task {index} is restored in {name}")
            other.reset(options=subject.options(index))
            _expect(
                _do(other, (*actions, *after)), (*steps[1:], *future), f"task {index} is the same when it is replayed"
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
            known = [observation, *_commands(env)]
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
    """Neither observations nor texts in `info` list what the oracle would do next."""
    subject.need("oracle")
    draw, read = Random(subject.seed), 0
    with closing(subject.make_base()) as env:
        for index in range(subject.tasks):
            observation, info = env.reset(seed=subject.seed, options=subject.options(index))
            for _ in range(_WALK):
                plan = env.oracle()
                for name, text in {"the observation": observation, **_texts(info)}.items():
                    leaked = leak(text, plan or ())
                    read += 1
                    _expect(leaked, (), f"{name} of {env.task.id} does not contain what the oracle does next")
                action = _choice(env, draw)
                observation, _, terminated, truncated, info = env.step(action)
                if terminated or truncated:
                    break
    return f"{read} texts, none with {_LEAK} commands of the shortest plan in a row"


def density_changes_rewards_alone(subject: Subject) -> str:
    """Equal actions give equal observations and ends at every density; unsolved episodes return less than 1.0.

    They return nothing where only success pays, and no episode returns more than 1.0.
    """
    subject.need_numbered()
    subject.need_deterministic()
    envs = [subject.make_base(reward_density=density) for density in DENSITIES]
    count = 0
    for index in range(subject.tasks):
        steps, actions = _walk(envs[0], subject.options(index), Random(subject.seed + index), _WALK)
        first = envs[0].task.id, _without_reward(steps)
        for env, density in zip(envs, DENSITIES, strict=True):
            begun = _begin(env, subject.options(index))
            other = (begun, *_do(env, actions))
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
                for key in (env.task.id, (observation, _commands(env), plan)):
                    other = seen.setdefault(key, (split, index))
                    _expect(other[0], split, f"task {index} of split {split!r} is in no other (it is task {other[1]})")
            counts.append(count)
    return f"{sum(counts)} tasks of {len(splits)} splits, by their ids, first observations, actions and solutions"


def harder_settings_are_harder(subject: Subject) -> str:
    """Of the settings of a difficulty axis, the harder ones measure harder and are not easier for anybody.

    The measured complexity grows; the oracle needs more actions where the length of the solution is the axis, and
    fewer nowhere; and an agent that draws admissible actions does not win more often (95% interval over tasks).
    """
    subject.need_numbered()
    if not subject.harder:
        raise NotApplicableError("the world declares no knob that is an axis, and none was named")
    compared = []
    for name, values in subject.harder.items():
        axis = next((knob.axis for knob in _knobs(subject.id, subject.kwargs) if knob.name == name), None)
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
        _expect(_begin(fresh, seed=subject.seed), _begin(env, seed=subject.seed), "a fresh environment pickles")
        for index in range(subject.tasks):
            steps, _ = _walk(env, subject.options(index), draw, _MOMENT, seed=subject.seed)
            if steps[-1][2] or steps[-1][3]:
                continue
            other = pickle.loads(pickle.dumps(env))
            future, after = _continue(env, draw, _MOMENT)
            _expect(_do(other, after), future, f"a pickled episode of task {index} continues as it would have")
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
    if value != expected:
        raise BrokenPromiseError(f"{promise}: expected {expected!r:.300}, got {value!r:.300}")


def _played(subject: Subject, env: gymnasium.Env[str, str], agent: Agent, index: int) -> Episode:
    """An episode of a task, whose world must not break."""
    episode = play(env, agent, options=subject.options(index), seed=subject.seed + index)
    _expect(episode.broken, "", f"the world of task {index} does not break")
    return episode


Step = tuple[str, float, bool, bool, dict[str, Any]]
"""What a reset or a step returns: observation, reward, terminated, truncated and `info`."""


def _begin(env: gymnasium.Env[str, str], options: dict[str, Any] | None = None, seed: int | None = None) -> Step:
    observation, info = env.reset(seed=seed, options=options)
    return observation, 0.0, False, False, info


def _do(env: gymnasium.Env[str, str], actions: Sequence[str]) -> tuple[Step, ...]:
    """What each action returns, until the episode ends."""
    steps: list[Step] = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append((observation, float(reward), terminated, truncated, info))
        if terminated or truncated:
            break
    return tuple(steps)


def _walk(
    env: gymnasium.Env[str, str], options: dict[str, Any] | None, draw: Random, most: int, seed: int | None = None
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Begin a task and act; returns each step, the reset first, and the actions."""
    begun = _begin(env, options, seed)
    steps, actions = _continue(env, draw, most)
    return (begun, *steps), actions


def _continue(env: gymnasium.Env[str, str], draw: Random, most: int) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """Act as the oracle does, at random, or in vain; returns what each step returned, and the actions."""
    steps: tuple[Step, ...] = ()
    actions: list[str] = []
    while len(actions) < most and not (steps and (steps[-1][2] or steps[-1][3])):
        actions.append(_choice(env, draw))
        steps = (*steps, *_do(env, actions[-1:]))
    return steps, tuple(actions)


def _choice(env: gymnasium.Env[str, str], draw: Random) -> str:
    """An action: the oracle's, an admissible one, or one of no sense."""
    base, chance = env.unwrapped, draw.random()
    if isinstance(base, TextEnv):
        if chance < 0.4 and "oracle" in base.supports:
            plan = base.oracle()
            if plan:
                return str(plan[0])
        commands = _commands(env)
        if chance < 0.9 and commands:
            return draw.choice(commands)
    return draw.choice(("look", "wait a moment", "xyzzy"))


def _commands(env: gymnasium.Env[str, str]) -> tuple[str, ...]:
    """The admissible actions; none where the world does not list them."""
    base = env.unwrapped
    if not isinstance(base, TextEnv) or "admissible_actions" not in base.supports:
        return ()
    return base.admissible_actions()


def _without_reward(steps: Sequence[Step]) -> list[tuple[Any, ...]]:
    """Steps without rewards, and without progress, which a world need not work out where nothing pays for it."""
    return [
        (observation, terminated, truncated, {name: value for name, value in info.items() if name != "progress"})
        for observation, _, terminated, truncated, info in steps
    ]


def transcripts(subject: Subject, *, backwards: bool = False) -> list[str]:
    """Digests of one episode per seed, hexadecimal.

    Args:
        subject: world that is played.
        backwards: whether the episode of the last seed is played first.
    """
    digests = []
    with closing(subject.make()) as env:
        for seed in range(subject.seed, subject.seed + subject.tasks)[:: -1 if backwards else 1]:
            steps, actions = _walk(env, None, Random(seed), _WALK, seed=seed)
            digests.append(hashlib.sha256(repr((steps, actions)).encode(errors="backslashreplace")).hexdigest())
    return digests[:: -1 if backwards else 1]


def print_transcripts() -> None:
    """In a process of its own: read a spec, keyword arguments, tasks and seed as JSON, and print `transcripts`."""
    text, kwargs, tasks, seed = json.load(sys.stdin)
    spec = EnvSpec.from_json(text)
    registry.setdefault(spec.id, spec)
    print(json.dumps(transcripts(Subject.of(spec.id, kwargs, tasks=tasks, strings=1, seed=seed, harder={}))))


_STRANGE = (
    *("", " ", "\n", "\t", "\0", "\r\n", "\x1b[2J", "\u202e", "\ufeff", "\ud800", "%s%n{0}", "../../etc/passwd"),
    *(
        "quit",
        "restart",
        "save",
        "restore",
        "undo",
        "help",
        "0",
        "-1",
        "1e999",
        "null",
        "{}",
        "[]",
        "{",
        "\\",
        "'",
        '"',
    ),
    *('{"name": "act", "arguments": 3}', '{"name": null}', "```bash\n", "<action>", "look. look. look", "all", "it"),
)


def strange_text(draw: Random, known: Sequence[str]) -> str:
    """A random string: of any characters, of known texts cut and joined, of words that programs mind; or a long one."""
    kind = draw.random()
    if kind < 0.3:
        return "".join(chr(draw.randrange(sys.maxunicode + 1)) for _ in range(draw.randrange(40)))
    if kind < 0.5:
        return "".join(chr(draw.randrange(128)) for _ in range(draw.randrange(60)))
    if kind < 0.6:
        return draw.choice(_STRANGE)
    if kind < 0.62:
        return (draw.choice(known) or "x") * draw.randrange(1, 100)
    words = draw.choice(known).split(" ")
    draw.shuffle(words)
    text = " ".join([*words[: draw.randrange(8)], draw.choice(_STRANGE)])
    return text.upper() if kind > 0.9 else text


def _check_step(env: gymnasium.Env[str, str], action: str, step: tuple[Any, ...]) -> None:
    """Raise `BrokenPromiseError` for a step that does not return what the contract says."""
    observation, reward, terminated, truncated, info = step
    after = f"after {action!r:.100}"
    _expect(observation in env.observation_space, True, f"the observation {after} is in its space")
    _expect(math.isfinite(float(reward)), True, f"the reward {after} is a number")
    _expect((type(terminated), type(truncated)), (bool, bool), f"both ends {after} are truth values")
    _expect("broken" in info, False, f"the world does not break {after}")
    if isinstance(env.unwrapped, TextEnv):
        _expect(info["success"] and not terminated, False, f"a success {after} ends the episode")


def _texts(info: Mapping[str, Any]) -> dict[str, str]:
    """The texts in an `info`, by what they are called in a message; lists of texts are one."""
    return {f"info[{name!r}]": ", ".join(_texts_in(value)) for name, value in info.items() if name not in _TOLD}


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts_in(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts_in([getattr(value, each.name) for each in fields(value)])


def leak(text: str, plan: Sequence[str]) -> tuple[str, ...]:
    """The first commands of a plan that stand in a text in their order, close to each other; () if none do.

    >>> leak("First, open door, then go east, and take key.", ["open door", "go east", "take key", "go west"])
    ('open door', 'go east', 'take key')
    """
    text = " ".join(text.lower().split())
    for first in range(len(plan) - _LEAK + 1):
        wanted = tuple(plan[first : first + _LEAK])
        if len(set(wanted)) > 1 and _stand_in_order(text, [" ".join(command.lower().split()) for command in wanted]):
            return wanted
    return ()


def _stand_in_order(text: str, commands: Sequence[str]) -> bool:
    starts = _places(text, commands[0])
    return any(_follow(text, start + len(commands[0]), commands[1:]) for start in starts)


def _follow(text: str, end: int, commands: Sequence[str]) -> bool:
    """Whether commands follow a place in a text, each close to the one before."""
    for command in commands:
        place = text.find(command, end, end + _NEAR + len(command))
        if place < 0:
            return False
        end = place + len(command)
    return True


def _places(text: str, part: str) -> Iterator[int]:
    place = text.find(part) if part else -1
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


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
    with closing(subject.make(**{name: value}, max_turns=_WALK)) as env:
        for index in range(subject.tasks):
            _, info = env.reset(options=subject.options(index))
            for key in ("state_size", "action_size", "solution_length"):
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


def _knobs(id: str, kwargs: Mapping[str, Any]) -> list[Knob]:
    return [knob for options in options_of(id, kwargs) for knob in options.knobs()]


def _axes(id: str, kwargs: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Values of the knobs that are an axis: that of the world as it is asked for, and half as much again."""
    asked = {**gymnasium.spec(id).kwargs, **kwargs}
    axes: dict[str, tuple[Any, ...]] = {}
    for knob in _knobs(id, kwargs):
        value = asked.get(knob.name, knob.default)
        if knob.axis is None or isinstance(value, bool) or not isinstance(value, int):
            continue
        more = value + (value + 1) // 2
        axes[knob.name] = (value, more if knob.high is None else min(more, int(knob.high)))
    return {name: values for name, values in axes.items() if values[0] < values[1]}
