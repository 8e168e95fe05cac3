"""The expert that searches: it wins by what it has read, and knows nothing else."""

from __future__ import annotations

import gymnasium
import pytest

from textagent_gym.agents import make_agent
from textagent_gym.domains.alfworld.engine import NOTHING_HAPPENS, State
from textagent_gym.domains.alfworld.searcher import Searcher, Wish, wishes
from textagent_gym.errors import UnsupportedOperationError
from textagent_gym.evaluation import evaluate, summarize_by_type


def failures(env: gymnasium.Env[str, str], tasks: int) -> list[str]:
    """Tasks that the expert does not solve."""
    agent = make_agent("expert", env)
    failed = []
    for index in range(tasks):
        observation, info = env.reset(options={"task_index": index})
        agent.reset(0)
        ended = False
        while not ended:
            observation, _, terminated, truncated, info = env.step(agent.act(observation, info))
            ended = terminated or truncated
        if not info["success"]:
            failed.append(info["task"])
    return failed


def test_all_official_validation_games_are_won_in_fifty_turns(folder: str) -> None:
    result = evaluate(
        "textagent/ALFWorld-official-v0", "expert", tasks=140, kwargs={"data": folder, "split": "valid_seen"}
    )
    assert [episode.task for episode in result.episodes if not episode.success] == []
    by_type = summarize_by_type(result.episodes)
    assert {name: summary.episodes for name, summary in by_type.items()} == {
        "clean": 27, "cool": 25, "heat": 16, "look": 13, "pick": 35, "two": 24
    }  # fmt: skip


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"dialect": "put"},
        {"feedback": "informative"},
        {"observation_format": "upstream"},
        {"place": 2, "candidates": 3, "goals": 2, "objects": 40, "max_turns": 100},
        {"goals": 3, "receptacles": 30, "objects": 50, "max_turns": 100},
    ],
    ids=str,
)
def test_generated_games_are_won(knobs: dict[str, object]) -> None:
    assert failures(gymnasium.make("textagent/ALFWorld-v0", **knobs), 25) == []


def test_it_knows_only_what_it_has_read() -> None:
    """A furnished room and the same one without its things are played alike until something else is said."""
    env = gymnasium.make("textagent/ALFWorld-v0", task_types=["pick"])
    env.reset(options={"task_index": 0})
    game = env.unwrapped.tasks.world(env.unwrapped.task)
    played = []
    for contents in (game.contents, (0,) * len(game.contents)):
        state = State(game)
        state.contents = list(contents)
        searcher, said, last, log = Searcher(), state.introduction(), None, []
        for _ in range(30):
            searcher.observe(last, said)
            last = searcher.action()
            said = state.step(last) or NOTHING_HAPPENS
            log.append((last, said))
        played.append(log)
    differing = next(i for i, (a, b) in enumerate(zip(*played, strict=True)) if a != b)
    assert played[0][differing][0] == played[1][differing][0]


def test_it_can_watch_somebody_else_and_take_over() -> None:
    env = gymnasium.make("textagent/ALFWorld-v0", max_turns=200)
    for index in range(10):
        observation, info = env.reset(options={"task_index": index})
        searcher = env.unwrapped.expert()
        searcher.observe(None, observation)
        player = make_agent("admissible-random", env)
        player.reset(index)
        ended, turn = False, 0
        while not ended:
            action = player.act(observation, info) if turn < 40 else searcher.action()
            observation, _, terminated, truncated, info = env.step(action)
            searcher.observe(action, observation)
            ended, turn = terminated or truncated, turn + 1
        assert info["success"], info["task"]


def test_the_words_of_every_task_are_understood(folder: str) -> None:
    env = gymnasium.make("textagent/ALFWorld-official-v0", data=folder, split="valid_seen").unwrapped
    for index in range(140):
        game = env.tasks.world(env.tasks.task("valid_seen", index))
        (wish,) = wishes(game.task)
        goals = [goal for goal in game.goals if goal.kind != "light"]
        assert wish.lamp == (goals[0].kind == "hold")
        assert wish.count == goals[0].count
        assert (wish.condition,) == (goals[0].conditions or ("",))
        names = {
            game.objects[number].rpartition(" ")[0]
            for number in range(len(game.objects))
            if goals[0].objects >> number & 1
        }
        assert names == {wish.thing}
    assert wishes("heat two mug and put them in desk.") == (Wish("mug", "desk", 2, "hot"),)
    assert wishes("dance.") == ()


def test_worlds_without_an_expert_say_so() -> None:
    env = gymnasium.make("textagent/TextWorld-v0").unwrapped
    with pytest.raises(UnsupportedOperationError, match="no expert"):
        type(env)._expert(env)
