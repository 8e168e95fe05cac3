"""What can be asked of a world: its knobs, declared once.

A world's options are frozen dataclasses of knobs. Everything that has to know them reads the declaration:

    class RoomSpec(Options):                  Options.of(given)     values, checked: InvalidOptionError
        receptacles: int = knob(15, ...) ---> Options.slug          their part of a task's id
        objects: int = knob(25, ...)          check_names(...)      wrong names, with the nearest right one
                                              read_settings(...)    texts of a command line (`--set name=value`)
                                              knob_table(...)       the docs, `textagent-gym info`
                                              accepts(...)          `inspect.signature`
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import math
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache, cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import gymnasium
from gymnasium.envs.registration import load_env_creator

from textagent_gym.errors import InvalidOptionError
from textagent_gym.options import TextEnvKwargs

Axis = Literal["state_size", "action_size", "solution_length"]
AXES: tuple[str, ...] = get_args(Axis)
"""What is measured in every world, and asked for by these names where the value asked for is the value measured."""

CONTRACT: tuple[str, ...] = tuple(TextEnvKwargs.__annotations__)
"""Keyword arguments that every world takes."""

_LONGEST_NAME = 100  # Characters of what may be a misspelt name; comparing longer texts takes long.
_OTHER_TYPE = object()  # Returned where a value is not of a type, which `None` can be.
_Kwargs = TypeVar("_Kwargs")
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that can be asked of a world; made by `knob` and read by `Options.knobs`.

    Attributes:
        name: keyword argument.
        kind: type annotation; `Literal` lists the values that exist.
        default: value unless set.
        meaning: noun phrase that stands alone.
        low, high: bounds of numbers, both allowed; `None` for no bound.
        choices: values that exist, where the type does not list them; those of each element of a tuple.
        short: spelling in the slug of a task's id; `None` for what does not decide which task it is.
        always: whether it is in the slug even at its default.
        axis: second name, where the value asked for is the value measured.
    """

    name: str
    kind: Any
    default: Any
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    short: str | None = None
    always: bool = False
    axis: Axis | None = None

    @property
    def values(self) -> str:
        """What exists, in words: "1 to 100", '"house" or "basic"'."""
        return _in_words(self.kind, self.choices, _bounds(self.low, self.high))

    def checked(self, value: object) -> Any:
        """The value as the knob's type: a list as a tuple, a whole number as a float where that is asked for.

        Raises:
            InvalidOptionError: the value is of another type, out of range or not one of those that exist.
        """
        try:
            read = _read(self.kind, value)
            if self.choices and isinstance(read, tuple) and len(set(read)) < len(read):
                raise ValueError("each may be named once")
            for number in _elements(read):
                if self.choices and number is not None and number not in self.choices:
                    raise ValueError
                if isinstance(number, int | float) and not isinstance(number, bool) and not self._is_within(number):
                    raise ValueError
        except (TypeError, ValueError) as error:
            hint = did_you_mean(value, [*self.choices, *_literals(self.kind)])
            because = f" ({error})" if str(error) else ""
            raise InvalidOptionError(f"{self.name} must be {self.values}, got {value!r:.200}{because}.{hint}") from None
        return read

    def parsed(self, text: str) -> Any:
        """The value that a text on a command line names; `checked` has the last word on it.

        >>> Knob("path", str, "", "folder").parsed("2024"), Knob("rooms", int, 2, "rooms").parsed("4")
        ('2024', 4)
        """
        optional = type(None) in get_args(self.kind)
        if optional and text.lower() in ("none", "null"):
            return None
        alternatives = [kind for kind in _alternatives(self.kind) if kind is not type(None)]
        if all(kind is str for kind in alternatives):
            return text
        value = _json(text)
        if isinstance(value, str) and any(get_origin(kind) is tuple for kind in alternatives) and "," in value:
            return tuple(_json(part.strip()) for part in value.split(","))
        return value

    def spelled(self, value: Any) -> str:
        """A value in the slug of a task's id."""
        return f"{self.short}{'' if value is True else _spell(value)}"

    def _is_within(self, number: float) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


