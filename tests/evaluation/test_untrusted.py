"""Result files made by somebody else, who may mean harm."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.cli.program import call
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import evaluate, load, replay, save, spec_from_file
from textagent_gym.evaluation.records import spec_of
from textagent_gym.wrappers import ChatMessages

LIGHTS = "lights/Lights-v0"
SWE = "textagent/SWE-v0"


def spec(name: str, **kwargs: Any) -> dict[str, Any]:
    """What a file's header holds of an environment."""
    import gymnasium

    entry = gymnasium.spec(name)
    return {**spec_of_registered(entry), "kwargs": {**entry.kwargs, **kwargs}}


def spec_of_registered(entry: Any) -> dict[str, Any]:
    import json

    return dict(json.loads(entry.to_json()))


@pytest.mark.parametrize("sandbox", ["process", "ray:process"])
def test_no_file_asks_for_a_sandbox_that_keeps_nothing_in(sandbox: str) -> None:
    with pytest.raises(InvalidOptionError, match="keeps nothing in"):
        spec_from_file(spec(SWE, sandbox=sandbox))


def test_the_sandbox_is_that_of_this_machine_and_it_is_said() -> None:
    safe, notes = spec_from_file(spec(SWE, sandbox="docker"))
    assert "sandbox" not in safe.kwargs
    assert "sandbox='auto' of this machine" in notes[0]
    chosen, notes = spec_from_file(spec(SWE, sandbox="process"), kwargs={"sandbox": "bubblewrap"})
    assert chosen.kwargs["sandbox"] == "bubblewrap"
    assert notes == []


def test_a_folder_that_is_called_like_a_split_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("test", "dense"):
        (tmp_path / name).mkdir()
    safe, _ = spec_from_file(spec("textagent/TextCraft-v0", split="test", reward_density="dense"))
    assert safe.kwargs["split"] == "test"


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        (SWE, {"packages": ["/etc"]}),
        (SWE, {"packages": "./repository"}),
        (SWE, {"packages": "../repository"}),
        (SWE, {"packages": ["~/repository"]}),
        (SWE, {"packages": "here"}),
        (SWE, {"recipes": "recipes"}),
        ("textagent/SWE-bench-v0", {"rows": "somebody/else"}),
        ("textagent/ALFWorld-official-v0", {"data": "anywhere"}),
        ("textagent/TextWorld-v0", {"game": "files", "path": "games"}),
        (LIGHTS, {"anything": {"deep": ["os:system"]}}),
    ],
)
def test_no_file_names_files_folders_or_modules(
    name: str, kwargs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match="--set"):
        spec_from_file(spec(name, **kwargs))


def test_no_file_imports_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('sprung')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry_point = "textagent_gym.wrappers.limits:ObservationLimit"
    arguments = {"characters": None, "tokens": 9, "tokenizer": "somebody/else"}
    limit = {"name": "ObservationLimit", "entry_point": entry_point, "kwargs": arguments}
    for changes in (
        {"id": "trap:lights/Lights-v0"},
        {"id": "trap/Trap-v0"},
        {"entry_point": "trap:Env"},
        {"additional_wrappers": [{"name": "Trap", "entry_point": "trap:Wrapper", "kwargs": {}}]},
        {"additional_wrappers": [{"name": "system", "entry_point": "os:system", "kwargs": {"env": "true"}}]},
        {"additional_wrappers": [{"name": "x", "entry_point": "textagent_gym.wrappers.hints:gymnasium", "kwargs": {}}]},
        {"additional_wrappers": "os:system"},
        {"additional_wrappers": [limit]},
        {"kwargs": None},
    ):
        with pytest.raises(InvalidOptionError):
            spec_from_file({**spec(LIGHTS), **changes})
    assert "trap" not in sys.modules


def test_what_an_entry_of_the_registry_says_itself_is_no_choice_of_the_file() -> None:
    safe, notes = spec_from_file(spec("textagent/SWE-bench-v0", max_turns=7))
    assert safe.kwargs["rows"] == "SWE-bench/SWE-bench_Verified"
    assert safe.kwargs["max_turns"] == 7
    assert notes == []


def test_a_file_of_ones_own_may_be_trusted() -> None:
    asked = spec(SWE, sandbox="process", packages="./repository")
    trusted, notes = spec_from_file(asked, trust=True)
    assert trusted.kwargs == {"sandbox": "process", "packages": "./repository"}
    assert notes == []


def test_replaying_a_file_refuses_what_is_not_safe() -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=1)
    with pytest.raises(InvalidOptionError, match="is not what is registered here"):
        replay(replace(honest, spec={**honest.spec, "entry_point": "os:system"}))
    with pytest.raises(InvalidOptionError, match="is not registered here"):
        replay(replace(honest, spec={**honest.spec, "id": "nobody/Nothing-v0"}))


