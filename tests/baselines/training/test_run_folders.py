"""Every folder of a run says what was asked for, what it was made with, what was measured, and shows it on a page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from baselines import dagger, demo, grpo, sft, sft_then_rl
from baselines.settings.run_folder import FolderInUseError, hold_folder
from baselines.training.run_log import demonstration_lines, log_start
from tests.baselines.runs import LIGHTS, lines, small_run

Start = Callable[[Path, Path, Path], Path]


def of_grpo(tiny: Path, demos: Path, out: Path) -> Path:
    grpo.run(small_run(grpo.Config, tiny, out, iterations=2, seed=3))
    return out


def of_dagger(tiny: Path, demos: Path, out: Path) -> Path:
    dagger.run(
        dagger.Config(
            **{"model": str(tiny), "out": out, "env": "lights/Lights-v0", "set": LIGHTS, "labels": 12},
            **{"iterations": 2, "slots": 4, "max_action_tokens": 8, "epochs": 2.0, "batch_size": 4, "seed": 3},
        )
    )
    return out


def of_sft(tiny: Path, demos: Path, out: Path) -> Path:
    sft.run(sft.Config(model=str(tiny), demos=demos, out=out, epochs=4.0, batch_size=8, seed=3))
    return out / "fine-tuning"


def of_sft_then_rl(tiny: Path, demos: Path, out: Path) -> Path:
    budget = {"budget": 28, "sft_fraction": 0.4, "demonstration_cost": 5, "sft": sft.FineTuningConfig(epochs=2.0)}
    sft_then_rl.run(small_run(sft_then_rl.GRPOConfig, tiny, out, seed=3, **budget))
    return out


STARTS = {"grpo": of_grpo, "dagger": of_dagger, "sft": of_sft, "sft_then_rl": of_sft_then_rl}
KINDS = {
    "grpo": {"training"},
    "dagger": {"training"},
    "sft": {"demonstration"},
    "sft_then_rl": {"demonstration", "training"},
}


@pytest.mark.parametrize("trainer", STARTS)
def test_a_run_folder_holds_settings_versions_curves_and_episodes_and_shows_them(
    tiny: Path, demos: Path, tmp_path: Path, trainer: str
) -> None:
    folder = STARTS[trainer](tiny, demos, tmp_path / "run")
    assert json.loads((folder / "config.json").read_text())["seed"] == 3
    start, stop = lines(folder / "log.jsonl")
    assert (start["event"], start["iteration"]) == ("start", 0)
    assert {name: start["versions"][name] for name in ("torch", "trl")} == {
        name: version(name) for name in ("torch", "trl")
    }
    assert start["git"] is None or re.match(r"[0-9a-f]{40}", start["git"])
    metrics = lines(folder / "metrics.jsonl")
    assert (stop["event"], stop["cause"]) == ("stop", None)
    assert stop["iteration"] == metrics[-1]["iteration"] > 0
    episodes = lines(folder / "trajectories.jsonl")
    assert {episode["kind"] for episode in episodes} == KINDS[trainer]
    assert all(turn["observation"] and isinstance(turn["action"], str) for turn in episodes[0]["turns"])
    page = (folder / "index.html").read_text()
    for heading in ("Curves", "Episodes", "Starts", "Settings"):
        assert f"<h2>{heading}</h2>" in page
    assert "Finished." in page
    assert f"<td>torch</td><td>{start['versions']['torch']}" in page
    assert episodes[-1]["turns"][0]["observation"] in html.unescape(page)
    assert 'aria-label="loss"' in page


@pytest.mark.parametrize("trainer", [*STARTS, "demo"])
def test_a_folder_in_use_is_refused_and_nothing_in_it_is_touched(
    tiny: Path, demos: Path, tmp_path: Path, trainer: str
) -> None:
    start = {**STARTS, "demo": lambda tiny, demos, out: demo.run(demo.Config(out=out))}[trainer]
    folder = tmp_path / "fine-tuning" if trainer == "sft" else tmp_path
    with hold_folder(folder):
        with pytest.raises(FolderInUseError, match=f"{folder} is in use by process"):
            start(tiny, demos, tmp_path)
        assert [path.name for path in folder.iterdir()] == ["lock"]


@pytest.mark.parametrize("trainer", ["dagger", "sft", "sft_then_rl"])
def test_the_cause_of_an_error_is_in_the_log_and_on_the_page(
    tiny: Path, demos: Path, tmp_path: Path, trainer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise LookupError("the world has a hole")

    owner, name = {
        "dagger": (dagger, "_collect"),
        "sft": (sft, "_save_chat"),
        "sft_then_rl": (sft_then_rl, "_fine_tune"),
    }[trainer]
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(LookupError):
        STARTS[trainer](tiny, demos, tmp_path)
    folder = tmp_path / "fine-tuning" if trainer == "sft" else tmp_path
    assert lines(folder / "log.jsonl")[-1]["cause"] == "LookupError: the world has a hole"
    assert "LookupError: the world has a hole" in (folder / "index.html").read_text()


def test_fine_tuning_begins_anew_and_so_does_its_record_but_not_its_log(
    tiny: Path, demos: Path, tmp_path: Path
) -> None:
    folder = of_sft(tiny, demos, tmp_path)
    sft.run(sft.Config(model=str(tiny), demos=demos, out=tmp_path, epochs=1.0, batch_size=8, max_demos=2))
    assert json.loads((folder / "config.json").read_text())["epochs"] == 1.0
    assert {line["iteration"] for line in lines(folder / "metrics.jsonl")} == {1}
    assert len(lines(folder / "trajectories.jsonl")) == 2
    assert [line["event"] for line in lines(folder / "log.jsonl")] == ["start", "stop", "start", "stop"]


def test_a_line_of_the_log_that_was_cut_does_not_swallow_the_next_start(tmp_path: Path) -> None:
    for _ in range(2):
        log_start(tmp_path, 3, 1, "cpu")
    log = tmp_path / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-40])
    log_start(tmp_path, 4, 1, "cpu")
    assert [line["iteration"] for line in lines(log)] == [3, 4]


def test_a_demonstration_reads_as_what_was_said_before_each_action() -> None:
    said = [("system", "Rules."), ("user", "A door."), ("assistant", "open"), ("user", "A hall."), ("assistant", "go")]
    (line,) = demonstration_lines([[{"role": role, "content": content} for role, content in said]])
    turns = [(turn["observation"], turn["action"]) for turn in line["turns"]]
    assert turns == [("Rules.\n\nA door.", "open"), ("A hall.", "go")]
    many = demonstration_lines([[{"role": "assistant", "content": str(number)}] for number in range(9)])
    assert [line["turns"][0]["action"] for line in many] == ["0", "3", "5", "8"]
