"""The native engine, against the compiled games, and what only it can do."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.textworld_native import compare
from tests.domains.textworld.kinds import KINDS, UpstreamGame
from textagent_gym.domains.textworld import generation, store
from textagent_gym.domains.textworld.commands import admissible_commands, playable
from textagent_gym.domains.textworld.engines import Native, ZMachine, turns
from textagent_gym.domains.textworld.engines.answers import Answer, Grounds, Situation, lead_on, opening, told, work_out
from textagent_gym.domains.textworld.inform import Fiction, Memory, Page
from textagent_gym.domains.textworld.inform.templates import read_template
from textagent_gym.domains.textworld.inform.turn import Turn
from textagent_gym.domains.textworld.specs import Spec, make_spec
from textagent_gym.domains.textworld.store import StoredGame, load_file
from textagent_gym.domains.textworld.tasks import TextWorldTasks
from textagent_gym.errors import GenerationError

OpenGame = Callable[[Spec], StoredGame]
WORDS = (
    *("take", "all", "but", "two", "the", "it", "a", "of", "from", "on", "with", "and", "my", "other", "eat", "drop"),
    *("me", "2"),
)


@pytest.fixture(scope="session")
def games(upstream_game: UpstreamGame) -> OpenGame:
    """The game of a kind, compiled."""
    return lambda spec: load_file(Path(upstream_game(spec, 1)[1]))


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_every_class_of_commands_is_answered_as_in_the_compiled_game(games: OpenGame, spec: Spec) -> None:
    record = compare(spec.slug, games(spec), 120)
    assert record["examples"] == []
    assert sum(record["played"].values()) >= 120
    assert len(record["played"]) > 6


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
def test_other_commands_are_answered_as_in_the_compiled_game(games: OpenGame, spec: Spec, seed: int) -> None:
    assert compare(f"{spec.slug} {seed}", games(spec), 25)["examples"] == []


LINES = (
    ("g", "look", "again", "g. wait", "look. g. inventory", "xyzzy", "again"),
    ("me, jump", "me, g", "me, me, jump", "me,", ", look", "bob, go north", "okay, look", "me, take all, me"),
    ("look. inventory. jump", "look, jump", "n. s. e. w", "look...", "take. look", "look. take", "me. look"),
    ("take all, me", "drop all. look", "look", "inventory", "drop all. wait", "xyzzy a b c", "put all on me"),
    ("examine", "me. g", "examine", "", "me", '"look"', 'say "hello, you" to me', "look; jump", "x me, me"),
    (
        "take all from me. look",
        "take all from me",
        "x it",
        "x them",
        "take 2, 3",
        "look \N{EM DASH} me",
        "x " + "me " * 90,
    ),
    # Words that mean any direction, and the fifteen words that are read.
    ("open the directions", "north", "take direction", "all", "look", "two directions", "take all directions"),
    ("x direction. look. look. look. look. look. look. look. look. west", "look", "direction, look"),
    # What the sentences before leave for the one whose second noun is read ahead.
    ("take directions from all xyzzy", "look", "take direction from all of them", "look", "take me from the other one"),
    # A direction leaves behind that only directions are meant.
    ("go west", "insert all but me into me", "go west", "look", "insert all but me into me", "insert all into me"),
    # A number that may be part of a name, after other words that stand before one.
    (
        "eat my 3 me",
        "give this two me to me",
        "push all 3 me and me",
        "eat other 3",
        "put all in this 3 me",
        "pull 3 me",
    ),
    # Lines are read to their end however long they are, but only fifteen words of a command.
    (
        "x me. " * 14 + "say every other thing to myself",
        "say " + "a" * 108 + " to myself",
        "look under",
        "x " * 15 + ",",
    ),
    ("look under", "north. " * 12 + "show me to the other me and me", "look"),
    # What "again" repeats, where a later command of the line has no words.
    ("x me. , inventory", "again, chop me", "look", "wait. .", "g", "look. , , jump", "g. g"),
    # What the trace of the compiled game is not seen to tell.
    ("ask me about )", "say (hm) to me", "tell me about (x)", "ask me about x. take (me", "say hm to me then (look"),
    # Answers that are commands.
    ("ask", "again, north", "me", "me, put", "everyone, look", "me, take", "me, look", "take", "g, look"),
)


@pytest.mark.parametrize("spec", KINDS[:4], ids=lambda spec: spec.slug)
@pytest.mark.parametrize("lines", LINES, ids=lambda lines: lines[0])
def test_lines_are_read_as_in_the_compiled_game(games: OpenGame, spec: Spec, lines: tuple[str, ...]) -> None:
    engines = (ZMachine(), Native())
    assert engines[0].start(games(spec)) == engines[1].start(games(spec))
    for line in lines:
        compiled, native = (engine.step(playable(line)) for engine in engines)
        assert compiled == native
        assert engines[0].state == engines[1].state


COOKING_LINES = (
    ("chop me with north", "dice north with me", "slice fridge with north", "cook me with north", "cook north with me"),
    ("take all from all my", "get each from every my", "take all from my", "take all from all"),
)


@pytest.mark.parametrize("lines", COOKING_LINES, ids=lambda lines: lines[0])
def test_lines_of_cooking_games_are_read_as_in_the_compiled_game(games: OpenGame, lines: tuple[str, ...]) -> None:
    spec = next(spec for spec in KINDS if spec.kind == "cooking")
    for line in lines:
        engines = (ZMachine(), Native())
        assert engines[0].start(games(spec)) == engines[1].start(games(spec))
        compiled, native = (engine.step(line) for engine in engines)
        assert compiled == native


def test_the_edge_of_the_screen_stays_as_it_was_before_the_end(games: OpenGame) -> None:
    game = games(make_spec("coin_collector", level=2))
    engines = (ZMachine(), Native())
    assert engines[0].start(game) == engines[1].start(game)
    assert game.planner is not None
    plan = game.planner.plan(game.logic.initial)
    assert plan is not None
    for line in plan.commands:
        compiled, native = (engine.step(line) for engine in engines)
        assert compiled == native
    assert native.won
    for line in ("look", "take coin"):
        ended = engines[1].snapshot()
        compiled, native = (engine.step(line) for engine in engines)
        assert compiled == native
        engines[1].restore(ended)
        assert engines[1].step(line) == compiled


@pytest.mark.parametrize("side", ["required", "optional", "repeatable", "all there is", "failed"])
def test_what_is_fulfilled_from_the_beginning_is_as_in_the_compiled_game(tmp_path: Path, side: str) -> None:
    """A quest is to be in the room where the game begins, which games of `tw-make` have now and then."""
    textworld = pytest.importorskip("textworld")
    from textworld.generator import GameOptions, Quest
    from textworld.generator.game import Event

    maker = textworld.GameMaker()
    hall, shed = maker.new_room("hall"), maker.new_room("shed")
    maker.set_player(hall)
    maker.connect(hall.east, shed.west)
    coin = maker.new(type="o", name="coin")
    shed.add(coin)
    here = Event(conditions={maker.new_fact("at", maker._entities["P"], hall)})
    got = Event(conditions={maker.new_fact("in", coin, maker._entities["I"])})
    repeats = side == "repeatable"
    quests = [Quest(win_events=[here], repeatable=repeats, optional=repeats or side == "optional")]
    if side == "failed":
        quests = [Quest(win_events=[got], fail_events=[here])]
    elif side != "all there is":
        quests.append(Quest(win_events=[got], reward=2))
    maker.quests = quests
    options = GameOptions()
    options.path = str(tmp_path / "begun.z8")
    game = load_file(Path(textworld.generator.compile_game(maker.build(), options)))
    for lines in (("look", "go east", "take coin", "look"), ("clear that", "look", "go east", "take coin")):
        engines = (ZMachine(), Native())
        assert engines[0].start(game) == engines[1].start(game)
        for line in lines:
            compiled, native = (engine.step(line) for engine in engines)
            assert compiled == native


def test_an_empty_list_has_the_verb_of_the_list_before() -> None:
    listing = read_template("[is-are a list of things in the 15]")
    fiction = SimpleNamespace(kinds=("",) * 18, names=("", *("thing",) * 17), cooking=False)
    world: Any = SimpleNamespace(fiction=fiction, contents={15: ()}.get, count=lambda holder: 0)
    turn = Turn(world, Memory(), Page(), {})
    assert turn.is_or_are(2) == "are"
    assert turn.print_template(listing, 15) == "are nothing"
    assert turn.is_or_are(1) == "is"
    assert turn.print_template(listing, 15) == "is nothing"


@given(words=st.lists(st.sampled_from(WORDS), max_size=9))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_words_are_answered(games: OpenGame, words: list[str]) -> None:
    engine = Native()
    engine.start(games(KINDS[1]))
    assert engine.step(" ".join(words) or "look").text


def test_a_question_is_answered_by_the_next_line_also_after_going_back(games: OpenGame) -> None:
    game = games(KINDS[0])
    replies = []
    for engine in (ZMachine(), Native()):
        engine.start(game)
        asked = engine.step("examine").text
        assert "What do you want to examine?" in asked
        moment = engine.snapshot()
        engine.step("look")
        engine.restore(moment)
        replies.append((asked, engine.step("me").text))
    assert replies[0] == replies[1]
    assert "As good-looking as ever." in replies[1][1]


def test_a_game_is_made_and_played_without_a_compiler_and_compiled_once_it_is_asked_for(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[generation.build.__module__], "compile_story", lambda game: pytest.fail("compiled"))
        env = gymnasium.make("textagent/TextWorld-v0", rooms=1, objects=2, quest_length=2).unwrapped
        env.reset(options={"task_index": 0})
        for action in env.oracle():
            *_, info = env.step(action)
        assert info["success"]
    assert not store.load(spec, "train", 0, compiled=False).story.exists()
    assert store.load(spec, "train", 0).story.is_file()
    assert store.load(spec, "train", 0, compiled=False).story.is_file()


BASE_INSTALL = """
import os, signal, sys, importlib.metadata as metadata
for name in ("textworld", "jericho", "fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getpgid", "getuid", "killpg", "register_at_fork", "setsid"):
    delattr(os, name)
