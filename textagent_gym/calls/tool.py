"""A tool, and a call of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_LARGEST_NUMBER = 10**9  # Nothing that is counted here has so many parts, and no such number takes long to read.


class ActionError(ValueError):
    """An action does not say what to do; the message, which the agent reads, says why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        name: name in a call.
        description: meaning of the parameter, for a model.
        kind: type of the value, in the words of JSON Schema.
        required: whether every call must give it.
    """

    name: str
    description: str
    kind: Literal["string", "integer"] = "string"
    required: bool = True

    def accepts(self, value: object) -> bool:
        """Whether a value is of the parameter's type; whole numbers are of nine digits at most."""
        if self.kind == "string":
            return isinstance(value, str)
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_NUMBER


@dataclass(frozen=True, slots=True)
class Tool:
    """What an agent can do.

    Attributes:
        name: name in a call.
        description: effect of the tool, for a model.
        parameters: parameters of the tool, in order.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as an OpenAI function definition, which chat templates and chat servers take."""
        parameters = {
            "type": "object",
            "properties": {item.name: {"type": item.kind, "description": item.description} for item in self.parameters},
            "required": [item.name for item in self.parameters if item.required],
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise `ActionError` unless a call may have these arguments."""
        for parameter in self.parameters:
            if parameter.name in arguments and not parameter.accepts(arguments[parameter.name]):
                kind = "a string" if parameter.kind == "string" else "a whole number"
                raise ActionError(f"{parameter.name} of {self.name} must be {kind}.")
            if parameter.name not in arguments and parameter.required:
                raise ActionError(f"{self.name} needs {parameter.name}.")
        names = [parameter.name for parameter in self.parameters]
        unknown = sorted(set(arguments) - set(names))
        if unknown:
            raise ActionError(f"{self.name} has no {', '.join(unknown)}; it has {', '.join(names) or 'no arguments'}.")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
