"""JSON Schemas of the files of a result, made from the classes that hold them.

They say what a file looks like, for whoever writes or reads results without this package. Whether it is right, only a
replay can say.
"""

from __future__ import annotations

from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from textagent_gym.evaluation import EpisodeRecord, Evaluation, Interval, Summary, learning, records, remarks, results

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", NoneType: "null"}
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NOT_WRITTEN = {"episodes", "sealed"}  # Fields of an evaluation that are no part of a file's header.


def schemas() -> dict[str, dict[str, Any]]:
    """Schema of each kind of file, by its name; of files of lines, that of a line."""
    agent = {"agent": {"type": "string"}, "details": {"type": "object"}}
    suite = {"format": {"const": results.FORMAT}, "suite": {"type": "string"}, "digest": _DIGEST}
    seal = _object("Last line: SHA-256 of all lines before it, with their ends.", {"sha256": _DIGEST})
    numbers = _numbers()
    points = {"minItems": 1, "maxItems": learning.MOST_POINTS}
    summary = {
        **suite,
        "agent": {"type": "string"},
        "all": numbers,
        "parts": {"type": "object", "additionalProperties": numbers},
        "files": {"type": "object", "additionalProperties": _DIGEST},
    }
    return {
        "result.json": _schema(_object("Suite and agent of a result.", {**suite, **agent})),
        "PART.jsonl": _schema(
            {
                "description": "A line: first the header, then an episode each, then the seal.",
                "oneOf": [_header(), _episode(), seal],
            }
        ),
        "PART.conversations.jsonl.gz": _schema(
            {
                "description": "A line of the compressed file: everything that was said in an episode.",
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "role": {"enum": ["system", "user", "assistant"]},
                        "content": {"type": "string"},
                        **{
                            name: {
                                "description": "The agent's own word beside its action, which a replay does not check.",
                                "type": "string",
                                "minLength": 1,
                                "maxLength": remarks.LONGEST_REMARK,
                            }
                            for name in remarks.REMARKS
                        },
                    },
                    "required": ["role", "content"],
                },
            }
        ),
        "learning.json": _schema(
            _object(
                "Success in training, as the submitter tells it; the file is there for policies that have a curve.",
                {
                    "format": {"const": learning.FORMAT},
                    "iterations": {"type": "array", "items": {"type": "integer", "minimum": 0}, **points},
                    "success": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, **points},
                },
            )
        ),
        "summary.json": _schema(
            {
                **_object("The numbers of a result, and the SHA-256 of its other files.", summary),
                "additionalProperties": True,  # Further numbers may be written beside these.
            }
        ),
    }


def _schema(values: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": _DIALECT, **values}


def _object(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Schema of an object with exactly these properties."""
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _header() -> dict[str, Any]:
    header = _fields(Evaluation, "The header: what was played, and by whom.", without=_NOT_WRITTEN)
    header["properties"]["format"] = {"const": records.FORMAT}
    header["required"] = sorted([*header["required"], "format"])
    return header


def _episode() -> dict[str, Any]:
    episode = _fields(EpisodeRecord, "An episode.")
    for name in records.AMOUNTS:
        properties = episode["properties"]
        properties[name] = {**properties[name], "minimum": 0, "maximum": records.LARGEST_AMOUNT}
    episode["required"] = [name for name in episode["required"] if name not in records.OPTIONAL]
    return episode


def _fields(kind: type, description: str, without: set[str] | None = None) -> dict[str, Any]:
    """Schema of an object with the fields of a dataclass."""
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name not in (without or set())]
    return _object(description, {name: _type(hints[name]) for name in names})


def _type(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return {"anyOf": [_type(each) for each in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    if hint is Interval:
        bound = {"type": ["number", "null"]}
        return {"type": "array", "items": bound, "minItems": 3, "maxItems": 3}
    return {"type": _TYPES[origin or hint]}


def _numbers() -> dict[str, Any]:
    """Schema of the numbers of some episodes: of all of them, or only counts where every episode broke."""
    summary = _fields(Summary, "Means, with their intervals as [mean, low, high].")
    summary["required"] = ["asked", "broken"]
    del summary["additionalProperties"]
    summary["properties"]["asked"] = {"type": "integer"}
    return summary
