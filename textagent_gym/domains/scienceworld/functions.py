"""ScienceWorld's commands as functions: the tools, and the way from a command to a call and back."""

from __future__ import annotations

from dataclasses import dataclass

from textagent_gym.calls import Call, Parameter, Tool

_OBJECT = Parameter("object", "name of a thing, such as `thermometer` or `door to kitchen`")
_LOCATION = Parameter("location", "name of a room, such as `kitchen`")
_TARGET = Parameter("target", "name of another thing")
_MAY_TARGET = Parameter("target", "name of another thing, where one is meant", required=False)


@dataclass(frozen=True, slots=True)
class _Form:
    """A sort of command.

    Attributes:
        verb: words that begin the command.
        tool: what makes the command as a call.
        joint: word between the first and the second argument.
    """

    verb: str
    tool: Tool
    joint: str = ""


def _form(name: str, description: str, *parameters: Parameter, verb: str = "", joint: str = "") -> _Form:
    return _Form(verb or name.replace("_", " "), Tool(name, description, parameters), joint)


_CHOOSE = Tool("choose", "Choose from a numbered list.", (Parameter("number", "number on the list", "integer"),))
_FORMS = (
    _form("open", "Open a door or a container.", _OBJECT),
    _form("close", "Close a door or a container.", _OBJECT),
    _form("go", "Go to a room next to this one, through an open door.", _LOCATION, verb="go to"),
    _form("teleport", "Go to any room, in worlds that have it.", _LOCATION, verb="teleport to"),
    _form("look_around", "See what is in the room."),
    _form("look_at", "See what a thing is like.", _OBJECT),
    _form("examine", "See what a thing is like.", _OBJECT),
    _form("look_in", "See what is in a container.", _OBJECT),
    _form("activate", "Switch a device on.", _OBJECT),
    _form("deactivate", "Switch a device off.", _OBJECT),
    _form("use", "Use a thing, such as a thermometer on a liquid.", _OBJECT, _MAY_TARGET, joint="on"),
    _form("read", "Read what is written on a thing.", _OBJECT),
    _form("pick_up", "Take a thing.", _OBJECT),
    _form("put_down", "Put a thing that is carried down here.", _OBJECT),
    _form("drop", "Put a thing that is carried down here.", _OBJECT),
    _form("move", "Move a thing into a container.", _OBJECT, _TARGET, joint="to"),
    _form("pour", "Pour a liquid into a container.", _OBJECT, _TARGET, joint="into"),
    _form("dunk", "Dunk a container into a liquid.", _OBJECT, _TARGET, joint="into"),
    _form("mix", "Mix what is in a container.", _OBJECT),
    _form("connect", "Connect two parts of a circuit, such as `anode in battery`.", _OBJECT, _TARGET, joint="to"),
    _form("disconnect", "Disconnect a part of a circuit.", _OBJECT),
    _form("eat", "Eat a thing.", _OBJECT),
    _form("flush", "Flush a thing.", _OBJECT),
    _form("focus", "Say that this is what the task asks for; the wrong one loses.", _OBJECT, verb="focus on"),
    _form("inventory", "List what is carried."),
    _form("task", "Repeat what is to be done."),
    _form("wait", "Let ten turns pass."),
    _form("wait1", "Let one turn pass."),
    _form("reset_task", "Forget progress and focus, not what has happened in the world."),
)
TOOLS = (*(form.tool for form in _FORMS), _CHOOSE)
"""What an action may call with `action_format="functions"`."""
_BY_NAME = {form.tool.name: form for form in _FORMS}


def command_of(call: Call) -> str:
    """The command that a call of one of the `TOOLS` stands for.

    >>> command_of(Call("use", {"object": "thermometer", "target": "water"}))
    'use thermometer on water'
    """
    if call.tool == _CHOOSE.name:
        return str(call.arguments["number"])
    form = _BY_NAME[call.tool]
    given = [str(call.arguments[each.name]) for each in form.tool.parameters if each.name in call.arguments]
    return " ".join([form.verb, f" {form.joint} ".join(given)]).rstrip()


def call_of(command: str) -> Call:
    """The call that stands for a command, of an expert or from the list of valid actions.

    >>> call_of("use thermometer on water").arguments
    {'object': 'thermometer', 'target': 'water'}

    Raises:
        ValueError: it is not such a command.
    """
    if command.isascii() and command.isdigit():
        return Call(_CHOOSE.name, {"number": int(command)})
    for form in _FORMS:
        names = [each.name for each in form.tool.parameters]
        if not names and command == form.verb:
            return Call(form.tool.name)
        if names and command.startswith(f"{form.verb} "):
            rest = command.removeprefix(f"{form.verb} ")
            given = rest.split(f" {form.joint} ", 1) if form.joint else [rest]
            return Call(form.tool.name, dict(zip(names, given, strict=False)))
    raise ValueError(f"{command!r} is not a command of ScienceWorld")
