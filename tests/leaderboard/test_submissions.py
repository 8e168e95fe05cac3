"""What somebody sends is taken as it is, or refused as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jsonschema
import pytest

from tests.cli.program import call
from tests.evaluation.results import SUITE, read, summarize_again, write
from textagent_gym.agents import make_agent
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import SUITES, Suite, evaluate_suite, load_result, verify_result
from textagent_gym.evaluation.learning import LEARNING
from textagent_gym.evaluation.results import IDENTITY, SUMMARY, records_of
from textagent_gym.leaderboard import build, submissions
from textagent_gym.leaderboard.entries import Entry, check_entry, digest_of
from textagent_gym.leaderboard.schema import schemas
from textagent_gym.leaderboard.submissions import accept
from textagent_gym.leaderboard.trust import note_trust, read_ledger

OTHER = replace(SUITE, name="lights-other-v1")


@pytest.fixture
def sent(results: Path, tmp_path: Path) -> Path:
    """A result that is right."""
    return Path(shutil.copytree(results / SUITE.name / "oracle", tmp_path / "sent"))


def everything(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_right_result_is_copied_to_its_place(sent: Path, tmp_path: Path) -> None:
    place = accept(sent, tmp_path / "results").folder
    assert place.parent == tmp_path / "results" / SUITE.name
    assert place.name.startswith("oracle-")
    assert {p.name: p.read_bytes() for p in everything(place)} == {p.name: p.read_bytes() for p in everything(sent)}
    assert list((tmp_path / "results").iterdir()) == [place.parent]


def test_what_a_kill_has_left_is_deleted(sent: Path, tmp_path: Path) -> None:
    old, new = (tmp_path / "all" / f".checking-{time.time() + seconds:.0f}-x" for seconds in (-2, 3_600))
    for folder in (old, new):
        (folder / "result").mkdir(parents=True)
    accept(sent, tmp_path / "all")
    assert not old.exists()
    assert new.exists()


def test_the_same_result_is_accepted_once(sent: Path, tmp_path: Path) -> None:
    accept(sent, tmp_path / "results")
    episodes: list[tuple[int, int]] = []
    with pytest.raises(InvalidOptionError, match="is there already"):
        accept(sent, tmp_path / "results", progress=lambda *counts: episodes.append(counts))
    assert episodes == []


def test_whoever_accepts_sees_how_far_it_is(tmp_path: Path) -> None:
    first, second = played(tmp_path / "sent"), played(tmp_path / "mine")
    episodes: list[tuple[int, int]] = []
    accept(first, tmp_path / "results", rerun=second, progress=lambda *counts: episodes.append(counts))
    assert episodes == 2 * [(number, SUITE.episodes) for number in range(1, SUITE.episodes + 1)]
    for folder, status, bar in ((first, 0, True), (tmp_path / "none", 2, False)):
        done = call("leaderboard", "accept", str(folder), "--into", str(tmp_path / "others"))
        assert (done.returncode, "Replaying" in done.stderr) == (status, bar)


def test_what_is_proven_later_is_added(tmp_path: Path) -> None:
    first, second, third = (played(tmp_path / name) for name in ("sent", "mine", "again"))
    entry = accept(first, tmp_path / "results")
    assert entry.trust == ("replayed",)
    known = accept(first, tmp_path / "results", rerun=second)
    assert (known.folder, len(known.trust)) == (entry.folder, 2)
    assert read_ledger(tmp_path / "results") == {entry.digest: known.trust}
    with pytest.raises(InvalidOptionError, match="is there already"):
        accept(first, tmp_path / "results", rerun=second)
    with pytest.raises(InvalidOptionError, match="is there already"):
        accept(first, tmp_path / "results")
    note_trust(tmp_path / "results", entry.digest, ("replayed", "re-run", "recomputed"))
    into = ("--into", str(tmp_path / "results"))
    shown = call("leaderboard", "accept", str(entry.folder), "--rerun", str(third), *into).stdout
    assert "Proven: replayed, recomputed, re-run: success" in shown
    (noted,) = read_ledger(tmp_path / "results").values()
    assert noted[:2] == ("replayed", "recomputed")
    assert "difference 0.000" in noted[2]
    assert [path for path in everything(tmp_path / "results") if path.name == SUMMARY] == [entry.folder / SUMMARY]


def test_another_result_in_the_place_of_one_proves_nothing_of_it(tmp_path: Path) -> None:
    first, second = played(tmp_path / "sent"), played(tmp_path / "mine")
    place = accept(first, tmp_path / "results").folder
    (place / SUMMARY).write_text("{}")  # The end of a digest can be met by trying.
    with pytest.raises(InvalidOptionError, match="is there already"):
        accept(first, tmp_path / "results", rerun=second)
    assert read_ledger(tmp_path / "results") == {}


def test_what_is_refused_says_so_before_it_is_played_and_blames_what_is_wrong(
    sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for arguments, said in (
        (("accept", str(sent), "--into", str(tmp_path / "file")), "file is a file; name a folder"),
        (("accept", str(sent), "--seconds", "0.5"), "Error: --seconds must be at least 1"),
        (
            ("build", str(sent), "--out", str(tmp_path / "site"), "--seconds", "0.5"),
            "Error: --seconds must be at least",
        ),
    ):
        assert said in call("leaderboard", *arguments).stderr.replace("\n", " ")
    monkeypatch.setattr("textagent_gym.leaderboard.submissions.check_entry", None)
    with pytest.raises(InvalidOptionError, match="ASCII letters"):
        accept(renamed(sent, tmp_path / "copy", "<b>"), tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "file", "sent"]


def test_verify_says_what_no_leaderboard_takes(sent: Path, tmp_path: Path) -> None:
    done = call("verify", str(renamed(sent, tmp_path / "copy", "<b>")))
    assert done.returncode == 0
    assert "`textagent-gym leaderboard accept` refuses it: the agent's name must be 1 to 80 of" in done.stdout
    assert "refuses it" not in call("verify", str(sent)).stdout


def renamed(folder: Path, copy: Path, name: str = "mine") -> Path:
    """A result with a new name of its agent, and all digests made anew."""
    shutil.copytree(folder, copy)
    identity = json.loads((copy / IDENTITY).read_text())
    (copy / IDENTITY).write_text(json.dumps({**identity, "agent": name}, indent=2, sort_keys=True) + "\n")
    for part in SUITE.parts:
        values = read(records_of(copy, part))
        values[0]["agent"] = name
        write(records_of(copy, part), values)
    summarize_again(copy)
    return copy


def test_a_result_under_another_name_is_refused(results: Path, tmp_path: Path) -> None:
    taken = accept(results / SUITE.name / "admissible-random", tmp_path / "results").folder
    copy = renamed(taken, tmp_path / "copy")
    with pytest.raises(InvalidOptionError, match="every action is that of"):
        accept(copy, tmp_path / "results")


@pytest.mark.parametrize(
    "name",
    [
        "\u043eracle 2",
        "gpt-4\u043e",
        "my \u03bf",
        "caf\u00e9",
        "my\u00a0agent",
        "a\u200bb",
        "",
        " mine",
        "a\nb",
        "<b>",
        "x" * 81,
    ],
)
def test_a_name_that_may_look_like_another_one_is_refused_and_shown_as_codes(
    results: Path, tmp_path: Path, name: str
) -> None:
    copy = renamed(results / SUITE.name / "admissible-random", tmp_path / "copy", name)
    with pytest.raises(InvalidOptionError, match="ASCII letters, digits, spaces") as refused:
        accept(copy, tmp_path / "results")
    assert everything(tmp_path / "results") == []
    assert str(refused.value).isprintable()
    (entry,), _ = build(copy, tmp_path / "site", episodes=0)
    assert entry.agent.replace("\u2026", "").replace("\u240a", "").isascii()


@pytest.mark.parametrize("name", ["openai:Qwen/Qwen3-8B (react)", "policy:1a2b", "my_agent v2.0+tools@main"])
def test_names_of_models_are_accepted(results: Path, tmp_path: Path, name: str) -> None:
    copy = renamed(results / SUITE.name / "admissible-random", tmp_path / "copy", name)
    assert accept(copy, tmp_path / "results").agent == name


def test_whoever_accepts_is_told_that_the_oracle_seems_to_have_played(sent: Path, tmp_path: Path) -> None:
    copy = renamed(sent, tmp_path / "copy")
    shown = call("leaderboard", "accept", str(copy), "--into", str(tmp_path / "results")).stdout
    assert "Flag: Part" in shown
    assert "oracle" in shown


def test_a_flag_of_a_policy_that_was_recomputed_is_a_note(
    sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(check_entry(renamed(sent, tmp_path / "copy")), trust=("replayed", "recomputed"))
    monkeypatch.setattr("textagent_gym.leaderboard.submissions.accept", lambda *_, **__: entry)
    shown = call("leaderboard", "accept", str(entry.folder), "--into", str(tmp_path / "results")).stdout
    assert "Note: Part" in shown
    assert "Flag" not in shown


def test_a_folder_of_results_that_cannot_be_written_is_not_the_fault_of_what_was_sent(sent: Path) -> None:
    done = call("leaderboard", "accept", str(sent), "--into", "/proc/acc")
    assert done.returncode == 2
    assert "Error: /proc/acc cannot be written: " in done.stderr
    assert "refused" not in done.stderr


def test_nothing_in_a_result_writes_a_line_of_its_own(sent: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sent, tmp_path / "copy"))
    records = records_of(copy, SUITE.parts[0])
    header, *episodes = read(records)
    header["versions"]["gymnasium"] = "9\n\nProven: replayed, challenge, recomputed.\n"
    write(records, [header, *episodes])
    summarize_again(copy)
    for command in (("verify", str(copy)), ("leaderboard", "accept", str(copy), "--into", str(tmp_path / "results"))):
        done = call(*command)
        assert done.returncode == 0
        assert [line for line in done.stdout.splitlines() if line.startswith("Proven:")] == ["Proven: replayed."]


def test_a_policy_that_was_recomputed_is_not_said_to_be_somebody_else(
    sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = accept(renamed(sent, tmp_path / "copy"), tmp_path / "results")
    pages = []
    for levels in (("replayed",), ("replayed", "recomputed")):
        note_trust(tmp_path / "results", entry.digest, levels)
        (shown,), _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
        pages.append((tmp_path / "site" / "results" / f"{shown.slug}.html").read_text())
    assert ["it is the policy that plays like this" in page for page in pages] == [False, True]
    assert all("its actions are the oracle" in page for page in pages)
    flagged = replace(verify_result(entry.folder), trust=("replayed", "recomputed"))
    assert "Flag: Part" in call("verify", str(entry.folder)).stdout
    monkeypatch.setattr("textagent_gym.evaluation.verify_result", lambda *_, **__: flagged)
    told = call("verify", str(entry.folder)).stdout
    assert "Note: Part" in told
    assert "Flag" not in told


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder: (folder / SUMMARY).unlink(), "no complete result"),
        (lambda folder: (folder / "evil.sh").write_text("rm"), "no part of a result"),
        (lambda folder: (folder / IDENTITY).write_text("{}"), "is not of"),
        (lambda folder: (folder / SUMMARY).write_text("{}"), "since summary.json was written"),
    ],
    ids=["missing", "strange", "identity", "summary"],
)
def test_a_wrong_result_is_refused_and_leaves_nothing_behind(
    sent: Path, tmp_path: Path, change: Any, reason: str
) -> None:
    change(sent)
    with pytest.raises(InvalidOptionError, match=reason):
        accept(sent, tmp_path / "results")
    assert everything(tmp_path / "results") == []


def test_a_lie_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="True is recorded"):
        accept(results / "liar", tmp_path / "results")
    assert everything(tmp_path / "results") == []


def test_a_link_to_a_file_is_refused(sent: Path, tmp_path: Path) -> None:
    (sent / SUMMARY).rename(tmp_path / "elsewhere")
    (sent / SUMMARY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidOptionError, match="no plain file"):
        accept(sent, tmp_path / "results")


def test_a_submission_is_bounded(sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textagent_gym.leaderboard.submissions.LARGEST_SUBMISSION", 1000)
    with pytest.raises(InvalidOptionError, match="at most 1000"):
        accept(sent, tmp_path / "results")


class Mine:
    """An agent whose name does not say how well it plays."""

    name = "mine"

    def __init__(self, skilled: bool, details: dict[str, Any], env: gymnasium.Env[str, str]) -> None:
        self.details, self._skilled = details, skilled
        self._oracle = make_agent("oracle", env)

    def reset(self, seed: int) -> None:
        self._oracle.reset(seed)

    def act(self, observation: str, info: dict[str, Any]) -> str:
        return self._oracle.act(observation, info) or "" if self._skilled else "wait"


def played(folder: Path, *, skilled: bool = True, suite: Suite = SUITE, **details: Any) -> Path:
    """A result of "mine"."""
    evaluate_suite(suite, partial(Mine, skilled, {"model": "m", **details}), folder)
    return folder


def test_an_agent_that_was_run_again_with_the_same_success_has_proven_it(tmp_path: Path) -> None:
    first, second = played(tmp_path / "sent", base_url="http://a"), played(tmp_path / "mine", base_url="http://b")
    into = ("--into", str(tmp_path / "results"))
    assert "Accepted" in call("leaderboard", "accept", str(first), "--rerun", str(second), *into).stdout
    (entry,), _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert entry.trust == ("replayed", "re-run")
    proof = (
        "re-run: success 1.000 [0.646, 1.000] as sent and 1.000 [0.646, 1.000] when run again, on 7 tasks; "
        f"difference 0.000 [-0.354, 0.354]; summary {hashlib.sha256((second / SUMMARY).read_bytes()).hexdigest()}"
    )
    ledger = json.loads((tmp_path / "results" / "trust.json").read_text())
    assert ledger == {entry.digest: ["replayed", proof]}
    table = (tmp_path / "site" / "index.html").read_text()
    assert f'title="{proof}.">re-run</span>' in table
    assert proof in (tmp_path / "site" / "results" / f"{entry.slug}.html").read_text()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"skilled": False}, r"success 1.000 .* as sent and 0.000 .* when run again, .* another success"),
        ({"temperature": 0.5}, r"the agent's 'temperature' of .*mine is 0\.5, and .* in what was sent"),
        ({"suite": OTHER}, "the suite of .* is 'lights-other-v1', and 'lights-test-v1' in what was sent"),
    ],
)
def test_what_another_success_or_agent_has_reached_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], reason: str
) -> None:
    monkeypatch.setitem(SUITES, OTHER.name, OTHER)
    second = played(tmp_path / "mine", **settings)
    with pytest.raises(InvalidOptionError, match=reason):
        accept(played(tmp_path / "sent"), tmp_path / "results", rerun=second)
    assert everything(tmp_path / "results") == []


def with_broken(folder: Path, copy: Path, chosen: Any) -> Path:
    """A result in which some episodes are said to have broken, and all digests made anew."""
    shutil.copytree(folder, copy)
    for part in SUITE.parts:
        records = records_of(copy, part)
        head, *episodes = read(records)
        for episode in episodes:
            if chosen(episode):
                lie = {"broken": "x", "success": False, "terminated": False, "truncated": True}
                episode.update(lie, actions=[], rewards=[], invalid_actions=0, score=None)
        write(records, [head, *episodes])
    summarize_again(copy)
    return copy


def test_what_is_said_to_have_broken_is_lost_when_the_agent_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = played(tmp_path / "won"), played(tmp_path / "mine", skilled=False)
    sent = with_broken(first, tmp_path / "sent", lambda episode: episode["task"][-1] != "0")
    monkeypatch.setattr(submissions, "check_entry", unchecked)
    with pytest.raises(InvalidOptionError, match=r"on 7 tasks; .*: it is another success"):
        accept(sent, tmp_path / "results", rerun=played(tmp_path / "again"))
    assert "0.000" in str(accept(first, tmp_path / "other", rerun=first.parent / "again").trust)
    with pytest.raises(InvalidOptionError, match="another success"):
        accept(first, tmp_path / "results", rerun=second)


def unchecked(folder: Path, *_: Any, **__: Any) -> Entry:
    """An entry of a result that is not played again."""
    result = load_result(folder)
    return Entry(
        slug=f"{result.suite.name}-{digest_of(folder)[:12]}",
        folder=folder,
        digest=digest_of(folder),
        result=result,
        trust=("replayed",),
        notes=(),
        worlds_of_parts={},
        densities={},
    )


def test_an_entry_in_any_folder_is_known(sent: Path, tmp_path: Path) -> None:
    (tmp_path / "results" / SUITE.name).mkdir(parents=True)
    entry = Path(shutil.copytree(played(tmp_path / "mine"), tmp_path / "results" / SUITE.name / "mine"))
    again = played(tmp_path / "again")
    assert accept(entry, tmp_path / "results", rerun=again).folder == entry
    with pytest.raises(InvalidOptionError, match="is there already"):
        accept(tmp_path / "mine", tmp_path / "results")


def test_what_is_not_complete_beside_the_results_hinders_nobody(sent: Path, tmp_path: Path) -> None:
    unfinished(sent, tmp_path / "results" / "mine")
    stranger = Path(shutil.copytree(sent, tmp_path / "results" / "old"))
    (stranger / IDENTITY).write_text("{}")
    (stranger / SUMMARY).write_text("{}")
    assert accept(sent, tmp_path / "results").agent == "oracle"


def test_a_perfect_player_with_a_proof_is_accepted_beside_the_oracle(sent: Path, tmp_path: Path) -> None:
    accept(sent, tmp_path / "results")
    perfect = played(tmp_path / "perfect")
    with pytest.raises(InvalidOptionError, match="every action is that of"):
        accept(perfect, tmp_path / "results")
    accept(perfect, tmp_path / "results", rerun=played(tmp_path / "again"))


def test_nobody_is_the_expert_where_nobody_can_ask(sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOptionError, match="expert"):  # Lights have none.
        accept(renamed(sent, tmp_path / "expert", "expert"), tmp_path / "results")
    result = load_result(sent)
    spec = {**result.evaluations["four"].spec, "nondeterministic": True}
    vague = replace(result, evaluations={"four": replace(result.evaluations["four"], spec=spec)})
    assert submissions.unacceptable(sent, vague) == ""
    assert "nobody can check that 'expert' acted" in submissions.unacceptable(sent, replace(vague, agent="expert"))


def test_a_huge_file_is_refused_before_it_is_read(sent: Path, tmp_path: Path) -> None:
    (sent / IDENTITY).write_text("[" + "[]," * 1_000_000 + "[]]")
    with pytest.raises(InvalidOptionError, match="larger than result files are"):
        accept(sent, tmp_path / "results")


def test_levels_that_two_processes_note_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: note_trust(tmp_path, f"{number:064}", ("replayed", "re-run")), range(40)))
    assert len(read_ledger(tmp_path)) == 40


def linked(sent: Path, place: Path) -> Path:
    """Other names of the same files."""
    return Path(shutil.copytree(sent, place, copy_function=os.link))


def of_another_name(sent: Path, place: Path) -> Path:
    return renamed(sent, place, "mine 2")


def unfinished(sent: Path, place: Path) -> Path:
    (Path(shutil.copytree(sent, place)) / SUMMARY).unlink()
    return place


def forged(sent: Path, place: Path) -> Path:
    shutil.copytree(sent, place)
    records = records_of(place, SUITE.parts[0])
    values = read(records)
    values[1]["rewards"] = [1.0, *values[1]["rewards"][1:]]
    write(records, values)
    summarize_again(place)
    return place


def broken(sent: Path, place: Path) -> Path:
    played(place)
    records = records_of(place, SUITE.parts[0])
    values = read(records)
    values[1].update(broken="gone", success=False, terminated=False, truncated=True)
    write(records, values)
    summarize_again(place)
    return place


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lambda sent, place: sent, "run the agent again yourself"),
        (linked, "run the agent again yourself"),
        (of_another_name, "the agent of .* is 'mine 2', and 'mine' in what was sent"),
        (unfinished, "is no right result: .* no complete result"),
        (forged, "is no right result: .* is recorded"),
        (broken, "1 episodes of .* broke: play them again with eval --retry-broken"),
    ],
    ids=["same", "linked", "renamed", "unfinished", "forged", "broken"],
)
def test_what_is_no_second_run_of_the_agent_proves_nothing(tmp_path: Path, other: Any, reason: str) -> None:
    sent = played(tmp_path / "sent")
    with pytest.raises(InvalidOptionError, match=reason):
        accept(sent, tmp_path / "results", rerun=other(sent, tmp_path / "other"))
    assert everything(tmp_path / "results") == []


def test_what_a_maintainer_has_proven_is_shown(sent: Path, results: Path, tmp_path: Path) -> None:
    entry = accept(sent, tmp_path / "results")
    note_trust(tmp_path / "results", entry.digest, ("replayed", "re-run"))
    accept(results / SUITE.name / "admissible-random", tmp_path / "results")
    entries, _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert {entry.agent: entry.trust for entry in entries} == {
        "oracle": ("replayed", "re-run"),
        "admissible-random": ("replayed",),
    }
    assert (tmp_path / "site" / "index.html").read_text().count('class="trust">re-run<') == 1


def test_a_challenge_says_how_many_its_submitter_has_had(sent: Path, tmp_path: Path) -> None:
    entry = accept(sent, tmp_path / "results")
    note_trust(tmp_path / "results", entry.digest, ("replayed", "challenge"))
    (shown,), _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert shown.notes == (
        "There is no ledger of draws (draws.json): how many challenges the submitter has had is not known.",
    )
    assert "There is no ledger of draws" in (tmp_path / "site" / "results" / f"{shown.slug}.html").read_text()
    sampling = {"temperature": 1.0, "max_action_tokens": 24, "hints": False}
    commitment = {"policy": "0" * 64, "suite": "alfworld-quick-v1", "format": "textagent-gym challenge 3", **sampling}
    line = {"submitter": "Ada", "commitment": commitment, "seed": "0" * 32}
    (tmp_path / "results" / "draws.json").write_text(json.dumps([line]))
    (shown,), _ = build(tmp_path / "results", tmp_path / "site", episodes=0)
    assert shown.notes == ("The ledger of draws (draws.json) does not hold this challenge.",)


def test_a_challenge_that_the_ledger_does_not_hold_is_refused(
    sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "draws.json").write_text("[]")
    monkeypatch.setattr(submissions, "check_entry", lambda folder, seconds, **_: check_entry(folder, seconds))
    with pytest.raises(InvalidOptionError, match="the ledger of draws has no challenge"):
        accept(sent, tmp_path / "results", challenge=tmp_path / "challenge.json")
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["draws.json"]


@pytest.mark.parametrize("text", ["[]", "{", '{"0": ["certain"]}', '{"0": 3}'])
def test_a_damaged_ledger_is_refused(sent: Path, tmp_path: Path, text: str) -> None:
    accept(sent, tmp_path / "results")
    (tmp_path / "results" / "trust.json").write_text(text)
    with pytest.raises(InvalidOptionError, match="trust"):
        build(tmp_path / "results", tmp_path / "site")


def lines(folder: Path, name: str) -> list[tuple[str, Any]]:
    """Every value of every file of a result, with the name of its schema."""
    import gzip

    values: list[tuple[str, Any]] = [(file, json.loads((folder / file).read_text())) for file in (IDENTITY, SUMMARY)]
    for path in sorted(folder.glob("*.jsonl")):
        values += [("PART.jsonl", json.loads(line)) for line in path.read_text().splitlines()]
    for path in sorted(folder.glob("*.gz")):
        texts = gzip.decompress(path.read_bytes()).splitlines()
        values += [("PART.conversations.jsonl.gz", json.loads(line)) for line in texts]
    return values


@pytest.mark.parametrize("name", ["oracle", "admissible-random", "attacking"])
def test_results_fit_their_schemas(results: Path, name: str) -> None:
    known = schemas()
    for each in known.values():
        jsonschema.Draft202012Validator.check_schema(each)
    values = lines(results / SUITE.name / name, name)
    assert {file for file, _ in values} == set(known) - {LEARNING}  # These agents have not been trained.
    for file, value in values:
        jsonschema.validate(value, known[file])


@pytest.mark.parametrize(
    "edit",
    [
        lambda episode: episode.pop("task"),
        lambda episode: episode.update(actions="look"),
        lambda episode: episode.update(success="yes"),
        lambda episode: episode.update(extra=1),
        lambda episode: episode.update(tokens=-1),
        lambda episode: episode.update(cost=-0.5),
        lambda episode: episode.update(seconds=1e300),
    ],
    ids=["missing", "kind", "text", "unknown", "tokens", "cost", "seconds"],
)
def test_what_is_no_episode_does_not_fit(results: Path, edit: Any) -> None:
    episode = read(records_of(results / SUITE.name / "oracle", SUITE.parts[0]))[1]
    edit(episode)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(episode, schemas()["PART.jsonl"])