def knob(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[Any] = (),
    short: str | None = None,
    always: bool = False,
    axis: Axis | None = None,
) -> Any:
    """A field of `Options`; see `Knob` for the arguments."""
    declared = {
        "meaning": meaning, "low": low, "high": high, "choices": tuple(choices), "short": short, "always": always,
        "axis": axis,
    }  # fmt: skip
    return field(default=default, metadata=declared)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a world, checked when they are set. Subclasses are frozen dataclasses whose fields are knobs.

    Attributes:
        kind: first part of the slug; "" for none.

    Raises:
        InvalidOptionError: a value has the wrong type, is out of range or does not exist.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class LightsOptions(Options):
    ...     switches: int = knob(4, "switches in the room", low=1, high=6, short="s", always=True, axis="state_size")
    >>> LightsOptions(switches=6).slug, LightsOptions.of({"state_size": 2, "split": "test"})
    ('s6', LightsOptions(switches=2))
    >>> LightsOptions(switches=7)
    Traceback (most recent call last):
    textagent_gym.errors.InvalidOptionError: switches must be a whole number from 1 to 6, got 7.
    """

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in self.knobs():
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name)))

    @classmethod
    def knobs(cls) -> tuple[Knob, ...]:
        """The knobs, in the order of their declaration."""
        return _knobs(cls)  # type: ignore[arg-type]  # mypy takes the instances' hash for the class's.

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options among some keyword arguments; names that are not knobs of this class are left to others.

        Raises:
            InvalidOptionError: a value has the wrong type, is out of range or does not exist, or a knob is given twice.
        """
        named = {}
        for each in cls.knobs():
            names = [name for name in _names(each) if name in given]
            if len(names) > 1:
                raise InvalidOptionError(f"{' and '.join(names)} are the same knob: give one of them.")
            if names:
                named[each.name] = given[names[0]]
        return cls(**named)

    @cached_property
    def slug(self) -> str:
        """What is asked for, in the id of a task: whatever is not at its default, such as `custom-w2-o3-q4`."""
        parts = [self.kind] if self.kind else []
        for each in self.knobs():
            value = getattr(self, each.name)
            if each.short is not None and (each.always or value != each.default):
                parts.append(each.spelled(value))
        return "-".join(parts)


OptionsClass = type[Options]


def check_names(world: str, given: Collection[str], *declared: OptionsClass) -> None:
    """Every name that was given is a knob, or a keyword argument that every world takes.

    Args:
        world: name of the world, for the message.
        given: names of keyword arguments.
        declared: classes that declare the world's knobs.

    Raises:
        InvalidOptionError: there is no such option; the message names the nearest one.
    """
    names = [name for options in declared for each in options.knobs() for name in _names(each)]
    for name in given:
        if name in names or name in CONTRACT:
            continue
        hint = did_you_mean(name, [*names, *CONTRACT])
        if name in AXES:
            hint = " It is measured there (see `info['complexity']`); what is asked for are the world's own knobs."
        raise InvalidOptionError(
            f"{name!r} is not an option of {world}.{hint} "
            f"It has: {', '.join(sorted(names))}; and like every world: {', '.join(CONTRACT)}."
        )


def arguments_of(kwargs: type[_Kwargs], given: Mapping[str, Any]) -> _Kwargs:
    """Those of some keyword arguments that a `TypedDict` names, such as `TextEnvKwargs`."""
    return cast(_Kwargs, {name: value for name, value in given.items() if name in kwargs.__annotations__})


