"""Agents that need no model."""

from __future__ import annotations

import io

import gymnasium
import pytest

from textagent_gym.agents import AGENTS, make_agent
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError
from textagent_gym.evaluation import play

LIGHTS = "lights/Lights-v0"
FIRST = {"task_index": 0}


def test_every_agent_is_in_the_table_under_its_own_name() -> None:
    env = gymnasium.make("textagent/ALFWorld-v0")
    assert {make_agent(name, env).name for name in AGENTS} == set(AGENTS)
    with pytest.raises(InvalidOptionError, match=r"genius.*admissible-random"):
        make_agent("genius", env)


@pytest.mark.parametrize("name", ["oracle", "expert", "admissible-random"])
def test_agents_that_look_into_the_world_refuse_other_environments(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=name):
        make_agent(name, gymnasium.make("CartPole-v1"))


def test_an_agent_refuses_a_world_that_cannot_tell_it_what_it_needs() -> None:
    with pytest.raises(InvalidOptionError, match="agent 'expert' cannot play LightsEnv, which has no expert"):
        make_agent("expert", gymnasium.make(LIGHTS))


def test_the_oracle_needs_as_many_actions_as_were_measured() -> None:
    env = gymnasium.make(LIGHTS)
    episode = play(env, make_agent("oracle", env), options=FIRST)
    assert episode.success
    assert len(episode.turns) == episode.beginning["complexity"].solution_length
    assert episode.total_reward == 1.0


@pytest.mark.parametrize("name", ["random", "admissible-random"])
def test_equal_seeds_give_equal_draws(name: str) -> None:
    env = gymnasium.make(LIGHTS)
    agent = make_agent(name, env)
    first, again, other = ([t.action for t in play(env, agent, options=FIRST, seed=seed).turns] for seed in (3, 3, 4))
    assert first == again != other


def test_an_expert_is_asked_for_in_vain_where_there_is_none() -> None:
    env = gymnasium.make(LIGHTS)
    env.reset(options=FIRST)
    with pytest.raises(UnsupportedOperationError, match="no expert"):
        env.unwrapped.expert()


def test_the_expert_plays_by_what_it_reads() -> None:
    env = gymnasium.make("textagent/ALFWorld-v0")
    episode = play(env, make_agent("expert", env), options=FIRST)
    assert episode.success
    assert len(episode.turns) >= episode.beginning["complexity"].solution_length


def test_a_person_types_and_the_end_of_the_input_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    env = gymnasium.make(LIGHTS)
    monkeypatch.setattr("sys.stdin", io.StringIO("press black\n"))
    episode = play(env, make_agent("human", env), options=FIRST)
    assert [turn.action for turn in episode.turns] == ["press black"]
    shown = capsys.readouterr().out
    instructions = episode.beginning["instructions"]  # As a model is told them.
    assert shown.index(instructions) < shown.index("Turn on all 4 lights.")
    assert shown.count(instructions) == shown.count("Ctrl-C stops.") == 1
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(KeyboardInterrupt):
        play(env, make_agent("human", env), options=FIRST)
