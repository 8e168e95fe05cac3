"""How far a result is to be trusted beyond its score: what maintainers have proven and noted, beside the results.

A replay at the time of building proves the score. What else was proven when a result was accepted is in `trust.json` at
the top of the folder of results: levels by the SHA-256 of a result's `summary.json`, which holds those of all its other
files. A level may be followed by a colon and what proves it. It is the maintainers' own file; nothing in a submission
says how far it is to be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.draws import DRAWS, described, read_draws
from textagent_gym.evaluation.trust import CHALLENGE, RECOMPUTED, REPLAYED, REPLAYED_BUT_TEXTS
from textagent_gym.files import locked_folder, write_whole

LEDGER = "trust.json"
RERUN = "re-run"
LEVELS = {
    REPLAYED_BUT_TEXTS: "Every action was played again in a world that says its texts may differ from run to run, such "
    "as the time that tests took: rewards, endings, scores and numbers were the same; what the agent read was not "
    "compared. Of the suite's own agents, only random and oracle were asked what they would do.",
    REPLAYED: "Every action was played again: the score is right. Who played is what the submitter says, except for "
    "the agents random, admissible-random, oracle and expert, which were asked what they would do.",
    CHALLENGE: "The tasks were drawn after the submitter had committed to a policy by its digest: nobody knew them. "
    "Who commits often may show the best draw: where there is a ledger of draws, the result's page says how many.",
    RECOMPUTED: "Every token was computed again with the policy: it is what the policy samples; nobody else acted.",
    RERUN: "A maintainer has run the agent again, and that result was checked by replay, too: the 95% interval of the "
    "difference, task by task, holds zero. Both successes are on the result's page.",
}
"""Meaning of each level, from the weakest on."""


def read_ledger(results: Path) -> dict[str, tuple[str, ...]]:
    """Levels that were proven when results were accepted, by the SHA-256 of their summaries; empty without a ledger.

    They are as they were noted; see `level_of`.

    Raises:
        InvalidOptionError: the file holds something else.
    """
    path = results / LEDGER
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        levels = {str(digest): tuple(each) for digest, each in values.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InvalidOptionError(f"{path} is not a ledger of trust: {error}") from error
    unknown = {level_of(str(noted)) for each in levels.values() for noted in each} - set(LEVELS)
    if unknown:
        names = ", ".join(sorted(unknown))[:200]
        raise InvalidOptionError(f"{path} names levels that do not exist: {names}; choose of: {', '.join(LEVELS)}")
    return levels


def level_of(noted: str) -> str:
    """The level that was noted, without what proves it.

    >>> level_of("re-run: success 0.78 as sent and 0.79 when run again"), level_of("recomputed")
    ('re-run', 'recomputed')
    """
    return noted.partition(":")[0]


def draws_noted(results: Path, suite: str) -> str:
    """How many challenges the submitter of a result has had, in words, by the organiser's ledger beside the results.

    Args:
        results: folder of the results.
        suite: name of the suite of the result, with commitment and seed.

    Raises:
        InvalidOptionError: the file is no ledger.
    """
    draws = read_draws(results / DRAWS)
    if not draws:
        return f"There is no ledger of draws ({DRAWS}): how many challenges the submitter has had is not known."
    if not any(each.challenge.suite.name == suite for each in draws):
        return f"The ledger of draws ({DRAWS}) does not hold this challenge."
    return described(draws, suite)


def note_trust(results: Path, digest: str, levels: Sequence[str]) -> None:
    """Add to the ledger what was proven of a result.

    Args:
        results: folder of the results.
        digest: SHA-256 of the result's summary, hexadecimal.
        levels: levels that were proven, with what proves them or without.
    """
    with locked_folder(results):
        ledger = {**read_ledger(results), digest: tuple(levels)}
        write_whole(results / LEDGER, json.dumps(ledger, indent=2, sort_keys=True) + "\n")


def forget_trust(results: Path, digest: str) -> None:
    """Take a result out of the ledger, which is no longer there as it was.

    Args:
        results: folder of the results.
        digest: SHA-256 of the result's summary, hexadecimal.
    """
    with locked_folder(results):
        ledger = {each: levels for each, levels in read_ledger(results).items() if each != digest}
        write_whole(results / LEDGER, json.dumps(ledger, indent=2, sort_keys=True) + "\n")