del signal.SIGKILL
known = metadata.version
def version(name):
    if name == "textworld":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
import gymnasium
env = gymnasium.make("textagent/TextWorld-v0", {options})
env.reset(options={{"task_index": 0}})
for action in {solution!r}:
    *_, info = env.step(action)
print(info["success"])
"""


def play_with_the_base_install(options: str, solution: tuple[str, ...], more: str = "") -> str:
    """What a process prints that has neither TextWorld nor its interpreter, nor what Python lacks on Windows."""
    code = BASE_INSTALL.format(options=options, solution=solution) + more
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout


def test_a_stored_game_is_played_with_the_base_install_and_one_that_must_be_made_names_the_extra(cache: Path) -> None:
    spec = make_spec("custom", rooms=1, objects=2, quest_length=2)
    solution = store.load(spec, "train", 0, compiled=False).solution
    another = "try: env.reset(options={'task_index': 1})\nexcept Exception as error: print(error)"
    printed = play_with_the_base_install("rooms=1, objects=2, quest_length=2", solution, another)
    assert printed.startswith("True\n")
    assert 'pip install "textagent-gym[textworld]"' in printed


def test_an_exported_game_is_played_with_the_base_install_and_by_textworld(cache: Path, tmp_path: Path) -> None:
    import textworld

    tasks = TextWorldTasks(make_spec("custom", rooms=1, objects=2, quest_length=2))
    story = tasks.export(tasks.task("train", 0), tmp_path / "games")
    solution = load_file(story).solution
    assert play_with_the_base_install(f"game='files', path={str(story.parent)!r}", solution) == "True\n"
    upstream = textworld.start(str(story), textworld.EnvInfos(won=True, admissible_commands=True))
    state = upstream.reset()
    assert solution[0] in state.admissible_commands
    for command in solution:
        state, *_ = upstream.step(command)
    assert state.won
    story.with_suffix(".textagent.json").write_text("{}")
    store.forget()
    with pytest.raises(GenerationError, match="does not describe"):
        load_file(story)


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines whose turns are worked out, of all that are played."""
    lines: list[str] = []

    def noting(game: StoredGame, situation: Situation, line: str) -> tuple[Answer, Grounds]:
        lines.append(line)
        return work_out(game, situation, line)

    monkeypatch.setattr(turns, "work_out", noting)
    turns.forget()
    return lines


