"""Episodes of a result with everything that was said in them, for formats of other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import EpisodeRecord, Evaluation, load, load_result
from textagent_gym.evaluation.records import bounded_lines, conversations_of, read_line
from textagent_gym.evaluation.remarks import MOST_REMARKS, kept_remarks
from textagent_gym.evaluation.results import records_of


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """An episode, and what was said in it.

    Attributes:
        suite, part: names of the suite and of its part that was played.
        number: position of the episode in the part, from 0.
        repeat: number of the episode among those of its task, from 0.
        agent, details: name of the agent, and further facts about it.
        record: record of the episode.
        instructions: text on how to act that the agent read before the first observation; "" for none.
        observations: texts that the agent read: first, and after each action.
        remarks: texts that the agent's model wrote beside each action, by name (see `evaluation.remarks.REMARKS`).
    """

    suite: str
    part: str
    number: int
    repeat: int
    agent: str
    details: dict[str, Any]
    record: EpisodeRecord
    instructions: str
    observations: tuple[str, ...]
    remarks: tuple[dict[str, str], ...]

    @property
    def run(self) -> str:
        """Name of the result that the episode belongs to."""
        return f"{self.suite}/{self.agent}"

    @property
    def id(self) -> str:
        """Name of the episode in its suite."""
        return f"{self.suite}/{self.part}/{self.number}"


def read_conversations(path: Path) -> Iterator[Conversation]:
    """The episodes of a result, as its files have them: nothing is played again. Those that broke are left out.

    Args:
        path: folder of the result of a suite; or result file of an id, which is a suite of one part.

    Raises:
        InvalidOptionError: it is no complete result, or a conversation does not fit its episode.
    """
    if path.is_dir():
        result = load_result(path)
        suite, parts = (
            result.suite.name,
            {records_of(path, part): result.evaluations[part.name] for part in result.suite.parts},
        )
    else:
        evaluation = load(path)
        suite, parts = evaluation.env, {path: evaluation}
    for file, evaluation in parts.items():
        beside = conversations_of(file)
        for number, (record, line) in enumerate(zip_longest(evaluation.episodes, bounded_lines(beside))):
            where = f"{beside}, line {number + 1}"
            if record is None or line is None:
                raise InvalidOptionError(f"{where}: there are not as many conversations as episodes")
            if record.broken:
                continue
            try:
                yield _said(evaluation, record, line, suite=suite, part=file.stem, number=number)
            except ValueError as error:
                raise InvalidOptionError(f"{where} {error}") from None


def _said(
    evaluation: Evaluation, record: EpisodeRecord, line: bytes, *, suite: str, part: str, number: int
) -> Conversation:
    """An episode with its conversation.

    Args:
        evaluation: what the episode belongs to.
        record: its record.
        line: its conversation, as the file has it.
        suite, part, number: names of what it belongs to, and its position there.

    Raises:
        ValueError: they do not fit; the message continues a sentence that names the line.
    """
    texts: dict[str, list[str]] = {"system": [], "user": [], "assistant": []}
    try:
        messages = read_line(line)
        for message in messages:
            if not isinstance(message["content"], str):
                raise TypeError
            texts[message["role"]].append(message["content"])
    except (TypeError, KeyError):
        raise ValueError("is no conversation") from None
    fits = tuple(texts["assistant"]) == record.actions and len(texts["user"]) == record.turns + 1
    if not fits or len(texts["system"]) > 1 or len(record.rewards) != record.turns:
        raise ValueError("does not say what was played; see textagent-gym verify")
    return Conversation(
        suite=suite,
        part=part,
        number=number,
        repeat=number % max(1, evaluation.repeats),
        agent=evaluation.agent,
        details=evaluation.details,
        record=record,
        instructions="".join(texts["system"]),
        observations=tuple(texts["user"]),
        remarks=remarks_of(messages),
    )


def whole(value: Any) -> Any:
    """A JSON value that JSON of others can hold, too: half a surrogate pair, which a model may write, is replaced.

    >>> whole({"text": "go \\ud800 north"})
    {'text': 'go \ufffd north'}
    """
    text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.loads(text)


def call_of(remarks: Mapping[str, str]) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments of the function that a model called natively; `None` if it called none that can be read.

    >>> call_of({"call": '{"arguments": "", "name": "look_around"}'})
    ('look_around', {})
    """
    try:
        call = read_line(remarks["call"].encode())
        arguments = read_line(call["arguments"].encode() or b"{}")
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return (call["name"], arguments) if isinstance(call.get("name"), str) and isinstance(arguments, dict) else None


def remarks_of(messages: list[dict[str, Any]]) -> tuple[dict[str, str], ...]:
    """What an agent's model wrote beside each action of a conversation, by name."""
    answers = (message for message in messages if message["role"] == "assistant")
    return tuple(kept_remarks(answer, MOST_REMARKS)[0] for answer in answers)
