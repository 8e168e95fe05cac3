"""The page of a run: what it shows, and that what a policy wrote cannot do anything in it."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from baselines.settings.run_folder import RunFolderError
from baselines.settings.run_page import write_page

ROOT = Path(__file__).parents[3]
ATTACK = '</div><script>alert(1)</script><img src="http://example.org/x" onerror="alert(2)">{{ 7 * 7 }}\u202e\x00'


class Tags(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def write(folder: Path, file: str, *lines: object) -> None:
    (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"iterations": 3, "env": "lights/Lights-v0", "system": ATTACK}))
    write(
        tmp_path,
        "metrics.jsonl",
        {"iteration": 1, "return": 0.25, "loss": float("nan"), "padding": 0.125},
        {"iteration": 2, "return": 0.75, "loss": 2.0, "padding": 0.125},
    )
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 3, "ret')  # A kill has cut it.
    write(tmp_path, "evaluations.jsonl", {"iteration": 0, "return": 0.125})
    turn = {"observation": ATTACK, "action": ATTACK, "reward": 0.5}
    episode = {"kind": "training", "task": ATTACK, "return": 0.5, "success": True, "ending": "terminated"}
    write(tmp_path, "trajectories.jsonl", {"iteration": 2, **episode, "turns": [turn], "last_observation": ATTACK})
    write(tmp_path, "broken.jsonl", {"iteration": 2, "group": 0, "seed": 5, "reason": ATTACK})
    write(tmp_path, "log.jsonl", {"event": "stop", "time": "now", "iteration": 2, "cause": ATTACK})
    return tmp_path


def parsed(page: Path) -> Tags:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    return tags


def test_what_a_policy_wrote_is_shown_as_text_and_nothing_comes_from_outside(run: Path) -> None:
    page = parsed(write_page(run))
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert not [name for name, value in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert page.text.count("<script>alert(1)</script>") == 7  # In all places that untrusted text comes to.
    assert "{{ 7 * 7 }}" in page.text


def test_the_page_shows_the_curves_of_whole_lines_and_finite_numbers(run: Path) -> None:
    text = write_page(run).read_text(encoding="utf-8")
    assert text.count("<figure>") == 3
    assert text.index(">return<") < text.index(">loss<") < text.index(">padding<")
    # Of iterations 0 to 2 and returns from 0.125 to 0.75, in a drawing of 320 by 120 with a margin of 6.
    assert 'class="one" points="160,92.4 314,6"' in text
    assert "2 of 3 iterations, lights/Lights-v0" in text
    assert "held-out tasks" in text


def test_a_long_run_has_a_short_page_that_ends_with_its_last_iteration(run: Path) -> None:
    write(run, "metrics.jsonl", *({"iteration": number, "return": number / 2} for number in range(1, 20_001)))
    text = write_page(run).read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert "<b>1e+04</b>" in text
    assert "314,6" in text


def test_a_run_without_anything_yet_has_a_page_and_a_folder_without_a_run_has_none(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no run"):
        write_page(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert "0 iterations" in write_page(tmp_path).read_text(encoding="utf-8")


def test_a_command_makes_the_page_of_an_older_run(run: Path, tmp_path: Path) -> None:
    def make(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "baselines.page", str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)

    made = make(run)
    assert made.stdout.strip() == str(run / "index.html"), made.stderr
    assert (run / "index.html").is_file()
    refused = make(tmp_path / "nowhere")
    assert refused.returncode == 1
    assert "holds no run" in refused.stderr
    assert "Traceback" not in refused.stderr
