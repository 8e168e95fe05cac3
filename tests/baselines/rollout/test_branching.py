"""Branches begin in the exact state that they were sampled from, and their mean return is the value of that state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from lights import LightsEnv

from baselines import gigpo, grpo, vineppo
from baselines.credit.advantages import Credit
from baselines.credit.rollouts import Rollouts
from baselines.envs.pool import InProcessPool, make_pool
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy, make_tokenizer
from baselines.rollout import (
    BrokenEpisode,
    Collection,
    Collector,
    Completion,
    EpisodeRequest,
    Prompt,
    TransformersGenerator,
)
from baselines.rollout.branching import branch_requests, with_values
from baselines.rollout.trajectory import Trajectory
from baselines.training import trainer
from tests.baselines.runs import curve
from textagent_gym import Outcome, TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.vector import env_maker

COLOURS = ("red", "green", "blue")
ACTIONS = tuple(f"press {colour}" for colour in (*COLOURS, "black"))
TURNS = 4
WORLD: dict[str, Any] = {"switches": len(COLOURS), "max_turns": TURNS, "num_tasks": 8}


class Uniform:
    """A generator that presses each switch equally often."""

    def __init__(self, chat: ChatFormat, slots: int) -> None:
        self.slots = slots
        self.context_length = 1_000
        self.max_action_tokens = 30
        self._ids = [(*chat.tokenizer(action)["input_ids"], chat.end_id) for action in ACTIONS]
        self._streams = [np.random.default_rng(0) for _ in range(slots)]

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        said = []
        for prompt in prompts:
            if prompt.fresh:
                self._streams[prompt.slot] = np.random.default_rng(prompt.seed)
            ids = self._ids[self._streams[prompt.slot].integers(len(ACTIONS))]
            said.append(Completion(ids, (0.0,) * len(ids)))
        return said

    def take_weights(self, model: Any) -> None: ...

    def close(self) -> None: ...


@cache
def exact_value(off: frozenset[str], turns: int) -> float:
    """Probability of success of the uniform policy with some lights off and so many turns left."""
    if not off:
        return 1.0
    if not turns:
        return 0.0
    return sum(exact_value(off ^ {colour}, turns - 1) for colour in COLOURS) / len(ACTIONS)


def lights_off(observation: str) -> frozenset[str]:
    return frozenset(colour for colour in COLOURS if f"{colour}: off" in observation)


def seed_of(*path: int) -> int:
    return int(np.random.SeedSequence(path).generate_state(1)[0])


@pytest.mark.parametrize("kind", ["in-process", "process"])
def test_the_values_are_those_of_the_uniform_policy(kind: Any) -> None:
    chat = ChatFormat(make_tokenizer([*ACTIONS, "red: off, green: on"]))
    slots, branches = 8, 400
    collector = Collector(
        make_pool(env_maker("lights/Lights-v0", **WORLD), slots, kind, 2), Uniform(chat, slots), chat, patience=math.inf
    )
    episodes = collector.collect([EpisodeRequest(i, seed=i, sampling_seed=i, saves=True) for i in range(6)])
    valued = with_values(episodes, collector.collect(branch_requests(episodes.trajectories, branches, seed_of)))
    collector.close()
    errors = []
    for trajectory in valued.trajectories:
        for number, turn in enumerate(trajectory.turns):
            exact = exact_value(lights_off(turn.observation), TURNS - number)
            assert turn.value is not None
            assert abs(turn.value - exact) <= 4 * math.sqrt(exact * (1 - exact) / branches)
            assert turn.moment is None
            errors.append(turn.value - exact)
    assert len(errors) >= 6
    assert abs(float(np.mean(errors))) < 0.02
    assert any(errors)


def played(tiny: Path) -> tuple[Collector, list[Trajectory]]:
    """A collector, and episodes whose moments were saved."""
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    make = env_maker("lights/Lights-v0", **WORLD, reward_density="dense", infos=("state_key",))
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=4, max_action_tokens=6)
    collector = Collector(InProcessPool(make, 4), generator, chat)
    asked = [EpisodeRequest(i, seed=i, sampling_seed=i, saves=True) for i in range(5)]
    return collector, collector.collect(asked).trajectories


def test_a_branch_reads_the_ids_of_its_episode(tiny: Path) -> None:
    collector, episodes = played(tiny)
    branched = collector.collect(branch_requests(episodes, 2, seed_of)).trajectories
    points = [(episode, number) for episode in episodes for number in range(len(episode.turns))]
    assert len(branched) == 2 * len(points)
    for branch in branched:
        episode, number = points[branch.group]
        before = [token for turn in episode.turns[:number] for token in (*turn.prompt, *turn.action)]
        assert branch.turns[0].prompt == (*before, *episode.turns[number].prompt)
        assert branch.turns[0].observation == episode.turns[number].observation
        assert branch.task == episode.task
        assert number + len(branch.turns) <= TURNS
        assert branch.truncated == (number + len(branch.turns) == TURNS and not branch.terminated)
    assert len({branch.turns[0].action for branch in branched}) > len(branched) / 2
    collector.close()


def test_a_branch_with_the_seed_of_its_episode_plays_the_episode_again(tiny: Path) -> None:
    collector, episodes = played(tiny)
    requests = branch_requests(episodes, 1, lambda episode, turn, branch: episode)
    firsts = np.cumsum([0, *(len(episode.turns) for episode in episodes[:-1])])
    again = collector.collect([requests[first] for first in firsts]).trajectories
    collector.close()
    assert [branch.ids for branch in again] == [episode.ids for episode in episodes]
    assert [branch.total_reward for branch in again] == [episode.total_reward for episode in episodes]


def test_every_turn_knows_the_state_that_it_was_taken_in(tiny: Path) -> None:
    collector, episodes = played(tiny)
    collector.close()
    env = gymnasium.make("lights/Lights-v0", **WORLD, reward_density="dense").unwrapped
    for number, trajectory in enumerate(episodes):
        env.reset(seed=number)
        for turn in trajectory.turns:
            assert turn.state == env.state_key()
            env.step(turn.text)


def test_an_episode_whose_value_cannot_be_told_counts_as_broken(tiny: Path) -> None:
    collector, episodes = played(tiny)
    branched = collector.collect(branch_requests(episodes, 2, seed_of))
    collector.close()
    lost = len(episodes[0].turns)  # The first turn of the second episode.
    half = Collection(
        [branch for branch in branched.trajectories if branch.group != lost],
        [BrokenEpisode(EpisodeRequest(lost), "gone"), BrokenEpisode(EpisodeRequest(0), "once")],
    )
    valued = with_values(Collection(episodes, []), half)
    assert [t.group for t in valued.trajectories] == [0, 2, 3, 4]
    assert [broken.reason for broken in valued.broken] == ["gone"]
    for trajectory in valued.trajectories:
        assert all(turn.value is not None for turn in trajectory.turns)


class Guessing(LightsEnv):
    """Every word presses some switch, so that a policy that has learned nothing earns something."""

    def _act(self, action: str) -> Outcome:
        return super()._act(ACTIONS[sum(map(ord, action)) % len(COLOURS)])


class Mute(LightsEnv):
    """A world that neither tells its state nor saves it."""

    deterministic = False
    _state_key = TextEnv._state_key
    _snapshot = TextEnv._snapshot


@pytest.fixture(autouse=True)
def worlds() -> Iterator[None]:
    gymnasium.register("tests/Guessing-v0", entry_point=Guessing)
    gymnasium.register("tests/Mute-v0", entry_point=Mute)
    gymnasium.register("tests/Limited-v0", entry_point=LightsEnv, max_episode_steps=3)
    yield
    for name in ("Guessing", "Mute", "Limited"):
        del gymnasium.registry[f"tests/{name}-v0"]


def settings(module: Any, tiny: Path, out: Path, **changes: Any) -> Any:
    basis = {
        "model": str(tiny),
        "env": "tests/Guessing-v0",
        "set": {**WORLD, "reward_density": "dense"},
        "out": out,
        "iterations": 3,
        "groups": 2,
        "group_size": 3,
        "slots": 5,
        "max_action_tokens": 5,
        "checkpoint_every": 1,
    }
    return module.Config(**{**basis, **changes})


@pytest.mark.parametrize("module", [gigpo, vineppo])
def test_a_run_that_was_stopped_resumes_along_the_same_curve(module: Any, tiny: Path, tmp_path: Path) -> None:
    whole = module.run(settings(module, tiny, tmp_path / "whole"))
    module.run(settings(module, tiny, tmp_path / "parts", iterations=1))
    parts = module.run(settings(module, tiny, tmp_path / "parts"))
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    weights = [load_policy(str(folder))[0].state_dict() for folder in (whole, parts)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    before = load_policy(str(tiny))[0].state_dict()
    assert any(not torch.equal(before[name], value) for name, value in weights[0].items())


@pytest.mark.parametrize("module", [grpo, vineppo])
def test_every_step_of_an_environment_is_counted(
    module: Any, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: Counter[str] = Counter()
    send = InProcessPool.send

    def counted(pool: InProcessPool, slot: int, action: Any) -> None:
        steps["all"] += 1
        send(pool, slot, action)

    monkeypatch.setattr(InProcessPool, "send", counted)
    module.run(settings(module, tiny, tmp_path, iterations=2))
    metrics = curve(tmp_path)
    assert sum(row["env_steps"] for row in metrics) == steps["all"]
    played = sum(row["episodes"] * row["turns"] for row in metrics)
    assert (steps["all"] > 2 * played) if module is vineppo else (steps["all"] == pytest.approx(played))


def test_the_advantage_of_a_turn_is_its_reward_and_what_the_value_rises(tiny: Path, tmp_path: Path) -> None:
    seen: list[tuple[Rollouts, Credit]] = []
    config = settings(vineppo, tiny, tmp_path, iterations=1, whiten=False)
    method = vineppo.method(config)

    def advantages(rollouts: Rollouts) -> Credit:
        seen.append((rollouts, method.advantages(rollouts)))
        return seen[-1][1]

    trainer.train(config, replace(method, advantages=advantages))
    [(rollouts, credit)] = seen
    assert rollouts.values is not None
    assert np.unique(credit.advantages.round(6)).size >= 4
    for row, length in enumerate(rollouts.lengths):
        values = [*rollouts.values[row, :length], 0.0]
        for step in range(length):
            expected = rollouts.rewards[row, step] + values[step + 1] - values[step]
            assert credit.advantages[row, step] == pytest.approx(expected)


def test_worlds_that_lack_what_a_method_needs_are_refused(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InvalidOptionError, match=r"state='world' needs .* Mute does not; .*state='observation'"):
        gigpo.run(settings(gigpo, tiny, out, env="tests/Mute-v0"))
    with pytest.raises(InvalidOptionError, match=r"branches=4 needs snapshots .* Mute has none"):
        vineppo.run(settings(vineppo, tiny, out, env="tests/Mute-v0"))
    with pytest.raises(InvalidOptionError, match=r"branches=4 needs snapshots .* TimeLimit has none"):
        vineppo.run(settings(vineppo, tiny, out, env="tests/Limited-v0"))
    assert not out.exists()
    gigpo.run(settings(gigpo, tiny, out, env="tests/Mute-v0", state="observation", iterations=1))
