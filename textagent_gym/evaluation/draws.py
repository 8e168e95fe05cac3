"""The organiser's ledger of challenges: every seed that was drawn, for whose commitment, in order.

A challenge alone does not show that nobody drew again. With a ledger that the organiser publishes, a commitment has one
seed, and whoever looks at a result sees how many commitments its submitter has made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from textagent_gym.agents.names import reads_like
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.trust import Challenge, challenge_of, draw_seed, write_challenge
from textagent_gym.files import check_writable, locked_folder, write_whole

DRAWS = "draws.json"
"""Name of the ledger in a folder of results, where the leaderboard looks for it."""
_LONGEST_NAME = 100  # Characters of a submitter's name: a line of a page.


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A line of the ledger.

    Attributes:
        submitter: name of whoever has published the commitment, as the organiser knows them.
        challenge: commitment, and the seed that was drawn for it.
    """

    submitter: str
    challenge: Challenge


def read_draws(path: Path) -> tuple[Draw, ...]:
    """The draws of a ledger in their order; none if the file does not exist.

    Raises:
        InvalidOptionError: the file holds something else.
    """
    if not path.exists():
        return ()
    try:
        lines = json.loads(path.read_text(encoding="utf-8"))
        draws = [(line.pop("submitter"), line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidOptionError(f"{path} is no ledger of draws: {error!r}") from None
    return tuple(Draw(submitter=str(name), challenge=challenge_of(values, path)) for name, values in draws)


def draw(commitment: Path, path: Path, ledger: Path | None = None, submitter: str = "") -> Challenge:
    """Draw the seed of a commitment, and write the challenge: the organiser's step.

    Args:
        commitment: file that `commit` has written and the submitter has published.
        path: file that is written; it must not exist.
        ledger: the organiser's ledger, which is made if it is missing, and refuses a second draw; `None` for none.
        submitter: name of whoever has published the commitment, for the ledger.

    Raises:
        InvalidOptionError: the first file holds no commitment, the second exists, the submitter has no name, or the
            commitment has its seed already.
    """
    challenge = draw_seed(commitment)
    check_writable(path)
    if path.exists():
        raise InvalidOptionError(f"{path} is there already, and is not overwritten")
    if ledger is not None:
        check_writable(ledger)
        with locked_folder(ledger.parent):  # Two draws at once would each find none before them.
            draws = read_draws(ledger)
            _check_new(draws, challenge.commitment.digest, submitter)
            lines = [{"submitter": each.submitter, **asdict(each.challenge)} for each in draws]
            lines.append({"submitter": submitter, **asdict(challenge)})
            write_whole(ledger, json.dumps(lines, indent=2, sort_keys=True) + "\n")
    write_challenge(challenge, path)
    return challenge


def _check_new(draws: Sequence[Draw], commitment: str, submitter: str) -> None:
    """Raise `InvalidOptionError` for a commitment that has its seed already, or a submitter without a name.

    Args:
        draws: draws of the ledger.
        commitment: digest of the commitment.
        submitter: name of the submitter.
    """
    if not 0 < len(submitter) <= _LONGEST_NAME or not submitter.isprintable() or submitter != submitter.strip():
        raise InvalidOptionError(
            f"submitter must be a name of at most {_LONGEST_NAME} characters for the ledger, without spaces around it, "
            f"got {submitter!r:.200}"
        )
    known = next((each.submitter for each in draws if reads_like(each.submitter, submitter)), submitter)
    if known != submitter:
        raise InvalidOptionError(f"submitter {submitter!r} reads like {known!r}, who is in the ledger: use that name")
    for each in draws:
        if each.challenge.commitment.digest == commitment:
            raise InvalidOptionError(
                f"the commitment {commitment[:12]} of {each.submitter!r} has its seed, {each.challenge.seed}: a second "
                "draw would let the submitter choose"
            )


def described(draws: Sequence[Draw], suite: str) -> str:
    """Whose challenge the suite of a result is, and how many this submitter has had drawn, in words.

    Args:
        draws: draws of the ledger.
        suite: name of the suite, with commitment and seed.

    Raises:
        InvalidOptionError: the ledger has no such challenge.
    """
    drawn = next((each for each in draws if each.challenge.suite.name == suite), None)
    if drawn is None:
        raise InvalidOptionError(f"the ledger of draws has no challenge {suite}")
    name = drawn.challenge.commitment.suite
    others = [each for each in draws if each.submitter == drawn.submitter and each.challenge.commitment.suite == name]
    return f"Challenge {others.index(drawn) + 1} of {len(others)} that were drawn on {name} for {drawn.submitter}."