def test_a_shell_command_in_a_file_runs_in_no_process_of_mine(tmp_path: Path) -> None:
    import gymnasium

    mark = tmp_path / "mark"
    env = gymnasium.make(LIGHTS)
    forged = replace(
        evaluate(env, "oracle", tasks=1),
        spec={**spec_of(env), **spec(SWE, sandbox="process")},
    )
    shell = replace(forged.episodes[0], actions=(f"```bash\ntouch {mark}\n```",), rewards=(0.0,))
    with pytest.raises(InvalidOptionError, match="keeps nothing in"):
        replay(replace(forged, episodes=(shell,)))
    assert not mark.exists()


HINTS, HISTORY, PARSER = "hints:AdmissibleActionHints", "history:HistoryText", "parsing:ActionParser"


def wrapped(*wrappers: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The spec of a file with wrappers of the suite, and arguments of its maker's choosing."""
    values = [
        {"name": name.partition(":")[2], "entry_point": f"textagent_gym.wrappers.{name}", "kwargs": kwargs}
        for name, kwargs in wrappers
    ]
    return {**spec(LIGHTS), "additional_wrappers": values}


@pytest.mark.parametrize(
    "asked",
    [
        {**spec(LIGHTS), "kwargs": {"infos": [[["oracle_action"]]]}},
        {**spec(LIGHTS), "kwargs": {"self": 1}},
        {**spec(LIGHTS), "max_episode_steps": 0},
        {**spec(LIGHTS), "max_episode_steps": -1},
        wrapped((PARSER, {"parser": 3})),
        wrapped((PARSER, {"parser": "press (.*)", "hint": 3})),
        wrapped((HINTS, {"template": None})),
        wrapped((HINTS, {"separator": 3})),
        wrapped((HINTS, {"leave_out": [1]})),
        wrapped((HISTORY, {"turns": "x"})),
        wrapped((HISTORY, {"turns": 1.5})),
    ],
    ids=str,
)
def test_arguments_that_a_world_does_not_take_are_no_crash(asked: dict[str, Any]) -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=1)
    try:
        problems = replay(replace(honest, spec=asked))
    except InvalidOptionError:
        return
    assert problems


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (wrapped((HINTS, {"template": "{actions:>99999999999}"})), "must hold {actions} and no other braces"),
        (wrapped((HINTS, {"template": "{actions.__class__}"})), "must hold {actions} and no other braces"),
        (wrapped((HISTORY, {"turns": 9}), (HISTORY, {"turns": 9})), "in the same wrapper twice"),
        (wrapped((HINTS, {"separator": "," * 10_001})), "a text of 10001 characters"),
        ({**spec(LIGHTS), "nondeterministic": True}, "says nondeterministic=True"),
        ({**spec(LIGHTS), "vector_entry_point": "os:system"}, "says vector_entry_point='os:system'"),
        ({**spec(LIGHTS), "reward_threshold": 0.5}, "says reward_threshold=0.5"),
    ],
    ids=["width", "attribute", "twice", "long", "nondeterministic", "vector", "threshold"],
)
def test_a_file_fills_no_memory_and_leaves_no_check_out(asked: dict[str, Any], said: str) -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=1)
    with pytest.raises(InvalidOptionError, match=said):
        replay(replace(honest, spec=asked))


def test_a_conversation_that_grows_with_every_turn_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each observation of `ChatMessages` is all that was said before."""
    monkeypatch.setattr("textagent_gym.evaluation.episode.MOST_SAID", 20_000)
    chatting = ChatMessages(gymnasium.make(LIGHTS, switches=6, max_turns=400))
    (episode,) = evaluate(chatting, "random", tasks=1).episodes
    assert episode.stopped == "size"
    assert episode.turns < 40


def test_a_header_is_bounded(tmp_path: Path) -> None:
    evaluate(LIGHTS, "oracle", tasks=1, path=tmp_path / "r.jsonl")
    text = (tmp_path / "r.jsonl").read_text()
    (tmp_path / "r.jsonl").write_text(text.replace('"details": {}', f'"details": {{"x": {[0] * 10**6}}}'))
    with pytest.raises(InvalidOptionError, match="line 1 is longer than a header is"):
        load(tmp_path / "r.jsonl")


def test_a_pattern_that_takes_for_ever_ends_with_the_time(tmp_path: Path) -> None:
    honest = evaluate(LIGHTS, "oracle", tasks=1)
    endless = replace(honest.episodes[0], actions=("a" * 60 + "b",), rewards=(0.0,))
    save(replace(honest, spec=wrapped((PARSER, {"parser": "((?:a+)+)$"})), episodes=(endless,)), tmp_path / "r.jsonl")
    done = call("verify", str(tmp_path / "r.jsonl"), "--seconds", "0.5")
    assert done.returncode == 1
    assert "Stopped after 0.5 seconds" in done.stderr
