"""Neither the number of workers nor an interruption changes a result."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import gymnasium
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from textagent_gym.agents import Agent, RandomAgent
from textagent_gym.evaluation import EpisodeRecord, Evaluation, evaluate
from textagent_gym.evaluation.players import AgentMaker
from textagent_gym.evaluation.records import conversations_of
from textagent_gym.evaluation.runner import keeps_conversations
from textagent_gym.files import part_of

LIGHTS = "lights/Lights-v0"
TASKS, EPISODES = 4, 2


class WaitingAgents:
    """Makes agents that draw at random, and are played in threads as if they waited for a server."""

    waits = True

    def __call__(self, env: gymnasium.Env[str, str]) -> Agent:
        return RandomAgent(env)


def play(path: Path, workers: int, *, processes: bool = False, stop_after: int | None = None) -> Evaluation:
    """An evaluation, or `KeyboardInterrupt` after some of its episodes."""
    ended = 0

    def count(episode: EpisodeRecord) -> None:
        nonlocal ended
        ended += 1
        if stop_after is not None and ended > stop_after:
            raise KeyboardInterrupt

    agent: AgentMaker = "random" if processes else WaitingAgents()
    return evaluate(
        LIGHTS, agent, tasks=TASKS, episodes=EPISODES, path=path, workers=workers, conversations=True, ended=count
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, bytes]:
    """What one worker plays without an interruption, and its file of conversations."""
    path = tmp_path_factory.mktemp("whole") / "r.jsonl"
    return play(path, 1), conversations_of(path).read_bytes()


@given(
    stop_after=st.integers(0, TASKS * EPISODES - 1),
    kept=st.floats(0, 1),
    workers=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    processes=st.just(False),
)
@example(stop_after=3, kept=1.0, workers=(1, 1), processes=False)
@example(stop_after=0, kept=0.1, workers=(2, 1), processes=False)  # Cut in the header.
@example(stop_after=7, kept=0.99, workers=(4, 2), processes=False)  # Cut in the last episode.
@example(stop_after=5, kept=0.7, workers=(3, 4), processes=True)
@settings(max_examples=40)
def test_neither_workers_nor_an_interruption_at_any_byte_change_a_result(
    whole: tuple[Evaluation, bytes], stop_after: int, kept: float, workers: tuple[int, int], processes: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        with pytest.raises(KeyboardInterrupt):
            play(path, workers[0], processes=processes, stop_after=stop_after)
        part = part_of(path)
        written = part.read_bytes()
        part.write_bytes(written[: round(kept * len(written))])
        result = play(path, workers[1], processes=processes)
        assert (result, conversations_of(path).read_bytes()) == whole
        assert not part.exists()


def test_a_run_that_has_begun_without_conversations_goes_on_without(tmp_path: Path) -> None:
    """Else what it has played would be played again."""
    path = tmp_path / "r.jsonl"
    assert keeps_conversations(path)
    with pytest.raises(KeyboardInterrupt):
        play(path, 1, stop_after=3)
    assert keeps_conversations(path)
    part = part_of(path)
    lines = [json.loads(text) for text in part.read_text().splitlines()]
    part.write_text(
        "".join(json.dumps({**each, **({"conversation": []} if "key" in each else {})}) + "\n" for each in lines)
    )
    assert not keeps_conversations(path)
    part.unlink()
    play(path, 1)
    assert keeps_conversations(path)
    conversations_of(path).unlink()
    assert not keeps_conversations(path)
