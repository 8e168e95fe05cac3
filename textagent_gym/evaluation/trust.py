"""Who played: what a result can prove beyond its score, in levels.

    replayed      every action was played again: the score is right, whoever acted
                  ("replayed, texts may differ" where a world's texts may: all else was the same)
    challenge     the tasks were drawn after the submitter had committed to a policy: nobody knew them
    recomputed    every token was computed again with the policy: it is what the policy samples, and nobody else acted

A maintainer who runs the agent again needs no proof. A challenge goes in three steps:

    submitter     commitment = sha256(policy)            published
    organiser     seed = random                          published afterwards, with the commitment
    submitter     plays the suite of (commitment, seed)  tasks of endless splits, from positions that both decide
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from textagent_gym.agents import PolicySettings
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.published import check_endless, suite_of
from textagent_gym.evaluation.records import read_line, small_file
from textagent_gym.evaluation.suites import Suite
from textagent_gym.files import check_writable, write_whole

REPLAYED, CHALLENGE, RECOMPUTED = "replayed", "challenge", "recomputed"
REPLAYED_BUT_TEXTS = "replayed, texts may differ"
FORMAT = "textagent-gym challenge 3"
_HASH = re.compile(r"[0-9a-f]{64}")
_SEED = re.compile(r"[0-9a-f]{32}")
_NOTES = (".md", ".png")  # What people read, and no policy is loaded from.


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """What a submitter publishes before the seed is drawn.

    Attributes:
        policy: digest of the policy (see `policy_digest`).
        suite: name of the suite whose settings are played.
        temperature, max_action_tokens, hints: settings of the sampling (see `PolicySettings`): others give other
            episodes.
        format: format of the file.
    """

    policy: str
    suite: str
    temperature: float
    max_action_tokens: int
    hints: bool = False
    format: str = FORMAT

    @property
    def digest(self) -> str:
        """SHA-256 of the commitment, hexadecimal."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def broken_by(self, details: Mapping[str, Any]) -> str:
        """What of an agent is not what was committed to, in words; "" if nothing.

        Args:
            details: facts about the agent.
        """
        for name in ("policy", "temperature", "max_action_tokens", "hints"):
            asked, there = getattr(self, name), details.get(name, False if name == "hints" else None)
            if there != asked:
                there_in_words = "none" if there is None else f"{there!s:.12}"
                return f"{name} {asked!s:.12} was committed to, and {there_in_words} is recorded"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A commitment, and the seed that was drawn after it was published.

    Attributes:
        commitment: what the submitter had published.
        seed: 32 hexadecimal digits, drawn at random.
    """

    commitment: Commitment
    seed: str

    @property
    def suite(self) -> Suite:
        """The suite that is played; its name says from which commitment and seed it follows."""
        return suite_of(f"{self.commitment.suite}@{self.commitment.digest}:{self.seed}")


def provable(suite: str, details: Mapping[str, Any], *, exact: bool = True) -> list[str]:
    """Levels of trust that a result can prove: every result its score, and who played where it holds what proves it.

    Args:
        suite: name of the suite.
        details: facts about the agent.
        exact: whether everything that the agent read can be compared: no world says that its texts may differ. What a
            policy was told decides what it says, so without it nothing can be recomputed.
    """
    levels = {
        REPLAYED if exact else REPLAYED_BUT_TEXTS: True,
        CHALLENGE: "@" in suite and "policy" in details,
        RECOMPUTED: "policy" in details and "backend" not in details and exact,
    }
    return [level for level, proves in levels.items() if proves]


def settings_of(details: Mapping[str, Any]) -> PolicySettings:
    """The settings of the sampling among the facts about a policy.

    Raises:
        InvalidOptionError: they are not those of a policy.
    """
    temperature, tokens = details.get("temperature"), details.get("max_action_tokens")
    hints = details.get("hints", False)
    if not isinstance(temperature, float | int) or isinstance(temperature, bool) or type(tokens) is not int:
        raise InvalidOptionError("the agent is no policy: its temperature and max_action_tokens are not recorded")
    if not isinstance(hints, bool):
        raise InvalidOptionError(f"hints must be true or false, got {hints!r:.100}")
    return PolicySettings(temperature=float(temperature), max_action_tokens=tokens, hints=hints)


def policy_digest(folder: str | Path) -> str:
    """SHA-256 of a policy, hexadecimal: of its files (see `policy_files`) and their names.

    Raises:
        InvalidOptionError: see `policy_files`.
    """
    digest = hashlib.sha256()
    for name, path in policy_files(folder).items():
        with open(path, "rb") as file:
            digest.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def policy_files(folder: str | Path) -> dict[str, Path]:
    """The files of a policy by their names below its folder, sorted: all but notes and hidden ones.

    Whoever loads a policy that is known by its digest loads these files alone: a configuration may name hidden ones.

    Raises:
        InvalidOptionError: the folder does not exist, holds no policy, or takes parts from elsewhere.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidOptionError(f"the folder {folder} of the policy does not exist")
    names = {path.relative_to(folder): path for path in folder.rglob("*")}
    files = {
        name.as_posix(): path
        for name, path in names.items()
        if path.is_file() and path.suffix not in _NOTES and not any(part.startswith(".") for part in name.parts)
    }
    strange = next((name for name in files if not name.isprintable()), None)
    if strange is not None:  # A line end in a name could stand for another file.
        raise InvalidOptionError(f"the folder {folder} of the policy holds a file called {strange!r:.100}")
    # Weights in PyTorch's own files may be what lay in memory before, which is in no file.
    if not any(name.endswith(".safetensors") and "/" not in name for name in files):
        raise InvalidOptionError(
            f"the folder {folder} holds no policy: it has no weights (*.safetensors, which save_pretrained writes)"
        )
    if "config.json" not in files:
        raise InvalidOptionError(f"the folder {folder} holds no policy: it has no config.json, so nobody can load it")
    _check_parts(folder, files)
    return dict(sorted(files.items()))


