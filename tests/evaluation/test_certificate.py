"""A world that keeps its promises is certified, and each promise that a world breaks is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import gymnasium
import pytest

from tests.cli.program import run
from tests.evaluation import spelling, worlds
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.certificate import BROKEN, KEPT, NOT_APPLICABLE, Certificate, certify
from textagent_gym.evaluation.leaks import leak
from textagent_gym.evaluation.promises import (
    PROMISES,
    an_environment_pickles,
    any_string_is_survived,
    density_changes_rewards_alone,
    doing_nothing_earns_nothing,
    equal_seeds_give_equal_episodes,
    gymnasium_has_nothing_to_say,
    harder_settings_are_harder,
    no_observation_contains_the_solution,
    random_text_wins_nothing,
    snapshots_and_replays_agree,
    splits_are_disjoint,
    the_oracle_solves_every_task,
    vectors_play_the_same,
)
from textagent_gym.evaluation.subject import BrokenPromiseError, Promise


@pytest.fixture(autouse=True, scope="module")
def _worlds() -> Iterator[None]:
    worlds.register()
    yield
    for name in worlds.WORLDS:
        del gymnasium.registry[f"spelling/{name}-v0"]


def check(world: str, *promises: Promise) -> Certificate:
    return certify(f"spelling/{world}-v0", tasks=6, strings=1000, promises=promises or PROMISES, apart=False)


@pytest.mark.parametrize("world", ["SpellingEnv", "Puzzling"])
def test_a_world_that_keeps_every_promise_is_certified(world: str) -> None:
    certificate = check(world)
    assert {finding.status for finding in certificate.findings} == {KEPT}, certificate.report
    assert len(certificate.findings) == len(PROMISES)
    assert certificate.holds
    assert json.loads(json.dumps(certificate.to_dict()))["holds"] is True


@pytest.mark.parametrize(
    ("world", "promise", "said"),
    [
        ("LongWay", the_oracle_solves_every_task, "5 actions, as measured, solve"),
        ("LostOracle", the_oracle_solves_every_task, "the oracle solves"),
        ("Underpaid", the_oracle_solves_every_task, "is exactly 1.0"),
        ("WageForNothing", doing_nothing_earns_nothing, "empty actions earn nothing in task 0"),
        ("WonByNothing", doing_nothing_earns_nothing, "empty actions do not solve task 0"),
        ("Generous", random_text_wins_nothing, "random text does not solve task 0"),
        ("Hashed", equal_seeds_give_equal_episodes, "in a process with PYTHONHASHSEED=1 (at ["),
        ("Forgetful", equal_seeds_give_equal_episodes, "in one process"),
        ("Ordered", equal_seeds_give_equal_episodes, "whatever was played before"),
        ("Unreliable", snapshots_and_replays_agree, "a snapshot of task 0 is restored in"),
        ("Sticky", snapshots_and_replays_agree, "is the same when it is replayed"),
        ("Fragile", any_string_is_survived, "raised UnicodeEncodeError"),
        ("Leaving", any_string_is_survived, "raised SystemExit"),
        ("Absent", random_text_wins_nothing, "it raises SystemExit"),
        ("NotANumber", any_string_is_survived, "is a number"),
        ("Talkative", no_observation_contains_the_solution, "the observation of Spelling"),
        ("TalkativeList", no_observation_contains_the_solution, "info['memory'] of Spelling"),
        ("TalkativeInfo", no_observation_contains_the_solution, "info['hint'] of Spelling"),
        ("Dense", density_changes_rewards_alone, "reads the same at 0.5"),
        ("Waged", density_changes_rewards_alone, "returns nothing at 'sparse' before it is solved"),
        ("Overpaid", density_changes_rewards_alone, "returns at most 1.0 at 'sparse' (2.0)"),
        ("Consoling", density_changes_rewards_alone, "before it is solved"),
        ("Overlapping", splits_are_disjoint, "task 0 of split 'validation' is in no other"),
        ("NoHarder", harder_settings_are_harder, "length=8 is harder than length=5"),
        ("Easier", harder_settings_are_harder, "for admissible-random"),
        ("Unpicklable", an_environment_pickles, "ResetNeeded"),
        ("Alone", vectors_play_the_same, "two environments in-process play what one alone does"),
        ("Loose", gymnasium_has_nothing_to_say, "Gymnasium's checker says"),
    ],
)
def test_a_broken_promise_is_noticed(world: str, promise: Promise, said: str) -> None:
    (finding,) = check(world, promise).findings
    assert finding.status == BROKEN
    assert said in finding.what


BLANK = (
    "BlankBefore",
    "TabBefore",
    "BlankAfter",
    "BlankBetween",
    "WideBetween",
    "HiddenBefore",
    "HiddenAfter",
    "HiddenBetween",
)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        ("Hinting", "what the oracle does next is told by the observation: named by"),
        ("HintingInfo", "is told by info['notes']: "),
        ("HintingTwo", "the observation: named by"),
        ("HintingEarly", "is told by the observation of the turn before: "),
        ("HintingSometimes", "the observation: named by"),
        ("HintingLoudly", "the observation: named by"),
        ("HintingAmongDecoys", "the observation: named by"),
        ("HintingInAList", "the observation: named most often by"),
        ("HintingWithoutActions", "the observation: named by"),
        ("Shouting", "the observation: written otherwise than the rest by"),
        ("Starring", "the observation: written otherwise than the rest by"),
        (
            "FirstInText",
            "what the oracle does next is told by the observation: the first of",
        ),
        ("LastInText", "the observation: the last of the commands in"),
        ("ThirdInText", "the observation: the third of the commands in"),
        ("FourthToLastInText", "the observation: the fourth to last of the commands in"),
        ("TellingKeys", "is told by info['notes']: "),
        ("TellingBytes", "is told by info['notes']: "),
        ("TellingByName", "is told by the keys of info: "),
        *((name, "the observation: written otherwise than the rest by") for name in BLANK),
        ("FirstInInfo", "is told by the order of info['admissible_actions']: "),
        ("LeavingOut", "the observation: left out by"),
        ("TellingIds", "does next stands in info['task'] of Spelling/v1/n5/train/0: "),
        ("OneStep", "the observation: named by"),
    ],
)
def test_a_world_that_tells_the_next_command_is_noticed(world: str, said: str) -> None:
    promises = (no_observation_contains_the_solution,)
    (finding,) = certify(f"spelling/{world}-v0", strings=1, promises=promises, apart=False).findings
    assert finding.status == BROKEN
    assert said in finding.what


@pytest.mark.parametrize(
    "world",
    [
        *("SpellingEnv", "Listing", "ListingBackwards", "ListingAnyhow", "NamingAnything", "Reminding", "Echoing"),
        *("EchoingWithoutActions", "Reporting"),
    ],
)
def test_a_world_that_names_commands_without_regard_to_what_is_right_tells_nothing(world: str) -> None:
    promises = (no_observation_contains_the_solution,)
    (finding,) = certify(f"spelling/{world}-v0", strings=1, promises=promises, apart=False).findings
    assert finding.status == KEPT, finding.what


def test_a_world_that_ends_its_process_breaks_the_promise_that_is_checked() -> None:
    certificate = certify("spelling/Vanishing-v0", tasks=1, strings=1000, promises=(splits_are_disjoint, *PROMISES[5:]))
    assert [finding.status for finding in certificate.findings] == [KEPT, BROKEN]
    assert certificate.findings[1].promise == "any string is survived"
    assert "the process that plays the world ended with status 0" in certificate.findings[1].what
    assert not certificate.holds
    with pytest.raises(BrokenPromiseError, match="cannot be made: the process that plays the world ended with status"):
        certify("spelling/Unmakeable-v0", tasks=1)


def test_a_world_that_ends_its_process_fails_the_command() -> None:
    done = run("certify", "tests.evaluation.certified:spelling/Vanishing-v0", "--tasks", "1", "--strings", "1000")
    assert done.returncode == 1
    assert "1 of 6 promises is broken" in " ".join(done.stdout.split())


def test_what_a_world_does_not_declare_is_not_applicable() -> None:
    certificate = check("Plain")
    statuses = {finding.promise: (finding.status, finding.what) for finding in certificate.findings}
    assert statuses["the oracle solves every task"] == (
        NOT_APPLICABLE,
        "the world is not built on textagent_gym.TextEnv",
    )
    assert statuses["any string is survived"][0] == statuses["equal seeds give equal episodes"][0] == KEPT
    assert certificate.holds, certificate.report


def test_the_length_that_was_measured_is_that_of_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = spelling.Words._measure

    def too_short(self: spelling.Words, world: str) -> object:
        from dataclasses import replace

        complexity, *rest = measure(self, world)
        return replace(complexity, solution_length=4), *rest

    monkeypatch.setattr(spelling.Words, "_measure", too_short)
    (finding,) = check("SpellingEnv", the_oracle_solves_every_task).findings
    assert "4 actions, as measured, solve" in finding.what


def test_a_list_of_commands_in_another_order_gives_nothing_away() -> None:
    plan = ("take key", "go north", "open door", "go east")
    assert leak("You can: go north, open door, take key.", plan) == ()
    assert leak("Take key here. " + "x" * 60 + " go north " + "x" * 60 + " open door", plan) == ()
    assert leak("first TAKE  KEY, then\ngo north and open door", plan) == plan[:3]
    assert leak("go north, open door, go east", plan) == plan[1:]


def test_what_cannot_be_certified_says_so() -> None:
    with pytest.raises(InvalidOptionError, match="tasks must be at least 1, got 0"):
        certify("lights/Lights-v0", tasks=0)
    with pytest.raises(InvalidOptionError, match="strings must be at least 1, got -1"):
        certify("lights/Lights-v0", strings=-1)
    with pytest.raises(InvalidOptionError, match="does not exist"):
        certify("nobody/Nothing-v0")
    with pytest.raises(InvalidOptionError, match="not a text environment"):
        certify("CartPole-v1")


def test_a_world_whose_code_raises_where_it_is_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object, **options: object) -> None:
        raise KeyError("data")

    monkeypatch.setattr(spelling.SpellingEnv, "__init__", fails)
    with pytest.raises(BrokenPromiseError, match=r"SpellingEnv-v0 cannot be made: KeyError: 'data' \(.*line"):
        check("SpellingEnv")


@pytest.mark.parametrize(
    ("harder", "said"),
    [
        ({"zz": (1, 2)}, "harder cannot be zz=1: .*'zz'"),
        ({"length": (3, 99)}, "harder cannot be length=99: length must be"),
        ({"length": (3,)}, "at least two values of length"),
    ],
)
def test_settings_that_a_world_does_not_have_are_refused(harder: dict[str, tuple[int, ...]], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        certify("spelling/SpellingEnv-v0", tasks=1, harder=harder, apart=False)


def test_the_command_prints_a_certificate_and_says_by_its_status_whether_it_holds() -> None:
    arguments = ("certify", "tests.evaluation.certified:spelling/SpellingEnv-v0", "--tasks", "2", "--strings", "50")
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert "leaked" not in done.stderr  # The processes end by themselves.
    certificate = json.loads(done.stdout)
    assert certificate["holds"]
    assert len(certificate["findings"]) == len(PROMISES)
    broken = run(*arguments, "--harder", "length=9,3")
    assert broken.returncode == 1
    said = " ".join(broken.stdout.split())
    assert "harder settings are harder" in said
    assert "length=3 is harder than length=9" in said
    assert "1 of 13 promises is broken" in said
