"""Many episodes at once: whichever environment is ready gets the next action, and a slow one stalls nobody.

requests --> slots --reset/send--> pool --recv (whoever is ready)--> prompts --> generator --> actions --> pool
               ^------------ a slot whose episode has ended takes the next request <-------------------------'
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel

from baselines.envs.labelled import LABEL
from baselines.envs.pool import MakeEnv, Pool, make_pool
from baselines.policy.chat import ChatFormat
from baselines.policy.models import room_before_action
from baselines.rollout.backend import Completion, ContinuousGenerator, Generator, Prompt, make_generator
from baselines.rollout.memory import Context, first_context, next_context
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.config import Precision, RolloutConfig
from textagent_gym import Complexity
from textagent_gym.errors import WorkerError, WorldBrokenError
from textagent_gym.vector import Received

_REPLAYS = 3
"""Number of times that episodes of one group are played again because their world broke. A world that breaks oftener is
broken for good, and playing it again would only cost time."""
_STEPS = 3
"""Number of steps, one after the other, in which an environment shows how fast it is, whatever it plays."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where an episode begins, other than at its task's beginning.

    Attributes:
        moment: saved moment of the environment.
        prompt: ids of the conversation up to there, which the first turn of the new episode has as its prompt.
        observation: last text that the environment showed.
    """

    moment: Any
    prompt: tuple[int, ...]
    observation: str


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """An episode to be played.

    Attributes:
        group: number of its group; episodes of a group begin in the same state.
        seed: seed for `reset`.
        options: options for `reset`.
        sampling_seed: seed of the tokens that are sampled in this episode.
        start: moment at which it begins; `None` for the beginning of the task.
        saves: whether the environment's moment before each action is saved, in `Turn.moment`.
    """

    group: int
    seed: int | None = None
    options: dict[str, Any] | None = None
    sampling_seed: int = 0
    start: Start | None = None
    saves: bool = False


def make_collector(
    config: RolloutConfig,
    policy: PreTrainedModel,
    chat: ChatFormat,
    make_env: MakeEnv,
    slots: int,
    *,
    precision: Precision = "float32",
) -> Collector:
    """A policy in a pool of environments.

    Args:
        config: settings of the sampling and of the pool; its `slots` are not read.
        policy: model that acts.
        chat: format of its conversations.
        make_env: function that makes one environment.
        slots: number of episodes played at once.
        precision: precision of a back end that holds weights of its own.

    Raises:
        InvalidOptionError: an action may fill the whole context; or see `make_generator`.
    """
    generator = make_generator(
        config.generator,
        policy,
        chat.end_id,
        slots=slots,
        max_action_tokens=config.max_action_tokens,
        temperature=config.temperature,
        memory=config.vllm_memory,
        precision=precision,
        server_url=config.server_url,
    )
    room_before_action(generator.context_length, config.max_action_tokens)  # A server may read less than the policy.
    pool = make_pool(make_env, slots, config.pool, config.workers)
    return Collector(pool, generator, chat, patience=config.patience, answer_seconds=config.answer_seconds)


def share_of(requests: Sequence[EpisodeRequest], processes: int, process: int) -> list[EpisodeRequest]:
    """The episodes that one of several processes plays: neighbours, so that groups stay together."""
    return list(requests[process * len(requests) // processes : (process + 1) * len(requests) // processes])


@dataclass(frozen=True, slots=True)
class BrokenEpisode:
    """An episode that could not be played, and why."""

    request: EpisodeRequest
    reason: str


@dataclass(frozen=True, slots=True)
class Collection:
    """What came of the requests.

    Attributes:
        trajectories: the episodes that were played, in the order of their requests.
        broken: the episodes whose world broke each time that they were played.
        breaks: every time that a world broke, also of episodes that were played in the end.
    """

    trajectories: list[Trajectory]
    broken: list[BrokenEpisode]
    breaks: list[BrokenEpisode] = field(default_factory=list)

    def __add__(self, other: Collection) -> Collection:
        return Collection(
            self.trajectories + other.trajectories, self.broken + other.broken, self.breaks + other.breaks
        )


@dataclass(slots=True)
class _World:
    """One environment of the pool."""

    number: int
    late: bool = False  # A batch has waited for it in vain, and since then no answer came within the patience.
    overdue: bool = False  # The answer is no longer wanted: the episode is played elsewhere.
    waited: float = 0.0  # Seconds until the last answer.
    reset: float = 0.0  # Seconds of the last reset.
    steps: deque[float] = field(default_factory=lambda: deque(maxlen=_STEPS))  # Seconds of the last ones.

    def catch_up_seconds(self, turns: int) -> float:
        """Seconds until it would have come to a moment after so many turns, and acted once more."""
        return self.reset + (turns + 1) * max(self.steps)


@dataclass(slots=True)
class _Slot:
    """One conversation: the environment that it is with, the last request to it, and its current episode."""

    number: int
    world: _World
    position: int | None = None  # Of the episode among the requests; None while the slot is idle.
    behind: int | None = None  # Number of actions that another environment has taken again; None once it has caught up.
    completion: Completion | None = None  # What was sent; None after a reset.
    observation: str = ""
    instructions: str = ""  # Those that the first observation does not hold.
    label: str | None = None  # What an expert would do after the observation.
    complexity: Complexity | None = None  # Of the task, as the reset told it.
    state: str = ""  # Key of the present state, where the environment tells it.
    moment: Any = None  # The present moment, where it is saved.
    context: Context | None = None  # Of the next action; None before the first observation.
    turns: list[Turn] = field(default_factory=list)


class Collector:
    """Plays episodes with a language model.

    Args:
        pool: the environments, one per slot of the generator; closed with the collector.
        generator: back end that samples the actions; closed with the collector.
        chat: format that turns observations into token ids.
        patience: seconds for which a batch waits for slower environments after the first has answered; one that has
            not answered by then is not waited for until it is quicker again. `inf` waits for all of them. A
            `ContinuousGenerator` waits for nobody unless this is `inf`: whoever has answered joins those that speak.
        answer_seconds: seconds after which an environment that has not answered counts as broken, in a pool that can
            interrupt its environments.

    An episode ends when its environment says so, or when what the policy would read next outgrows the model's context
    (a memory that leaves turns out leaves out more of them before that); it is then cut there and marked `overflow`. An
    episode whose world breaks is dropped and played again. Once no episode is left to begin, idle environments take
    over the episodes of those that are not waited for: the same actions bring them to where the episode is.

    Equal requests give equal episodes: the task and what is sampled follow from the request alone, whichever slot plays
    it and whoever is ready first. Log-probabilities are equal to the last bit where batches are composed equally too:
    with environments in this process, or with infinite patience.
    """

    def __init__(
        self,
        pool: Pool,
        generator: Generator,
        chat: ChatFormat,
        *,
        patience: float = 0.05,
        answer_seconds: float = 600.0,
    ) -> None:
        self._pool = pool
        self.generator = generator
        self._chat = chat
        self._patience = patience
        self._answer_seconds = answer_seconds
        self._slots = [_Slot(number, _World(number)) for number in range(min(pool.num_envs, generator.slots))]
        self._with = list(self._slots)  # The slot of each environment.
        self._asked: dict[int, float] = {}  # When environments that have not answered were asked; the first is first.
        self._moves = patience < math.inf
        self._stream: ContinuousGenerator | None = None
        if patience < math.inf and isinstance(generator, ContinuousGenerator):
            self._stream = generator

    def collect(
        self, requests: Iterable[EpisodeRequest], progress: Callable[[Trajectory], None] | None = None
    ) -> Collection:
        """Play all episodes.

        Args:
            requests: episodes to play.
            progress: called with each episode that has ended.

        Raises:
            WorldBrokenError: no environment answers any more.
        """
        for slot in self._slots:  # Episodes that an error has left behind: their answers are not wanted.
            slot.world.overdue |= slot.position is not None and slot.world.number in self._asked
            slot.position = slot.behind = None
        everything = list(requests)
        run = _Run(everything, deque(range(len(everything))), progress)
        try:
            while len(run.done) + len(run.broken) < len(everything):
                for slot, completion in self._speak(run, self._gather(run)):
                    slot.completion = completion
                    self._send(slot, self._chat.text(list(completion.ids)))
        finally:  # After an error or Ctrl-C, some slots still speak.
            if self._stream is not None:
                self._stream.abandon()
        return Collection(
            [run.done[position] for position in sorted(run.done)],
            [BrokenEpisode(everything[position], run.broken[position]) for position in sorted(run.broken)],
            run.breaks,
        )

    def close(self) -> None:
        """Close the environments and the generator."""
        self._pool.close()
        self.generator.close()

    def _speak(self, run: _Run, ready: list[_Slot]) -> list[tuple[_Slot, Completion]]:
        """Let the slots whose turn it is speak; those whose actions have ended, in a stream also earlier ones."""
        prompts = [_prompt(slot, run.request(slot)) for slot in ready]
        if self._stream is None:
            return list(zip(ready, self.generator.generate(prompts) if prompts else [], strict=True))
        self._stream.submit(prompts)
        ended = self._stream.advance() if self._stream.speaking else []
        return [(self._slots[number], completion) for number, completion in ended]

    def _gather(self, run: _Run) -> list[_Slot]:
        """The slots whose turn it is to speak: all that answer within the patience after the first one.

        In a stream, which must not be held up, it is all that have answered by now. While nobody speaks, it waits for
        the first answer, or until another environment is late.
        """
        self._fill(run)
        deadline = math.inf
        if self._stream is not None:
            on_time = [asked for number, asked in self._asked.items() if not self._with[number].world.late]
            deadline = -math.inf if self._stream.speaking else min(on_time, default=math.inf) + self._patience
        ready: dict[int, _Slot] = {}
        while answers := self._answers(run, deadline):
            for number in sorted(answers):
                slot, answer = self._with[number], answers[number]
                if slot.world.overdue:  # It answers after all, and can be used again.
                    slot.world.overdue = False
                elif isinstance(answer, str):
                    self._break(run, slot, answer)
                elif slot.behind is not None:
                    self._catch_up(run, slot, answer)
                else:
                    try:
                        if self._read(run, slot, answer):
                            ready[slot.number] = slot
                    except (WorkerError, WorldBrokenError) as error:  # While its moment was saved or restored.
                        self._break(run, slot, str(error))
                self._fill(run)
            if ready:
                awaited = any(not self._with[number].world.late for number in self._asked)
                patience = self._patience if awaited and self._stream is None else 0.0
                deadline = min(deadline, time.monotonic() + patience)
        return [ready[number] for number in sorted(ready)]

    def _answers(self, run: _Run, deadline: float) -> dict[int, Received | str]:
        """The next answer by its environment; none after the deadline, or where none is awaited.

        With infinite patience it is all that are awaited, because the order in which slots are filled again must not
        follow from who answers first.
        """
        answers: dict[int, Received | str] = {}
        while self._asked and (run.waiting or any(not self._with[number].world.overdue for number in self._asked)):
            received = self._receive(deadline)
            if received is None:
                self._give_up(run)
                now = time.monotonic()
                if now >= deadline:
                    for number, asked in self._asked.items():
                        self._with[number].world.late |= self._stream is None or now >= asked + self._patience
                break
            world, answer = received
            world.waited = time.monotonic() - self._asked.pop(world.number, -math.inf)
            world.late &= world.waited > self._patience
            answers[world.number] = answer
            if self._patience < math.inf:
                break
        return answers

    def _fill(self, run: _Run) -> None:
        """Begin the next episodes in idle slots; where none is left, let their environments help out slow ones."""
        idle = deque([slot for slot in self._slots if slot.position is None and not slot.world.overdue])
        while run.waiting and idle:
            slot = idle.popleft()
            slot.position = run.waiting.popleft()
            slot.completion, slot.turns, slot.moment = None, [], None
            self._reset(run, slot)
        if run.waiting and not self._asked and all(slot.world.overdue for slot in self._slots):
            raise WorldBrokenError(f"none of {len(self._slots)} environments answers within {self._answer_seconds} s")
        if self._moves and idle:
            self._help(run, [slot for slot in idle if len(slot.world.steps) == _STEPS])

    def _help(self, run: _Run, idle: list[_Slot]) -> None:
        """Give the environments of idle slots to episodes whose own are slow, if they catch up before those answer.

        They are brought to where the episodes are by the same resets and the same actions.
        """
        for slot in [self._with[number] for number in self._asked]:
            world = slot.world
            if not idle or not world.late or world.overdue or len(world.steps) < _STEPS:
                continue
            request = run.request(slot)
            if request.start is not None or request.saves:
                continue
            helper = min(idle, key=lambda other: other.world.catch_up_seconds(len(slot.turns)))
            if helper.world.catch_up_seconds(len(slot.turns)) < min(world.steps):
                idle.remove(helper)
                slot.world, helper.world = helper.world, world
                self._with[slot.world.number], self._with[world.number] = slot, helper
                world.overdue = True
                slot.behind = None if slot.completion is None else 0
                self._reset(run, slot)

    def _catch_up(self, run: _Run, slot: _Slot, answer: Received) -> None:
        """Take the next action of an episode again in another environment, or its last one for the first time."""
        assert slot.behind is not None
        assert slot.completion is not None
        if slot.behind < len(slot.turns):
            turn = slot.turns[slot.behind]
            shown, action, behind = turn.observation, turn.text, slot.behind + 1
        else:
            shown, action, behind = slot.observation, self._chat.text(list(slot.completion.ids)), None
        if answer.observation != shown or answer.terminated or answer.truncated:
            self._moves = False
            self._restart(run, slot, "an environment has not answered in time, and another one answers otherwise")
            return
        slot.behind = behind
        self._send(slot, action)

    def _reset(self, run: _Run, slot: _Slot) -> None:
        request = run.request(slot)
        self._asked[slot.world.number] = time.monotonic()
        self._pool.reset(slot.world.number, seed=request.seed, options=request.options)

    def _send(self, slot: _Slot, action: str) -> None:
        self._asked[slot.world.number] = time.monotonic()
        self._pool.send(slot.world.number, action)

    def _receive(self, deadline: float) -> tuple[_World, Received | str] | None:
        """The next answer of any environment, or `None` if none comes in time; a text says why it broke."""
        until = min(deadline, next(iter(self._asked.values())) + self._answer_seconds)
        timeout = None if until == math.inf else max(0.0, until - time.monotonic())
        try:
            received = self._pool.recv(timeout)
        except Exception as error:
            cause = error if isinstance(error, WorkerError) else error.__cause__
            if isinstance(cause, WorkerError) and cause.slot is not None:
                world = self._with[cause.slot].world
                if world.overdue or isinstance(error, (WorkerError, WorldBrokenError)):
                    return world, str(error)
                self._asked.pop(world.number, None)
            elif isinstance(error, TimeoutError):
                return None
            raise
        reason = received.info.get("broken")
        for name, number in (("reward", received.reward), ("score", received.info.get("score"))):
            if not reason and number is not None and not math.isfinite(number):
                reason = f"the {name} is {number}"
        return self._with[received.slot].world, str(reason) if reason else received

    def _give_up(self, run: _Run) -> None:
        """Play the episodes of environments that have not answered in time elsewhere."""
        latest = time.monotonic() - self._answer_seconds
        for number in [number for number, asked in self._asked.items() if asked <= latest]:
            slot = self._with[number]
            del self._asked[number]
            self._pool.restart(number)
            if not slot.world.overdue:
                slot.world.overdue = True
                self._break(run, slot, f"no answer within {self._answer_seconds:g} seconds")

    def _break(self, run: _Run, slot: _Slot, reason: str) -> None:
        """Drop an episode whose world broke; it is played again, unless its group has broken too often."""
        assert slot.position is not None
        group = run.request(slot).group
        if run.replays[group] < _REPLAYS:
            run.replays[group] += 1
            self._restart(run, slot, reason)
            return
        run.breaks.append(BrokenEpisode(run.request(slot), reason))
        run.broken[slot.position] = reason
        slot.position = slot.behind = None

    def _restart(self, run: _Run, slot: _Slot, reason: str) -> None:
        """Play an episode again from its beginning."""
        assert slot.position is not None
        run.breaks.append(BrokenEpisode(run.request(slot), reason))
        run.waiting.appendleft(slot.position)
        slot.position = slot.behind = None

    def _read(self, run: _Run, slot: _Slot, answer: Received) -> bool:
        """Take in an answer; whether the episode continues."""
        if slot.completion is None:
            slot.world.reset = slot.world.waited
            instructions = str(answer.info.get("instructions", ""))
            # An environment may have been asked to put them before its first observation.
            slot.instructions = "" if instructions in answer.observation else instructions
            slot.observation = answer.observation
            slot.label = answer.info.get(LABEL)
            slot.complexity = answer.info.get("complexity")
            slot.state = str(answer.info.get("state_key", ""))
            slot.context = first_context(self._chat, slot.observation, slot.instructions)
            start = run.request(slot).start
            if start is not None:
                self._pool.call(slot.world.number, "restore", start.moment, timeout=self._answer_seconds)
                slot.observation = start.observation
                slot.context = Context(start.prompt, fresh=True, length=len(start.prompt), shown=0)
            if slot.context.length > self._room:
                self._break(run, slot, f"the first {slot.context.length} tokens do not fit, {self._room} do")
                return False
            self._save(run, slot)
            return True
        ended = self._act(run.request(slot), slot, slot.completion, answer)
        if ended is None:
            self._save(run, slot)
            return True
        assert slot.position is not None
        run.done[slot.position] = ended
        slot.position = None
        if run.progress is not None:
            run.progress(ended)
        return False

    @property
    def _room(self) -> int:
        """Largest number of tokens in a context that leaves room for an action."""
        return self.generator.context_length - self.generator.max_action_tokens

    def _save(self, run: _Run, slot: _Slot) -> None:
        """Save the moment before the next action, if that is wanted."""
        if run.request(slot).saves:
            slot.moment = self._pool.call(slot.world.number, "snapshot", timeout=self._answer_seconds)

    def _act(self, request: EpisodeRequest, slot: _Slot, completion: Completion, answer: Received) -> Trajectory | None:
        """Note what came of a sampled action; the episode if that ended it."""
        slot.world.steps.append(slot.world.waited)
        before = slot.context
        assert before is not None
        slot.turns.append(
            Turn(
                before.ids,
                completion.ids,
                completion.log_probs,
                answer.reward,
                self._chat.text(list(completion.ids)),
                slot.observation,
                bool(answer.info.get("valid_action", True)),
                before.fresh,
                slot.state,
                moment=slot.moment,
                label=slot.label,
            )
        )
        slot.observation = answer.observation
        slot.label = answer.info.get(LABEL)
        slot.state = str(answer.info.get("state_key", ""))
        following = next_context(
            self._chat, slot.turns, slot.observation, instructions=slot.instructions, before=before, room=self._room
        )
        slot.context = following
        overflow = following.length > self._room
        if not (answer.terminated or answer.truncated or overflow):
            return None
        score = answer.info.get("score")
        excess = max(0, following.length - self.generator.context_length)
        return Trajectory(
            turns=tuple(slot.turns),
            group=request.group,
            task=answer.info.get("task"),
            task_type=answer.info.get("task_type", ""),
            success=answer.info.get("success"),
            terminated=answer.terminated,
            truncated=answer.truncated,
            overflow=overflow and not (answer.terminated or answer.truncated),
            score=None if score is None else float(score),
            last_observation=slot.observation,
            closing=following.ids[: len(following.ids) - excess],
            closing_fresh=following.fresh,
            complexity=slot.complexity,
            options=request.options,
            sampling_seed=request.sampling_seed,
        )


def _prompt(slot: _Slot, request: EpisodeRequest) -> Prompt:
    assert slot.context is not None
    return Prompt(slot.number, slot.context.ids, slot.context.fresh, seed=None if slot.turns else request.sampling_seed)


@dataclass(slots=True)
class _Run:
    """The requests of one call of `collect`, and what has come of them."""

    requests: list[EpisodeRequest]
    waiting: deque[int]
    progress: Callable[[Trajectory], None] | None
    done: dict[int, Trajectory] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)
    breaks: list[BrokenEpisode] = field(default_factory=list)
    replays: Counter[int] = field(default_factory=Counter)

    def request(self, slot: _Slot) -> EpisodeRequest:
        assert slot.position is not None
        return self.requests[slot.position]