def _check_parts(folder: Path, files: Mapping[str, Path]) -> None:
    """Raise `InvalidOptionError` for a policy that would be loaded from other files than those of its folder."""
    if "adapter_config.json" in files:
        raise InvalidOptionError(f"the folder {folder} holds an adapter, whose base is elsewhere: merge them first")
    if any(path.is_symlink() and path.is_dir() for path in folder.rglob("*")):
        raise InvalidOptionError(f"the folder {folder} holds a link to a folder: copy what it links to")
    for name, path in files.items():
        if name.endswith(".index.json"):
            shards = _read(path).get("weight_map")
            here = {other for other in files if "/" not in other} if "/" not in name else set()
            if not isinstance(shards, dict) or not here >= set(map(str, shards.values())):
                raise InvalidOptionError(f"{path} names weights that are not in the folder {folder}")


def commit(policy: str | Path, suite: str, path: Path, settings: PolicySettings | None = None) -> Commitment:
    """Write the commitment to a policy, and to the settings with which it is sampled.

    Args:
        policy: folder of the policy.
        suite: name of the suite whose settings will be played.
        path: file that is written; it must not exist.
        settings: settings of the sampling; by default those of `PolicySettings`.

    Raises:
        InvalidOptionError: there is no such policy or suite, the suite has a split that ends, or the file exists.
    """
    check_endless(suite_of(suite))
    commitment = Commitment(policy=policy_digest(policy), suite=suite, **asdict(settings or PolicySettings()))
    _write_new(path, asdict(commitment))
    return commitment


def draw_seed(commitment: Path) -> Challenge:
    """Draw the seed of a commitment.

    Args:
        commitment: file that `commit` has written and the submitter has published.

    Raises:
        InvalidOptionError: the file holds no commitment.
    """
    return Challenge(commitment=_commitment(_read(commitment), commitment), seed=secrets.token_hex(16))


def write_challenge(challenge: Challenge, path: Path) -> None:
    """Write a challenge.

    Raises:
        InvalidOptionError: the file exists.
    """
    _write_new(path, asdict(challenge))


def read_challenge(path: Path) -> Challenge:
    """The challenge of a file.

    Raises:
        InvalidOptionError: it holds none.
    """
    return challenge_of(_read(path), path)


def challenge_of(values: Mapping[str, Any], path: Path) -> Challenge:
    """The challenge of JSON values, which are those of a file.

    Raises:
        InvalidOptionError: they hold none.
    """
    if set(values) != {"commitment", "seed"} or not isinstance(values["commitment"], dict):
        raise InvalidOptionError(f"{path} is no challenge: it has no commitment and seed")
    seed = values["seed"]
    if not isinstance(seed, str) or not _SEED.fullmatch(seed):
        raise InvalidOptionError(f"{path} is no challenge: its seed is {seed!r:.100}, not 32 hexadecimal digits")
    return Challenge(commitment=_commitment(values["commitment"], path), seed=seed)


def _commitment(values: dict[str, object], path: Path) -> Commitment:
    """A commitment from JSON values.

    Raises:
        InvalidOptionError: they do not make a commitment.
    """
    policy, suite = values.get("policy"), values.get("suite")
    right = set(values) == {each.name for each in fields(Commitment)} and values["format"] == FORMAT
    if not right or not isinstance(suite, str) or not isinstance(policy, str) or not _HASH.fullmatch(policy):
        raise InvalidOptionError(f"{path} holds no commitment of {FORMAT!r}")
    check_endless(suite_of(suite))
    return Commitment(policy=policy, suite=suite, **asdict(settings_of(values)))


def _read(path: Path) -> dict[str, object]:
    text = small_file(path)
    try:
        values = read_line(text)
    except ValueError as error:
        raise InvalidOptionError(f"{path} {error}") from None
    if not isinstance(values, dict):
        raise InvalidOptionError(f"{path} holds no JSON object")
    return values


def _write_new(path: Path, values: dict[str, object]) -> None:
    check_writable(path)
    if path.exists():
        raise InvalidOptionError(f"{path} is there already, and is not overwritten")
    write_whole(path, json.dumps(values, indent=2, sort_keys=True) + "\n")
