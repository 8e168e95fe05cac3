"""What can be asked of a world: one declaration, and everything that is read from it."""

from __future__ import annotations

import contextlib
import inspect
import re
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import load_env_creator

pytest.importorskip("textworld", reason='needs: pip install "textagent-gym[textworld]"')

from textagent_gym.core import TextEnv
from textagent_gym.domains.alfworld.generator import RoomSpec
from textagent_gym.domains.textworld.specs import SPECS, CustomSpec, make_spec
from textagent_gym.errors import InfeasibleDifficultyError, InvalidOptionError
from textagent_gym.knobs import AXES, Knob, Options, accepts, check_names, knob, knob_table, options_of, read_settings
from textagent_gym.options import TextEnvKwargs
from textagent_gym.registration import REGISTRATIONS


def named(value: object) -> str:
    """A name that is the same in every process."""
    return f"{type(value).__name__} {value}".partition(" at 0x")[0]


def world_of(name: str) -> str:
    """The name of the package that an id's world is in."""
    return load_env_creator(gymnasium.spec(name).entry_point).__module__.split(".")[2]


DOCS = Path(__file__).parents[1] / "docs"
IDS = [registration.id for registration in REGISTRATIONS if not re.search(r"-w\d", registration.id)]
WORLDS: list[type[TextEnv[Any]]] = list(dict.fromkeys(load_env_creator(each.entry_point) for each in REGISTRATIONS))
DECLARED = dict.fromkeys(
    (options, world_of(name))
    for name in IDS
    for options in (*options_of(name), *(SPECS.values() if "/TextWorld-v0" in name else ()))
)
"""What is declared, and by which world: the name of its package."""


@dataclass(frozen=True, kw_only=True)
class Everything(Options):
    """A knob of each type."""

    kind = "all"

    number: int = knob(3, "a number", low=1, high=9, short="n", always=True)
    share: float = knob(0.5, "a share", low=0.0, high=1.0, short="s")
    flag: bool = knob(False, "a flag", short="flag")
    text: str = knob("", "a text")
    theme: Literal["house", "basic"] | None = knob(None, "a theme", short="t=")
    types: tuple[str, ...] = knob(("a", "b"), "some types", choices=("a", "b", "big one"), short="types=")
    span: tuple[float, float] | None = knob(None, "a span", low=0.0, short="span=")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"number": np.int64(4)}, {"number": 4}),
        ({"share": 1}, {"share": 1.0}),
        ({"types": "b"}, {"types": ("b",)}),
        ({"types": ["a", "big one"]}, {"types": ("a", "big one")}),
        ({"span": [1, 2]}, {"span": (1.0, 2.0)}),
        ({"span": None}, {"span": None}),
        ({"theme": "basic"}, {"theme": "basic"}),
    ],
    ids=str,
)
def test_a_value_is_read_as_the_type_of_its_knob(given: dict[str, Any], read: dict[str, Any]) -> None:
    options = Everything.of({**given, "split": "test"})
    for name, value in read.items():
        assert getattr(options, name) == value
        assert type(getattr(options, name)) is type(value)


WRONG_VALUES = (
    None,
    True,
    0,
    10,
    2.5,
    float("nan"),
    float("inf"),
    "x",
    "",
    b"a",
    [],
    [1],
    (2, 1),
    {"a": 1},
    {1},
    object(),
)


@pytest.mark.parametrize(
    "value", WRONG_VALUES, ids=lambda value: f"{type(value).__name__} {value}".partition(" at 0x")[0]
)
def test_a_wrong_value_of_any_type_is_one_kind_of_error(value: object) -> None:
    for each in Everything.knobs():
        with contextlib.suppress(InvalidOptionError):
            read = getattr(Everything.of({each.name: value}), each.name)
            assert each.checked(read) == read
    with pytest.raises(InvalidOptionError, match="a whole number from 1 to 9"):
        Everything(number=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [(), [], 5, ""], ids=repr)
def test_a_knob_of_several_names_takes_at_least_one(value: object) -> None:
    with pytest.raises(InvalidOptionError, match="types"):
        Everything.of({"types": value})


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(
    "value", WRONG_VALUES, ids=lambda value: f"{type(value).__name__} {value}".partition(" at 0x")[0]
)
def test_no_wrong_value_of_any_knob_is_a_bare_error(name: str, value: object) -> None:
    for options in options_of(name):
        for each in options.knobs():
            with contextlib.suppress(InvalidOptionError, InfeasibleDifficultyError):
                options.of({each.name: value})