def test_a_turn_is_worked_out_once_and_only_the_number_of_the_turn_differs(
    games: OpenGame, worked_out: list[str]
) -> None:
    game = games(KINDS[1])
    engines = [Native(), Native()]
    for engine in engines:
        engine.start(game)
    texts = [engines[0].step("look").text for _ in range(3)]
    assert worked_out == ["look"]
    assert [engines[1].step("look").text for _ in range(3)] == texts
    assert worked_out == ["look"]
    assert [text.rpartition("/")[2] for text in texts] == ["2", "3", "4"]
    assert len({text.rpartition("/")[0] for text in texts}) == 1


def test_turns_that_differ_in_what_they_list_alone_are_worked_out_once(games: OpenGame, worked_out: list[str]) -> None:
    game = games(KINDS[1])
    assert game.logic is not None
    assert game.fiction is not None
    engine, rng, told_as = Native(), random.Random(0), set()
    engine.start(game)
    for _ in range(200):
        assert engine.state is not None
        listed = admissible_commands(game.logic, engine.state)
        engine.step(rng.choice([line for line in listed if line.startswith(("take ", "drop ", "go ", "open "))]))
        told_as.add(engine.step("inventory", plain=True).text)
    rooms = sum(kind == "room" for kind in game.fiction.kinds)
    assert worked_out.count("inventory") <= 3 * rooms < len(told_as)  # Nothing, one thing, or several, in each room.