def did_you_mean(name: object, known: Collection[object]) -> str:
    """A sentence, after a space, that names the nearest of the names that exist; "" where none is near.

    >>> did_you_mean("romms", ["rooms", "objects"])
    " Did you mean 'rooms'?"
    """
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    near = difflib.get_close_matches(name, [item for item in known if isinstance(item, str)], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def accepts(*declared: OptionsClass) -> Callable[[_Function], _Function]:
    """Decorator of an `__init__` with `**options`: `inspect.signature` shows the knobs and what every world takes.

    A default that is not the same in all classes, or that `TextEnv` alone knows, is shown as `...`.
    """

    def decorate(function: _Function) -> _Function:
        kinds, defaults = dict[str, Any](), dict[str, Any]()
        for options in declared:
            for each in options.knobs():
                for name in _names(each):
                    kind, default = each.kind, each.default if name == each.name else None
                    if name in kinds and (kinds[name], defaults[name]) != (kind, default):
                        kind, default = Union[kinds[name], kind], ...  # noqa: UP007 (made at run time)
                    kinds[name], defaults[name] = kind, default
        for name, kind in get_type_hints(TextEnvKwargs).items():
            kinds[name], defaults[name] = kind, ...
        plain = inspect.signature(function)
        shown = [each for each in plain.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        shown += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
            for name, kind in kinds.items()
        ]
        function.__signature__ = plain.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return decorate


def options_of(world: str | type, given: Mapping[str, Any] | None = None) -> tuple[OptionsClass, ...]:
    """Classes that declare the knobs of a world.

    Args:
        world: registered id, class of an environment, or a class of `Options`, which declares its own.
        given: keyword arguments that the world is made with; TextWorld has other knobs for another `game`.

    Returns:
        what the environment's class method `declared_options(given)` returns; `()` where it has none.
    """
    given = dict(given or {})
    if isinstance(world, str):
        registered = gymnasium.spec(world)
        entry_point = registered.entry_point
        assert entry_point is not None
        given = {**registered.kwargs, **given}
        world = cast(type, load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point)
    if isinstance(world, type) and issubclass(world, Options):
        return (world,)
    declared = getattr(world, "declared_options", None)
    return () if declared is None else tuple(declared(given))


def knob_table(world: str | type, given: Mapping[str, Any] | None = None) -> str:
    """The knobs of a world as a Markdown table: name, values, default, meaning.

    Args:
        world: registered id, class of an environment, or a class of `Options`.
        given: keyword arguments that the world is made with; the table then shows each knob's value, not its default.

    Returns:
        the table, or "" for a world that declares no knobs.
    """
    set_already = {**(gymnasium.spec(world).kwargs if isinstance(world, str) else {}), **(given or {})}
    rows = [f"| knob | values | {'default' if given is None else 'value'} | meaning |", "| --- | --- | --- | --- |"]
    for options in options_of(world, given):
        for each in options.knobs():
            names = " or ".join(f"`{name}`" for name in _names(each))
            default = _shown(set_already.get(each.name, each.default))
            rows.append(f"| {names} | {each.values} | {default} | {each.meaning} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def split_settings(settings: Iterable[str]) -> dict[str, str]:
    """The names and the texts of `name=value` pairs.

    Raises:
        InvalidOptionError: a pair has no name or no value, or a name is set twice.

    >>> split_settings(["rooms=4", "goal=brief"])
    {'rooms': '4', 'goal': 'brief'}
    """
    texts: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidOptionError(f"a setting is name=value, such as rooms=4, got {setting!r}")
        if name in texts:
            raise InvalidOptionError(f"{name} is set twice: give it once, got {setting!r} too")
        texts[name] = value
    return texts


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`name=value` pairs as keyword arguments: a value is JSON where it can be read as such, and text otherwise.

    Raises:
        InvalidOptionError: a pair has no name or no value, or a name is set twice.

    >>> parse_settings(("rooms=4", "reward_density=dense", "cut=true", "infos=oracle_action"))
    {'rooms': 4, 'reward_density': 'dense', 'cut': True, 'infos': ['oracle_action']}
    """
    return {name: _plain(name, text) for name, text in split_settings(settings).items()}


def read_settings(
    world: str | type, settings: Mapping[str, str], given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Keyword arguments from the texts of a command line, each read as its knob's type.

    What is not a knob is JSON where it can be read as such, and text otherwise.

    Args:
        world: registered id, class of an environment, or a class of `Options`.
        settings: texts by name.
        given: keyword arguments from elsewhere, which may decide which knobs there are.

    Raises:
        InvalidOptionError: a value has the wrong type, is out of range or does not exist.
    """
    plain = {name: _plain(name, text) for name, text in settings.items()}
    declared = options_of(world, {**(given or {}), **plain})
    known = {name: each for options in declared for each in options.knobs() for name in _names(each)}
    return {
        name: known[name].checked(known[name].parsed(text)) if name in known else plain[name]
        for name, text in settings.items()
    }


@cache
def _knobs(options: type[Any]) -> tuple[Knob, ...]:
    kinds = get_type_hints(options)
    fields = dataclasses.fields(options)
    assert all(each.default is not MISSING for each in fields), f"a knob of {options.__name__} has no default"
    return tuple(Knob(each.name, kinds[each.name], each.default, **each.metadata) for each in fields)


def _names(each: Knob) -> tuple[str, ...]:
    """Keyword arguments that set a knob."""
    return tuple(dict.fromkeys(name for name in (each.name, each.axis) if name is not None))


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _literals(kind: Any) -> Iterator[Any]:
    for alternative in _alternatives(kind):
        if get_origin(alternative) is Literal:
            yield from get_args(alternative)


def _elements(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _read(kind: Any, value: Any) -> Any:
    """A value as a type.

    Raises:
        TypeError, ValueError: it is not one of that type.
    """
    for alternative in _alternatives(kind):
        read = _read_plainly(alternative, value)
        if read is not _OTHER_TYPE:
            return read
    raise TypeError


def _read_plainly(kind: Any, value: Any) -> Any:  # One branch per type that a knob may have.
    if kind is type(None):
        return None if value is None else _OTHER_TYPE
    if get_origin(kind) is Literal:
        return next((item for item in get_args(kind) if type(item) is type(value) and item == value), _OTHER_TYPE)
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), value)
    if kind is bool:
        return value if isinstance(value, bool) else _OTHER_TYPE
    if kind is int:
        return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else _OTHER_TYPE
    if kind is float:
        correct = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if correct else _OTHER_TYPE
    if kind is str:
        return str(value) if isinstance(value, str) else _OTHER_TYPE
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        return kind(**value)
    return value if isinstance(value, kind) else _OTHER_TYPE


def _read_tuple(kinds: tuple[Any, ...], value: Any) -> Any:
    """A pair (least, most), or any number of elements, for which one text alone stands too."""
    if kinds[-1] is Ellipsis:
        if isinstance(value, str):
            value = (value,)
        if not isinstance(value, list | tuple) or not value:
            return _OTHER_TYPE
        return tuple(_read(kinds[0], item) for item in value)
    if not isinstance(value, list | tuple) or len(value) != len(kinds):
        return _OTHER_TYPE
    pair = tuple(_read(kind, item) for kind, item in zip(kinds, value, strict=True))
    if pair[0] > pair[-1]:
        raise ValueError("the first is more than the second")
    return pair


def _bounds(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f"up to {_number(high)}"
    return f"from {_number(low)}" + ("" if high is None else f" to {_number(high)}")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _in_words(kind: Any, choices: tuple[Any, ...], bounds: str) -> str:
    """A type and its values as a noun phrase."""
    alternatives = []
    for alternative in _alternatives(kind):
        if alternative is type(None):
            alternatives.append("`None`")
        elif get_origin(alternative) is Literal:
            alternatives += [_shown(item) for item in get_args(alternative)]
        elif get_origin(alternative) is tuple and get_args(alternative)[-1] is not Ellipsis:
            alternatives.append(f"a pair (least, most) of {_plural(get_args(alternative)[0])} {bounds}".rstrip())
        elif get_origin(alternative) is tuple:
            some = ", ".join(map(_shown, choices)) if choices else _plural(get_args(alternative)[0])
            alternatives.append(f"one or more of {some}" if choices else f"one or more {some}")
        elif choices:
            alternatives += map(_shown, choices)
        else:
            alternatives.append(f"{_singular(alternative)} {bounds}".rstrip())
    return alternatives[0] if len(alternatives) == 1 else f"{', '.join(alternatives[:-1])} or {alternatives[-1]}"


_SINGULAR = {int: "a whole number", float: "a number", str: "a text", bool: "`True` or `False`"}
_PLURAL = {int: "whole numbers", float: "numbers", str: "texts"}


def _singular(kind: Any) -> str:
    return _SINGULAR.get(kind) or f"a `{kind.__name__}`"


def _plural(kind: Any) -> str:
    return _PLURAL[kind]


def _shown(value: Any) -> str:
    """A value in a table or a message."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return f"`{value}`" if value is None or isinstance(value, bool) else str(value)


def _spell(value: Any) -> str:
    """A value in an id: two values that differ are spelled differently."""
    if isinstance(value, tuple):
        return ("to" if isinstance(value[0], float) else "+").join(map(_spell, value))
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value).replace(" ", "_").replace("/", "_")


def _plain(name: str, text: str) -> Any:
    """What a text means where no knob says more; `infos` names several things, or one, or none."""
    value = _json(text)
    if name == "infos" and not isinstance(value, list):
        return [] if value is None else [value]
    return value


def _json(text: str) -> Any:
    """JSON, the way Python writes `True`, `False` and `None` included, or the text itself."""
    try:
        return json.loads(text.lower() if text in ("True", "False", "None") else text)
    except ValueError:
        return text