@pytest.mark.parametrize("name", [registration.id for registration in REGISTRATIONS])
@pytest.mark.parametrize(("typo", "meant"), [("reward_densty", "reward_density"), ("num_task", "num_tasks")])
def test_a_misspelt_option_names_the_right_one_when_the_env_is_made(name: str, typo: str, meant: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{typo}' is not an option of .* Did you mean '{meant}'"):
        gymnasium.make(name, **{typo: 1})


@pytest.mark.parametrize("name", IDS)
def test_every_knob_is_known_by_its_name_and_not_by_a_misspelt_one(name: str) -> None:
    declared = options_of(name)
    for options in declared:
        for each in options.knobs():
            check_names(name, [each.name], *declared)
            with pytest.raises(InvalidOptionError, match="Did you mean"):
                check_names(name, [f"{each.name}s"], *declared)


def test_two_names_of_one_knob_are_not_given_together() -> None:
    assert make_spec(solution_length=7) == make_spec(quest_length=7)
    with pytest.raises(InvalidOptionError, match="quest_length and solution_length are the same knob"):
        make_spec(quest_length=7, solution_length=7)


def axes_of(name: str) -> set[str]:
    """Axes on which a world takes a value."""
    return {each.axis for options in options_of(name) for each in options.knobs() if each.axis is not None}


def numbered_axes_of(name: str) -> set[str]:
    """Axes on which a world takes one value, and not a range that tasks are chosen by."""
    knobs = [each for options in options_of(name) for each in options.knobs()]
    return {each.axis for each in knobs if each.axis is not None and "a pair" not in each.values}


@pytest.mark.parametrize("name", [name for name in IDS if numbered_axes_of(name)])
def test_the_value_asked_for_on_an_axis_is_the_value_measured(name: str) -> None:
    values = {"state_size": 7, "action_size": 15, "solution_length": 5}
    asked = {axis: values[axis] for axis in numbered_axes_of(name)}
    measured = gymnasium.make(name, **asked).reset(options={"task_index": 0})[1]["complexity"]
    assert {axis: getattr(measured, axis) for axis in asked} == asked


def test_an_axis_has_one_name() -> None:
    assert all(each.axis == each.name for options, _ in DECLARED for each in options.knobs() if each.name in AXES)


@pytest.mark.parametrize("name", [registration.id for registration in REGISTRATIONS])
def test_an_axis_on_which_nothing_can_be_asked_is_measured(name: str) -> None:
    for axis in set(AXES) - axes_of(name):
        with pytest.raises(InvalidOptionError, match="It is measured there"):
            gymnasium.make(name, **{axis: 4})


def test_a_slug_tells_different_requests_apart() -> None:
    assert Everything().slug == "all-n3"
    assert Everything(number=4, flag=True, types=("b", "big one"), span=(1, 2.5)).slug == (
        "all-n4-flag-types=b+big_one-span=1to2.5"
    )
    slugs = {Everything(share=share).slug for share in (0.5, 0.50000001, 0.500000011, 0.0, 1.0)}
    assert len(slugs) == 5
    assert RoomSpec(closed=0.4, exploration=(25, 30)).slug == "r15-o25-closed=0.4-exploration=25to30"
    assert make_spec("cooking", recipe=2, cook=True).slug == "cooking-recipe2-take1-go1-cook"


def test_every_knob_that_decides_a_task_is_in_the_slug() -> None:
    for options in (RoomSpec, *(spec for spec in SPECS.values() if spec.kind != "files")):
        spelled = [each.short for each in options.knobs()]
        assert all(spelled), options
        assert len(set(spelled)) == len(spelled)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_signature_shows_every_knob_and_what_every_world_takes(world: type[TextEnv[Any]]) -> None:
    names = [name for name in inspect.signature(world).parameters if name != "tasks"]
    options = [each for declared in options_of(world) for each in declared.knobs()]
    assert {each.name for each in options} | set(TextEnvKwargs.__annotations__) <= set(names)
    assert not any(each.kind is each.VAR_KEYWORD for each in inspect.signature(world).parameters.values())
    # What editors show is the same.
    (kwargs,) = typing.get_args(typing.get_type_hints(world.__init__)["options"])
    assert set(kwargs.__annotations__) == set(names)


def test_a_signature_has_the_declared_types_and_defaults() -> None:
    class World:
        @accepts(Everything)
        def __init__(self, tasks: object, **options: Any) -> None: ...

    shown = inspect.signature(World).parameters
    assert list(shown)[:2] == ["tasks", "number"]
    assert (shown["number"].annotation, shown["number"].default) == (int, 3)
    assert shown["split"].default is ...


@pytest.mark.parametrize(
    ("options", "world"), DECLARED, ids=[f"{world}-{options.__name__}" for options, world in DECLARED]
)
def test_every_knob_is_on_the_page_of_its_world(options: type[Options], world: str) -> None:
    table, pages = knob_table(options), sorted(DOCS.glob(f"{world}*.md"))
    assert table
    shown = any(table in page.read_text(encoding="utf-8") for page in pages)
    assert shown, f"one of {[page.name for page in pages]} should hold this table:\n\n{table}\n"


def test_a_range_in_a_docstring_is_the_declared_one() -> None:
    told = set()
    for world in WORLDS:
        knobs: dict[str, Knob] = {each.name: each for options in options_of(world) for each in options.knobs()}
        for name, low, high in re.findall(r"^ *\| `(\w+)` \| ([\d,]+) to ([\d,]+) \|", world.__doc__ or "", re.M):
            assert (knobs[name].low, knobs[name].high) == (int(low.replace(",", "")), int(high.replace(",", ""))), name
            told.add(name)
    assert told >= {"rooms", "objects", "quest_length", "receptacles", "solution_length", "mutants"}


def test_the_table_shows_what_a_registered_id_is_made_with() -> None:
    assert "| `rooms` | a whole number from 1 to 100 | 8 |" in knob_table("textagent/TextWorld-w8-o3-q4-v0")
    assert "| `recipe` |" in knob_table("textagent/TextWorldCooking-v0")
    assert "| `level` |" in knob_table("textagent/TextWorld-v0", {"game": "coin_collector"})
    assert "| `quest_length` or `solution_length` |" in knob_table(CustomSpec)
    assert knob_table(object) == ""


def test_a_world_of_one_knob_has_a_table() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Single(Options):
        size: int = knob(3, "a size")

    assert knob_table(Single).splitlines()[2:] == ["| `size` | a whole number | 3 | a size |"]


def test_every_meaning_stands_alone() -> None:
    for options, _ in DECLARED:
        for each in options.knobs():
            assert re.match(r"[A-Za-z`]", each.meaning), each
            assert not re.match(r"(of|for|where|when|that|which|what|how) ", each.meaning), each
            assert not each.meaning.endswith("."), each


@pytest.mark.parametrize(
    ("world", "texts", "read"),
    [
        ("textagent/TextWorld-v0", {"rooms": "4", "goal": "brief", "x": "y"}, {"rooms": 4, "goal": "brief", "x": "y"}),
        ("textagent/TextWorldCooking-v0", {"cut": "True", "rooms": "6"}, {"cut": True, "rooms": 6}),
        ("textagent/TextWorld-v0", {"game": "coin_collector", "level": "3"}, {"game": "coin_collector", "level": 3}),
        ("textagent/ALFWorld-v0", {"task_types": "pick,two"}, {"task_types": ("pick", "two")}),
        ("textagent/ALFWorld-v0", {"closed": "1"}, {"closed": 1.0}),
        ("textagent/ALFWorld-v0", {"exploration": "[2, 9]", "room": "None"}, {"exploration": (2.0, 9.0), "room": None}),
        ("textagent/ALFWorld-official-v0", {"data": "2024", "shuffle": "7"}, {"data": "2024", "shuffle": 7}),
        ("textagent/ALFWorld-v0", {"reward_density": "0.5", "split": "test"}, {"reward_density": 0.5, "split": "test"}),
    ],
    ids=str,
)  # fmt: skip
def test_settings_of_a_command_line_have_the_types_of_their_knobs(
    world: str, texts: dict[str, str], read: dict[str, Any]
) -> None:
    assert read_settings(world, texts) == read


def test_a_wrong_setting_of_a_command_line_says_what_exists() -> None:
    with pytest.raises(InvalidOptionError, match="rooms must be a whole number from 1 to 100, got 'four'"):
        read_settings("textagent/TextWorld-v0", {"rooms": "four"})
