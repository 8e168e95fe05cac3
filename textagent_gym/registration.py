"""Every id of the suite, in one table. Nothing here imports a world: Gymnasium loads it on the first `make`."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

NAMESPACE = "textagent"
ENTRY_POINT_GROUP = "textagent_gym.envs"
"""Installed packages name here a function without arguments that calls `gymnasium.register` for their own worlds."""

_TEXTWORLD = "textagent_gym.domains.textworld.env:TextWorldEnv"
_ALFWORLD = "textagent_gym.domains.alfworld.env"
_INSTANCES = "textagent_gym.domains.swe.rows.env:SWEInstancesEnv"


@dataclass(frozen=True, slots=True)
class Registration:
    """One id: where its class is, its default keyword arguments, and one line for `textagent-gym list`."""

    id: str
    entry_point: str
    summary: str
    kwargs: dict[str, Any] = field(default_factory=dict)


def _practitioners_guide() -> tuple[Registration, ...]:
    """The complexities of arXiv 2510.01132: three sizes of each axis, from w2-o3-q4 to w8-o12-q12."""
    return tuple(
        Registration(
            f"{NAMESPACE}/TextWorld-w{rooms}-o{objects}-q{length}-v0",
            _TEXTWORLD,
            f"TextWorld with {rooms} rooms, {objects} objects and an optimal solution of {length} actions",
            {"rooms": rooms, "objects": objects, "quest_length": length},
        )
        for rooms in (2, 4, 8)
        for objects in (3, 6, 12)
        for length in (4, 8, 12)
    )


REGISTRATIONS: tuple[Registration, ...] = (
    Registration(f"{NAMESPACE}/TextWorld-v0", _TEXTWORLD, "TextWorld games of any size: rooms, objects, quest length"),
    *_practitioners_guide(),
    Registration(
        f"{NAMESPACE}/TextWorldSimple-v0", _TEXTWORLD, "tw-simple: cook dinner in a house", {"game": "simple"}
    ),
    Registration(
        f"{NAMESPACE}/TextWorldCooking-v0", _TEXTWORLD, "tw-cooking: find, prepare and eat a meal", {"game": "cooking"}
    ),
    Registration(
        f"{NAMESPACE}/TextWorldCoinCollector-v0",
        _TEXTWORLD,
        "tw-coin_collector: find the coin, level 1 to 300",
        {"game": "coin_collector"},
    ),
    Registration(
        f"{NAMESPACE}/TextWorldTreasureHunter-v0",
        _TEXTWORLD,
        "tw-treasure_hunter: take the right object, level 1 to 30",
        {"game": "treasure_hunter"},
    ),
    Registration(
        f"{NAMESPACE}/ALFWorld-v0",
        f"{_ALFWORLD}:ALFWorldRoomEnv",
        "ALFWorld in generated rooms of any size: receptacles, objects, things to place",
    ),
    Registration(
        f"{NAMESPACE}/ALFWorld-official-v0",
        f"{_ALFWORLD}:ALFWorldOfficialEnv",
        "ALFWorld's official games: bring, clean, heat, cool or look at something",
    ),
    Registration(
        f"{NAMESPACE}/SWE-v0",
        "textagent_gym.domains.swe.env:SWERepairEnv",
        "repair a real package in a sandbox: hidden tests decide",
    ),
    Registration(
        f"{NAMESPACE}/SWE-Gym-v0",
        _INSTANCES,
        "SWE-Gym: issues of real repositories in their images, dealt out to the splits",
        {"rows": "SWE-Gym/SWE-Gym", "images": "swe-gym", "dataset_split": "train", "divide": "id"},
    ),
    Registration(
        f"{NAMESPACE}/SWE-bench-v0",
        _INSTANCES,
        "SWE-bench Verified, or any data set of its form, for testing",
        {"rows": "SWE-bench/SWE-bench_Verified", "images": "swe-bench", "dataset_split": "test", "divide": "test"},
    ),
)


def register_all() -> None:
    """Register every id of the suite, and those of installed packages, with Gymnasium; again does nothing."""
    for registration in REGISTRATIONS:
        if registration.id not in registry:
            gymnasium.register(registration.id, entry_point=registration.entry_point, kwargs=dict(registration.kwargs))
    _register_installed_packages()


_loaded: set[str] = set()
_namespaces: set[str] = set()


def plugin_namespaces() -> frozenset[str | None]:
    """The namespaces of the environments that installed packages have registered."""
    return frozenset(_namespaces)


def _register_installed_packages() -> None:
    for plugin in entry_points(group=ENTRY_POINT_GROUP):
        if plugin.value in _loaded:
            continue
        _loaded.add(plugin.value)
        before = set(registry)
        try:
            plugin.load()()
            _namespaces.update(str(registry[name].namespace) for name in set(registry) - before)
        except Exception as error:  # noqa: BLE001 (somebody else's code must not take Gymnasium down with it)
            gymnasium.logger.warn(f"The environments of the package behind {plugin.value!r} are not available: {error}")
