"""Whose actions are the oracle's very own is flagged; who plays as well in another way is not."""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import gymnasium
import pytest
from lights import LightsEnv

from textagent_gym import Outcome, TextEnv
from textagent_gym.agents import make_agent
from textagent_gym.evaluation import Evaluation, evaluate, find_copies
from textagent_gym.evaluation.copies import SIGNIFICANT, tail

SPEC = "lights/Lights-v0"


class Impostor:
    """The oracle, under another name."""

    name = "my-model"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        player = make_agent("oracle", env)
        self.reset, self.act = player.reset, player.act


class Expert:
    """Plays as well, and takes any light that is off."""

    name = "my-model"

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._env: Any = env.unwrapped

    def reset(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str:
        return self._draw.choice(self._env.oracle())


def played(agent: Any, tasks: int = 20) -> Evaluation:
    return evaluate(SPEC, agent, tasks=tasks, kwargs={"switches": 6})


def copies(evaluation: Evaluation) -> Any:
    return find_copies(evaluation, gymnasium.spec(SPEC) if not evaluation.spec else _spec(evaluation))


def _spec(evaluation: Evaluation) -> Any:
    from textagent_gym.evaluation import spec_from_file

    return spec_from_file(evaluation.spec)[0]


def test_the_oracle_under_another_name_is_flagged() -> None:
    (copy,) = copies(played(Impostor))
    assert copy.reference == "oracle"
    assert copy.agreed == copy.turns > 10
    assert copy.expected < copy.turns / 2
    assert copy.p_value <= SIGNIFICANT
    assert "its actions are the oracle's in" in str(copy)


class LenientLights(LightsEnv):
    """Minds neither case nor spaces."""

    def _act(self, action: str) -> Outcome:
        return super()._act(" ".join(action.lower().split()))


def test_the_oracle_in_other_letters_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Disguised(Impostor):
        def __init__(self, env: gymnasium.Env[str, str]) -> None:
            super().__init__(env)
            player = self.act
            self.act = lambda observation, info: player(observation, info).upper().replace(" ", "  ")

    monkeypatch.setattr(gymnasium.spec(SPEC), "entry_point", f"{__name__}:LenientLights")
    evaluation = played(Disguised)
    assert all(episode.success for episode in evaluation.episodes)
    (copy,) = copies(evaluation)
    assert copy.agreed == copy.turns > 10


def test_another_way_that_is_as_good_is_not_flagged() -> None:
    evaluation = played(Expert)
    assert all(episode.success for episode in evaluation.episodes)
    assert copies(evaluation) == []


class ExpertLights(LightsEnv):
    """Has an expert, which presses the last light that is off, and no oracle."""

    _oracle = TextEnv._oracle

    def _expert(self) -> Any:
        return LastLight()


class LastLight:
    def observe(self, action: str | None, observation: str) -> None:
        self._off = [part.split(":")[0].split()[-1] for part in observation.split(",") if ": off" in part]

    def action(self) -> str:
        return f"press {self._off[-1]}" if self._off else "press red"


def test_the_expert_of_a_world_without_an_oracle_under_another_name_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Renamed(Impostor):
        def __init__(self, env: gymnasium.Env[str, str]) -> None:
            player = make_agent("expert", env)
            self.reset, self.act = player.reset, player.act

    class FirstLight(Renamed):
        def __init__(self, env: gymnasium.Env[str, str]) -> None:
            super().__init__(env)
            self.act = lambda observation, info: "press " + re.findall(r"(\w+): off", observation)[0]

    monkeypatch.setattr(gymnasium.spec(SPEC), "entry_point", f"{__name__}:ExpertLights")
    monkeypatch.setattr("textagent_gym.evaluation.copies._LONG", 4)
    (copy,) = copies(played(Renamed))
    assert copy.same == copy.episodes > 1
    assert "every action is the expert's in" in str(copy)
    first = played(FirstLight)
    assert all(episode.success for episode in first.episodes)
    assert copies(first) == []


def test_a_few_turns_are_no_evidence() -> None:
    assert copies(played(Impostor, tasks=1)) == []


def test_random_play_is_not_flagged() -> None:
    assert copies(played("admissible-random")) == []


@pytest.mark.parametrize("chances", [[0.5, 0.25], [0.1, 0.9, 0.3], [0.2] * 6])
def test_the_tail_is_that_of_all_outcomes(chances: list[float]) -> None:
    for count in range(len(chances) + 2):
        exact = 0.0
        for outcome in product((0, 1), repeat=len(chances)):
            if sum(outcome) >= count:
                weight = 1.0
                for success, chance in zip(outcome, chances, strict=True):
                    weight *= chance if success else 1 - chance
                exact += weight
        assert tail(chances, count) == pytest.approx(exact)


def test_the_tail_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs: pip install scipy")
    for count in (3, 20, 33):
        assert tail([0.25] * 60, count) == pytest.approx(stats.binom.sf(count - 1, 60, 0.25), rel=1e-9)
