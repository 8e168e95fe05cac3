"""Commitments, challenges, and the agents that the caller names."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.program import call, run
from textagent_gym.agents import PolicySettings
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import SUITES, commit, draw, evaluate_suite, policy_digest, read_challenge, suite_of
from textagent_gym.evaluation.draws import DRAWS, described, read_draws
from textagent_gym.evaluation.trust import Challenge, provable

SUITE = "alfworld-quick-v1"
COMMITTED = {
    "policy": "0" * 64,
    "suite": SUITE,
    "temperature": 1.0,
    "max_action_tokens": 24,
    "hints": False,
    "format": "textagent-gym challenge 3",
}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    return folder


def test_the_digest_of_a_policy_is_that_of_everything_that_decides_what_it_says(policy: Path) -> None:
    digest = policy_digest(policy)
    (policy / "notes.md").write_text("mine")
    assert policy_digest(policy) == digest
    for name in ("model.safetensors", "config.json", "chat.json"):
        (policy / name).write_bytes(b"other")
        assert policy_digest(policy) != digest
        digest = policy_digest(policy)


@pytest.mark.parametrize("name", ["tokenizer.tiktoken", "modeling.py", "additional_chat_templates/default.jinja"])
def test_whatever_a_policy_may_be_loaded_from_is_in_its_digest(name: str, policy: Path) -> None:
    digest = policy_digest(policy)
    (policy / name).parent.mkdir(exist_ok=True)
    (policy / name).write_text("mine")
    assert policy_digest(policy) != digest


@pytest.mark.parametrize("name", ["a\nb", "a\r", "a\udcff"])
def test_no_name_of_a_file_stands_for_two(name: str, policy: Path) -> None:
    (policy / name).write_text("")
    with pytest.raises(InvalidOptionError, match="holds a file called"):
        policy_digest(policy)


def test_what_a_download_leaves_beside_a_policy_is_not_in_its_digest(policy: Path) -> None:
    digest = policy_digest(policy)
    (policy / ".cache").mkdir()
    (policy / ".cache" / "model.safetensors.metadata").write_text("today")
    (policy / ".gitattributes").write_text("")
    assert policy_digest(policy) == digest


@pytest.mark.parametrize("shard", ["../model.safetensors", "/weights/model.safetensors", ".cache/model.safetensors"])
def test_a_policy_has_all_of_its_parts_in_its_folder(shard: str, policy: Path) -> None:
    index = policy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head": "model.safetensors"}}))
    policy_digest(policy)
    index.write_text(json.dumps({"weight_map": {"lm_head": shard}}))
    with pytest.raises(InvalidOptionError, match="names weights that are not in the folder"):
        policy_digest(policy)
    index.unlink()
    (policy / "deep").mkdir()
    (policy / "deep" / "w.index.json").write_text(json.dumps({"weight_map": {"lm_head": "model.safetensors"}}))
    with pytest.raises(InvalidOptionError, match="names weights that are not in the folder"):
        policy_digest(policy)
    (policy / "deep" / "w.index.json").unlink()
    (policy / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "../base"}))
    with pytest.raises(InvalidOptionError, match="an adapter, whose base is elsewhere"):
        policy_digest(policy)
    (policy / "adapter_config.json").unlink()
    (policy / "linked").symlink_to(policy.parent)
    with pytest.raises(InvalidOptionError, match="a link to a folder"):
        policy_digest(policy)


def test_the_sampling_is_committed_to(policy: Path, tmp_path: Path) -> None:
    """Whoever could choose it afterwards could draw again until the result is good."""
    settings = PolicySettings(temperature=0.5, max_action_tokens=8)
    commitment = commit(policy, SUITE, tmp_path / "c.json", settings)
    assert commitment.digest != commit(policy, SUITE, tmp_path / "d.json").digest
    details = {"policy": commitment.policy, "temperature": 0.5, "max_action_tokens": 8}
    assert read_challenge_of(tmp_path / "c.json").commitment.broken_by(details) == ""
    for name, value in (("policy", "0" * 64), ("temperature", 0.5001), ("max_action_tokens", 9), ("hints", True)):
        assert commitment.broken_by(details | {name: value}).startswith(f"{name} ")


def read_challenge_of(commitment: Path) -> Challenge:
    """A challenge of a commitment, as its file holds it."""
    path = commitment.with_name("drawn.json")
    draw(commitment, path)
    return read_challenge(path)


def test_what_is_no_policy_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="does not exist"):
        policy_digest(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InvalidOptionError, match="it has no weights"):
        policy_digest(tmp_path)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(InvalidOptionError, match="it has no weights"):  # They are in the folder below.
        policy_digest(tmp_path)
    with pytest.raises(InvalidOptionError, match=r"it has no config\.json"):
        policy_digest(tmp_path / "policy")


def test_the_tasks_of_a_challenge_follow_from_commitment_and_seed(policy: Path, tmp_path: Path) -> None:
    commit(policy, SUITE, tmp_path / "c.json")
    challenges = [draw(tmp_path / "c.json", tmp_path / f"{number}.json") for number in range(2)]
    assert read_challenge(tmp_path / "0.json") == challenges[0]
    suites = [challenge.suite for challenge in challenges]
    firsts = {suite.parts[0].first for suite in (*suites, SUITES[SUITE])}
    assert len(firsts) == len({suite.digest for suite in suites}) + 1 == 3
    assert suite_of(suites[0].name) == suites[0]
    (policy / "model.safetensors").write_bytes(b"better weights")
    commit(policy, SUITE, tmp_path / "other.json")
    name = suites[0].name.replace(challenges[0].commitment.digest, "0" * 64)
    assert suite_of(name).parts[0].first != suites[0].parts[0].first


def test_a_challenge_is_played_from_its_first_task_on(policy: Path, tmp_path: Path) -> None:
    commit(policy, SUITE, tmp_path / "c.json")
    suite = draw(tmp_path / "c.json", tmp_path / "d.json").suite
    result = evaluate_suite(suite, "oracle", tmp_path / "r")
    (part,) = suite.parts
    tasks = [episode.task.rpartition("/")[2] for episode in result.episodes]
    assert tasks == [str(part.first + number) for number in range(part.tasks)]
    done = call("verify", str(tmp_path / "r"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Proven: replayed." in done.stdout
    refused = call("verify", str(tmp_path / "r"), "--challenge", str(tmp_path / "d.json"))
    assert refused.returncode == 1
    assert "was committed to, and none is recorded" in " ".join(refused.stdout.split())


def test_tasks_that_everybody_knows_are_no_challenge(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="has a split that ends"):
        commit(policy, "swe-core-v2", tmp_path / "c.json")
    commit(policy, SUITE, tmp_path / "c.json")
    again = draw(tmp_path / "c.json", tmp_path / "d.json").suite.name
    with pytest.raises(InvalidOptionError, match="is that of a challenge"):
        commit(policy, again, tmp_path / "e.json")
    with pytest.raises(InvalidOptionError, match="is there already"):
        commit(policy, SUITE, tmp_path / "c.json")
    with pytest.raises(InvalidOptionError, match="is there already"):
        draw(tmp_path / "c.json", tmp_path / "d.json")


def test_a_ledger_gives_each_commitment_one_seed_and_counts_those_of_a_submitter(policy: Path, tmp_path: Path) -> None:
    ledger = tmp_path / DRAWS
    challenges = []
    for number, (submitter, temperature) in enumerate([("Ada", 1.0), ("Bob", 0.9), ("Ada", 0.8)]):
        commit(policy, SUITE, tmp_path / f"c{number}.json", PolicySettings(temperature=temperature))
        challenges.append(draw(tmp_path / f"c{number}.json", tmp_path / f"d{number}.json", ledger, submitter))
        assert read_challenge(tmp_path / f"d{number}.json") == challenges[-1]
    draws = read_draws(ledger)
    assert [(each.submitter, each.challenge) for each in draws] == [
        *zip(["Ada", "Bob", "Ada"], challenges, strict=True)
    ]
    assert described(draws, challenges[2].suite.name) == f"Challenge 2 of 2 that were drawn on {SUITE} for Ada."
    assert described(draws, challenges[1].suite.name) == f"Challenge 1 of 1 that were drawn on {SUITE} for Bob."
    before = ledger.read_text()
    with pytest.raises(InvalidOptionError, match=f"of 'Ada' has its seed, {challenges[0].seed}"):
        draw(tmp_path / "c0.json", tmp_path / "again.json", ledger, "Eve")
    as_integer = (tmp_path / "c0.json").read_text().replace('"temperature": 1.0', '"temperature": 1')
    (tmp_path / "same.json").write_text(as_integer)
    assert as_integer != (tmp_path / "c0.json").read_text()
    with pytest.raises(InvalidOptionError, match="has its seed"):
        draw(tmp_path / "same.json", tmp_path / "again.json", ledger, "Ada")
    assert ledger.read_text() == before
    assert not (tmp_path / "again.json").exists()
    unlisted = draw(tmp_path / "c0.json", tmp_path / "again.json")
    with pytest.raises(InvalidOptionError, match="the ledger of draws has no challenge"):
        described(draws, unlisted.suite.name)


def test_draws_at_once_give_a_commitment_one_seed(policy: Path, tmp_path: Path) -> None:
    commit(policy, SUITE, tmp_path / "c.json")

    def again(number: int) -> str:
        with suppress(InvalidOptionError):
            return draw(tmp_path / "c.json", tmp_path / f"d{number}.json", tmp_path / DRAWS, "Ada").seed
        return ""

    with ThreadPoolExecutor(8) as pool:
        seeds = set(pool.map(again, range(16))) - {""}
    assert seeds == {each.challenge.seed for each in read_draws(tmp_path / DRAWS)}
    assert len(seeds) == 1


@pytest.mark.parametrize("name", ["ada", "A da", "\u0410da"])
def test_a_submitter_has_one_name(name: str, policy: Path, tmp_path: Path) -> None:
    for number, temperature in enumerate((1.0, 0.9)):
        commit(policy, SUITE, tmp_path / f"c{number}.json", PolicySettings(temperature=temperature))
    draw(tmp_path / "c0.json", tmp_path / "d0.json", tmp_path / DRAWS, "Ada")
    with pytest.raises(InvalidOptionError, match="reads like 'Ada', who is in the ledger"):
        draw(tmp_path / "c1.json", tmp_path / "d1.json", tmp_path / DRAWS, name)


@pytest.mark.parametrize("name", ["", " ", "Ada ", "Ada\n", "\x1b[2J", "a" * 101])
def test_a_ledger_names_the_submitter(name: str, policy: Path, tmp_path: Path) -> None:
    commit(policy, SUITE, tmp_path / "c.json")
    with pytest.raises(InvalidOptionError, match="submitter must be a name"):
        draw(tmp_path / "c.json", tmp_path / "d.json", tmp_path / DRAWS, name)
    assert not (tmp_path / DRAWS).exists()


@pytest.mark.parametrize("text", ["", "{}{", "[3]", '[{"submitter": "Ada"}]', '[{"seed": "0"}]', "3"])
def test_what_is_no_ledger_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / DRAWS).write_text(text)
    with pytest.raises(InvalidOptionError, match=r"draws\.json"):
        read_draws(tmp_path / DRAWS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": "1"}, "its seed is '1'"),
        ({"seed": None}, "its seed is None"),
        ({"more": 1}, "it has no commitment and seed"),
        ({"commitment": []}, "it has no commitment and seed"),
        ({"commitment": {"policy": "x", "suite": SUITE, "format": "textagent-gym challenge 1"}}, "holds no commitment"),
        ({"commitment": {"policy": "0" * 64, "suite": SUITE}}, "holds no commitment"),
        ({"commitment": {**COMMITTED, "suite": "x"}}, "does not exist"),
        ({"commitment": {**COMMITTED, "temperature": "warm"}}, "temperature and max_action_tokens are not recorded"),
        ({"commitment": {**COMMITTED, "max_action_tokens": 0}}, "max_action_tokens must be at least 1"),
    ],
)
def test_what_is_no_challenge_is_refused(change: dict[str, object], said: str, policy: Path, tmp_path: Path) -> None:
    commit(policy, SUITE, tmp_path / "c.json")
    draw(tmp_path / "c.json", tmp_path / "d.json")
    path = tmp_path / "d.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidOptionError, match=said):
        read_challenge(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"seed": 1, "seed": 2}', "[" * 10_000])
def test_a_damaged_challenge_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(InvalidOptionError):
        read_challenge(tmp_path / "d.json")


def test_a_result_says_what_it_can_prove() -> None:
    assert provable(SUITE, {}) == ["replayed"]
    assert provable(SUITE, {"policy": "0"}) == ["replayed", "recomputed"]
    assert provable(f"{SUITE}@0:1", {"policy": "0"}) == ["replayed", "challenge", "recomputed"]
    assert provable(f"{SUITE}@0:1", {"policy": "0"}, exact=False) == ["replayed, texts may differ", "challenge"]


def test_the_command_line_plays_what_the_caller_names_and_verify_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "Path('imported').write_text('')\n"
        "class Agent:\n"
        "    name = 'mine:Agent'\n"
        "    def __init__(self, env): pass\n"
        "    def reset(self, seed): pass\n"
        "    def act(self, observation, info): return 'press red'\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join((str(tmp_path), *filter(None, sys.path)))}
    played = run(
        "eval", "lights/Lights-v0", "--agent", "mine:Agent", "--tasks", "2", "--out", "r", cwd=tmp_path, env=environment
    )
    assert played.returncode == 0, played.stderr
    (tmp_path / "imported").unlink()
    verified = run("verify", "r", cwd=tmp_path, env=environment)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("nothing:Agent", "cannot be imported"),
        ("json:nothing", "cannot be imported"),
        ("textagent_gym.agents:AGENTS", "is not a function or class"),
        ("nobody", "MODULE:FUNCTION"),
        ("model:nowhere", "the folder nowhere of the policy does not exist"),
        ("model:", "does not say which folder: model:FOLDER"),
    ],
)
def test_an_agent_that_is_none_is_refused(agent: str, said: str, tmp_path: Path) -> None:
    done = run("eval", "lights/Lights-v0", "--agent", agent, "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
