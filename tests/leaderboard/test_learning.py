"""The learning curve of a run, beside the result of its policy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from tests.cli.program import call
from tests.evaluation.results import SUITE, summarize_again
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import evaluate_suite, load_result, verify_result
from textagent_gym.evaluation.learning import LEARNING, MOST_POINTS, LearningCurve, curve_of
from textagent_gym.leaderboard import build
from textagent_gym.leaderboard.schema import schemas
from textagent_gym.leaderboard.submissions import accept


def run_folder(path: Path, successes: list[float]) -> Path:
    path.mkdir()
    lines = [
        {"iteration": number, "success": success, "loss": 0.1} for number, success in enumerate(successes, start=1)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with a learning curve."""
    folder = tmp_path_factory.mktemp("learned")
    evaluate_suite(SUITE, "oracle", folder / "r", run=run_folder(folder / "run", [0.0, 0.25, 1.0]))
    return folder / "r"


@pytest.fixture
def sent(learned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(learned, tmp_path / "sent"))


def test_the_curve_of_a_run_is_kept_checked_for_form_and_drawn(sent: Path, tmp_path: Path) -> None:
    verification = verify_result(sent)
    assert verification.mismatches == ()
    assert verification.result.learning == LearningCurve((1, 2, 3), (0.0, 0.25, 1.0))
    jsonschema.validate(json.loads((sent / LEARNING).read_text()), schemas()[LEARNING])
    accept(sent, tmp_path / "results")
    (entry,), left_out = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert left_out == []
    page = (tmp_path / "site" / "agents" / f"{entry.agent_slug}.html").read_text()
    assert "as the submitter tells it: nobody can check it" in page
    assert '<polyline points="48.0,160.0 175.0,125.0 302.0,20.0 "/>' in page


def test_an_agent_without_a_run_has_no_curve(site: Path) -> None:
    assert not any("Success over iterations" in path.read_text() for path in (site / "agents").iterdir())


def test_of_many_iterations_neighbours_are_taken_together(tmp_path: Path) -> None:
    curve = curve_of(run_folder(tmp_path / "run", [number % 2 for number in range(4 * MOST_POINTS)]))
    assert curve.iterations == tuple(range(4, 4 * MOST_POINTS + 1, 4))
    assert set(curve.success) == {0.5}


def test_an_iteration_that_was_resumed_counts_once_and_a_line_without_success_not_at_all(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", [0.5, 0.5])
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 2, "success": 0.75}\n{"iteration": 3}\n{"iteration": 4, "success": NaN}\n')
    assert curve_of(folder) == LearningCurve((1, 2), (0.5, 0.75))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no learning curve"),
        ("[]\n", "there is no learning curve"),
        ('{"iteration": 1, "success": 2.0}\n', "there is no learning curve"),
        ('{"iteration": ', "line 1 is no JSON"),
    ],
)
def test_metrics_that_give_no_curve_say_so(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(InvalidOptionError, match=said):
        curve_of(tmp_path)


def curve(iterations: object, success: object) -> str:
    values = {"format": "textagent-gym learning curve 1", "iterations": iterations, "success": success}
    return json.dumps(values, sort_keys=True) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cut off or damaged"),
        ("[1]\n", "is not of"),
        ('{"format": "textagent-gym learning curve 1"}\n', "has no list of iterations"),
        (curve("123", [0.5]), "has no list of iterations"),
        (curve([1, 2], [0.5]), "shorter"),
        (curve([], []), "holds no 1 to 200"),
        (curve([2, 1], [0.5, 0.5]), "holds no 1 to 200"),
        (curve([1], ["</script>"]), "holds no 1 to 200"),
        (curve([1], [float("nan")]), "holds"),
        (curve([1], [1.5]), "holds no 1 to 200"),
        (curve([True], [0.5]), "holds no 1 to 200"),
        (curve([1, "2"], [0.5, 0.5]), "holds no 1 to 200"),
        (curve([*range(201)], [0.5] * 201), "holds no 1 to 200"),
        (curve([1], [0.5]).replace(", ", ","), "is written otherwise"),
        (curve([1], [0.5]).replace("{", '{"more": "x", '), "is written otherwise"),
    ],
)
def test_what_is_no_curve_is_refused(sent: Path, text: str, said: str) -> None:
    (sent / LEARNING).write_text(text)
    with pytest.raises(InvalidOptionError, match=said):
        load_result(sent)


def test_a_curve_that_was_changed_added_or_taken_away_is_noticed(sent: Path) -> None:
    honest = (sent / LEARNING).read_text()
    (sent / LEARNING).write_text(curve([1], [1.0]))
    assert any("changed since" in mismatch.what for mismatch in verify_result(sent).mismatches)
    (sent / LEARNING).unlink()
    assert verify_result(sent).mismatches
    summarize_again(sent)
    assert verify_result(sent).mismatches == ()
    (sent / LEARNING).write_text(honest)
    assert verify_result(sent).mismatches
    (sent / LEARNING).unlink()
    (sent / LEARNING).symlink_to("/dev/zero")
    with pytest.raises(InvalidOptionError, match="no plain file"):
        load_result(sent)


def test_a_run_without_a_curve_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    asked = ("eval", "--suite", "alfworld-quick-v1", "--agent", "random", "--out", str(tmp_path / "r"))
    done = call(*asked, "--run-folder", str(tmp_path))
    assert done.returncode == 2
    assert "metrics.jsonl cannot be read" in " ".join(done.stderr.split())
    assert not (tmp_path / "r").exists()