@pytest.mark.parametrize("places", [((1, 2), (1,)), ((1,), (1, 2)), ((1, 2), (1, 3))])
def test_lines_that_look_elsewhere_because_of_facts_alone_are_told_apart(
    games: OpenGame, monkeypatch: pytest.MonkeyPatch, places: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    game = games(KINDS[1])
    start = opening(game)[1]

    def work_out_by_facts(game: StoredGame, situation: Situation, line: str) -> tuple[Answer, Grounds]:
        answer = work_out(game, start, line)[0]
        return answer._replace(actions=situation.facts), Grounds(places[situation.facts], 1)

    monkeypatch.setattr(turns, "work_out", work_out_by_facts)
    turns.forget()
    for facts in (0, 1, 1, 0, 0, 1, 0):
        assert turns.play(game, start._replace(facts=facts), "look")[0].actions == facts
    turns.forget()


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_a_remembered_turn_is_the_one_that_would_be_worked_out(games: OpenGame, spec: Spec) -> None:
    game, rng = games(spec), random.Random(0)
    assert game.fiction is not None
    assert game.logic is not None
    turns.forget()
    everything = sorted({playable(action.command) for action in game.logic.actions})
    for _ in range(6):
        situation = opening(game)[1]
        for _ in range(60):
            line = rng.choice([*admissible_commands(game.logic, situation.facts), rng.choice(everything), "take all"])
            anew, _ = work_out(game, situation, line)
            answer, after = turns.play(game, situation, line)
            assert after == lead_on(game.fiction, situation, anew)
            assert told(game.fiction, answer.printed, after) == told(game.fiction, anew.printed, after)
            assert told(game.fiction, answer.plain, after) == told(game.fiction, anew.plain, after)
            assert answer[2:7] == anew[2:7]
            situation = after
            if answer.ending:
                break


def test_an_environment_pickles_in_the_middle_of_an_episode(cache: Path) -> None:
    env = gymnasium.make("textagent/TextWorld-v0", rooms=2, objects=3, quest_length=4).unwrapped
    env.reset(options={"task_index": 0})
    plan = env.oracle()
    env.step(plan[0])
    other = pickle.loads(pickle.dumps(env))
    for action in ("look", *plan[1:]):
        assert env.step(action)[:4] == other.step(action)[:4]


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.slug)
def test_a_game_is_the_same_after_it_was_written_and_read(games: OpenGame, spec: Spec) -> None:
    fiction = games(spec).fiction
    assert fiction is not None
    written = fiction.to_dict()
    assert Fiction.from_dict(written).to_dict() == written
    with pytest.raises(ValueError, match="format 0"):
        Fiction.from_dict({**written, "format": 0})


def test_a_game_without_a_description_is_refused(games: OpenGame) -> None:
    game = copy.copy(games(KINDS[0]))
    object.__setattr__(game, "fiction", None)
    with pytest.raises(GenerationError, match="engine='reference'"):
        Native().start(game)


def test_a_description_that_only_the_compiled_game_knows_is_refused(upstream_game: UpstreamGame) -> None:
    game, _ = upstream_game(KINDS[0], 1)
    changed = copy.deepcopy(game)
    room = changed.world.rooms[0]
    changed.infos[room.id].desc += "[one of]a[or]b[at random]"
    assert generation.tell(game)
    with pytest.raises(GenerationError, match="one of"):
        generation.tell(changed)
    assert generation.tell_if_known(changed) is None
