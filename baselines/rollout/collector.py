"""Many episodes at once: every slot plays its own, and takes the next one as soon as it has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from baselines.chat import ChatFormat
from baselines.rollout.backend import Completion, Generator, Request
from baselines.trajectory import Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode to be played.

    Attributes:
        group: number of its group; episodes of a group begin in the same state.
        seed: for `reset`.
        options: for `reset`.
    """

    group: int
    seed: int | None = None
    options: dict[str, Any] | None = None


@dataclass(slots=True)
class _Slot:
    """An environment and what has happened in its current episode."""

    env: gymnasium.Env[str, str]
    episode: Episode | None = None
    observation: str = ""
    pending: list[int] = field(default_factory=list)
    length: int = 0
    turns: list[Turn] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)


class Collector:
    """Plays episodes with a language model.

    Args:
        make_env: makes one environment; called once a slot.
        generator: of the actions; its slots are the episodes played at once.
        chat: turns observations into token ids.

    An episode ends when its environment says so, or when the conversation would outgrow the model's context; it is then
    cut there and marked `overflow`.
    """

    def __init__(self, make_env: Callable[[], gymnasium.Env[str, str]], generator: Generator, chat: ChatFormat) -> None:
        self._slots = [_Slot(make_env()) for _ in range(generator.slots)]
        self._generator = generator
        self._chat = chat

    def collect(
        self, episodes: Iterable[Episode], progress: Callable[[Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Play all episodes and return them in the order in which they were asked for.

        Args:
            episodes: what to play.
            progress: called with each episode that has ended.
        """
        waiting = iter(enumerate(episodes))
        playing: dict[int, int] = {}  # slot -> position among the episodes
        done: dict[int, Trajectory] = {}
        for number, slot in enumerate(self._slots):
            self._begin(number, slot, waiting, playing)
        while playing:
            numbers = sorted(playing)
            requests = [
                Request(number, tuple(self._slots[number].pending), not self._slots[number].turns) for number in numbers
            ]
            for number, completion in zip(numbers, self._generator.generate(requests), strict=True):
                slot = self._slots[number]
                ended = self._act(slot, completion)
                if ended is not None:
                    done[playing.pop(number)] = ended
                    if progress is not None:
                        progress(ended)
                    self._begin(number, slot, waiting, playing)
        return [done[position] for position in sorted(done)]

    def close(self) -> None:
        """Close the environments."""
        for slot in self._slots:
            slot.env.close()

    def _begin(self, number: int, slot: _Slot, waiting: Iterator[tuple[int, Episode]], playing: dict[int, int]) -> None:
        """Begin the next episode in a slot, if there is one."""
        following = next(waiting, None)
        if following is None:
            return
        position, episode = following
        slot.episode = episode
        slot.observation, slot.info = slot.env.reset(seed=episode.seed, options=episode.options)
        slot.pending = self._chat.opening(slot.observation)
        slot.length = len(slot.pending)
        slot.turns = []
        playing[number] = position

    def _act(self, slot: _Slot, completion: Completion) -> Trajectory | None:
        """Play a sampled action; the episode if that ended it."""
        assert slot.episode is not None
        text = self._chat.text(list(completion.ids))
        read = slot.observation
        slot.observation, reward, terminated, truncated, slot.info = slot.env.step(text)
        slot.turns.append(
            Turn(
                tuple(slot.pending),
                completion.ids,
                completion.log_probs,
                float(reward),
                text,
                read,
                bool(slot.info.get("valid_action", True)),
            )
        )
        slot.pending = self._chat.following(slot.observation)
        if completion.ids[-1] != self._chat.end_id:
            # The action was cut before its end token; the template needs one, which nobody sampled.
            slot.pending = [self._chat.end_id, *slot.pending]
        slot.length += len(completion.ids) + len(slot.pending)
        overflow = slot.length + self._generator.max_action_tokens > self._generator.context_length
        if not (terminated or truncated or overflow):
            return None
        return Trajectory(
            turns=tuple(slot.turns),
            group=slot.episode.group,
            task=slot.info.get("task"),
            task_type=slot.info.get("task_type", ""),
            success=slot.info.get("success"),
            terminated=terminated,
            overflow=overflow and not (terminated or truncated),
            last_observation=slot.observation,
        )
