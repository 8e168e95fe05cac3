"""Every id of the suite, in one table. Nothing here imports a world: Gymnasium loads it on the first `make`."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from textagent_gym.errors import InvalidOptionError, MissingDependencyError

NAMESPACE = "textagent"
ENTRY_POINT_GROUP = "textagent_gym.envs"
"""Installed packages name here a function without arguments that calls `gymnasium.register` for their own worlds."""

_TEXTWORLD = "textagent_gym.domains.textworld.env:TextWorldEnv"
_ALFWORLD = "textagent_gym.domains.alfworld.env"
_TEXTCRAFT = "textagent_gym.domains.textcraft.env"
_BABYAI = "textagent_gym.domains.babyai.env"
_SCIENCEWORLD = "textagent_gym.domains.scienceworld.env:ScienceWorldEnv"
_INSTANCES = "textagent_gym.domains.swe.rows.env:SWEInstancesEnv"


@dataclass(frozen=True, slots=True)
class Registration:
    """One id.

    Attributes:
        id: name that `gymnasium.make` takes.
        entry_point: module and class of the environment, as "module:class".
        summary: one line for `textagent-gym list`.
        kwargs: default keyword arguments.
    """

    id: str
    entry_point: str
    summary: str
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """What the rest of the suite needs to know of a world without importing it.

    Attributes:
        name: short name, for people.
        ids: registered ids.
        packages: distributions whose versions decide what happens in an episode; result files hold them.
        extra: extra of `textagent-gym` that playing it needs; "" for none.
        modules: modules that the extra installs; without them, making or resetting the world raises
            `MissingDependencyError`.
        data: "module:function" that fetches official data (see `alfworld.download.download`); "" for none.
        cache: folders below the cache folder that hold what the world has made.
        local_options: keyword arguments that decide what is read or run on this machine; a result file made by
            somebody else may not set them.
        nondeterministic: whether equal actions may be answered by other texts, such as the time of day.
    """

    name: str
    ids: tuple[Registration, ...]
    packages: tuple[str, ...] = ()
    extra: str = ""
    modules: tuple[str, ...] = ()
    data: str = ""
    cache: tuple[str, ...] = ()
    local_options: tuple[str, ...] = ()
    nondeterministic: bool = False


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


TEXTWORLD = World(
    "TextWorld",
    (
        Registration(
            f"{NAMESPACE}/TextWorld-v0", _TEXTWORLD, "TextWorld games of any size: rooms, objects, quest length"
        ),
        *_practitioners_guide(),
        Registration(
            f"{NAMESPACE}/TextWorldSimple-v0", _TEXTWORLD, "tw-simple: cook dinner in a house", {"game": "simple"}
        ),
        Registration(
            f"{NAMESPACE}/TextWorldCooking-v0",
            _TEXTWORLD,
            "tw-cooking: find, prepare and eat a meal",
            {"game": "cooking"},
        ),
        Registration(
            f"{NAMESPACE}/TextWorldCoinCollector-v0",
            _TEXTWORLD,
            "tw-coin_collector: find the coin, level 1 to 100, 101 to 150 or 201 to 233",
            {"game": "coin_collector"},
        ),
        Registration(
            f"{NAMESPACE}/TextWorldTreasureHunter-v0",
            _TEXTWORLD,
            "tw-treasure_hunter: take the right object, level 1 to 30",
            {"game": "treasure_hunter"},
        ),
    ),
    packages=("textworld", "jericho"),
    extra="textworld",
    modules=("textworld", "jericho"),
    cache=("textworld",),
    local_options=("path",),
)

ALFWORLD = World(
    "ALFWorld",
    (
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
    ),
    packages=("alfworld", "textworld"),
    data="textagent_gym.domains.alfworld.download:download",
    cache=("alfworld",),
    local_options=("data",),
)

TEXTCRAFT = World(
    "TextCraft",
    (
        Registration(
            f"{NAMESPACE}/TextCraft-v0",
            f"{_TEXTCRAFT}:TextCraftGraphEnv",
            "TextCraft with recipes of any depth, number and length: read them, get, craft",
        ),
    ),
)

TEXTCRAFT_MINECRAFT = World(
    "TextCraft with Minecraft's recipes",
    (
        Registration(
            f"{NAMESPACE}/TextCraft-minecraft-v0",
            f"{_TEXTCRAFT}:TextCraftMinecraftEnv",
            "TextCraft with Minecraft's recipes: craft one of their outputs",
        ),
    ),
    packages=("minecraft_data",),
    extra="textcraft",
    modules=("minecraft_data",),
    local_options=("data",),
)

BABYAI_LEVELS = (
    "GoToRedBallGrey", "GoToRedBall", "GoToRedBallNoDists", "GoToObjS6", "GoToLocalS8N7", "GoToObjMazeS7",
    "GoToImpUnlock", "GoToSeqS5R2", "GoToRedBlueBall", "GoToDoor", "GoToObjDoor", "Open", "OpenRedDoor", "OpenDoorLoc",
    "OpenRedBlueDoorsDebug", "OpenDoorsOrderN4Debug", "Pickup", "UnblockPickup", "PickupLoc", "PickupDistDebug",
    "PickupAbove", "PutNextLocalS6N4", "PutNextS7N4Carrying", "Unlock", "UnlockLocalDist", "KeyInBox",
    "UnlockPickupDist", "BlockedUnlockPickup", "UnlockToUnlock", "ActionObjDoor", "FindObjS7", "KeyCorridorS6R3",
    "OneRoomS20", "MoveTwoAcrossS8N9", "SynthS5R2", "SynthLoc", "SynthSeq", "MiniBossLevel", "BossLevel",
    "BossLevelNoUnlock",
)  # fmt: skip
"""AgentGym's forty levels of BabyAI, in its order."""

BABYAI = World(
    "BabyAI",
    (
        Registration(
            f"{NAMESPACE}/BabyAI-v0",
            f"{_BABYAI}:BabyAIGridEnv",
            "BabyAI with rooms, objects and clauses in any number: follow an instruction by what is seen",
        ),
        *(
            Registration(
                f"{NAMESPACE}/BabyAI-{level}-v0",
                f"{_BABYAI}:BabyAILevelEnv",
                f"BabyAI's level {level}, as Minigrid draws it",
                {"level": level},
            )
            for level in BABYAI_LEVELS
        ),
    ),
    packages=("minigrid",),
    extra="babyai",
    modules=("minigrid",),
)

_SCIENCEWORLD_TASKS = (
    "boil",
    "melt",
    "freeze",
    "change-the-state-of-matter-of",
    "use-thermometer",
    "measure-melting-point-known-substance",
    "measure-melting-point-unknown-substance",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "find-animal",
    "grow-plant",
    "grow-fruit",
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "lifespan-longest-lived",
    "lifespan-shortest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "identify-life-stages-1",
    "identify-life-stages-2",
    "inclined-plane-determine-angle",
    "inclined-plane-friction-named-surfaces",
    "inclined-plane-friction-unnamed-surfaces",
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
)

SCIENCEWORLD = World(
    "ScienceWorld",
    (
        Registration(f"{NAMESPACE}/ScienceWorld-v0", _SCIENCEWORLD, "ScienceWorld: 30 tasks of primary school science"),
        *(
            Registration(
                f"{NAMESPACE}/ScienceWorld-{name}-v0",
                _SCIENCEWORLD,
                f"ScienceWorld's task {name}",
                {"task_types": [name]},
            )
            for name in _SCIENCEWORLD_TASKS
        ),
    ),
    packages=("scienceworld",),
    extra="scienceworld",
    modules=("scienceworld", "py4j"),
    cache=("scienceworld",),
)

SWE = World(
    "SWE",
    (
        Registration(
            f"{NAMESPACE}/SWE-v0",
            "textagent_gym.domains.swe.mutants.env:SWERepairEnv",
            "repair a real package in a sandbox: hidden tests decide",
        ),
    ),
    packages=("pytest",),
    extra="swe",
    modules=("pytest",),
    cache=("swe", "sandbox"),
    local_options=("recipes", "limits"),
    nondeterministic=True,
)

SWE_ROWS = World(
    "SWE rows",
    (
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
    ),
    packages=("pytest", "swebench", "datasets"),
    extra="swebench",
    modules=("swebench",),
    cache=("swe", "sandbox"),
    local_options=("rows", "limits"),
    nondeterministic=True,
)

WORLDS = (TEXTWORLD, ALFWORLD, TEXTCRAFT, TEXTCRAFT_MINECRAFT, BABYAI, SCIENCEWORLD, SWE, SWE_ROWS)
"""Every world of the suite."""

REGISTRATIONS: tuple[Registration, ...] = tuple(registration for world in WORLDS for registration in world.ids)
"""Every id of the suite."""


def register_all() -> None:
    """Register every id of the suite, and those of installed packages, with Gymnasium; again does nothing."""
    for world in WORLDS:
        for registration in world.ids:
            if registration.id not in registry:
                gymnasium.register(
                    registration.id,
                    entry_point=registration.entry_point,
                    kwargs=dict(registration.kwargs),
                    nondeterministic=world.nondeterministic,
                )
    _register_installed_packages()


def import_hint(error: BaseException) -> str:
    """What helps against an error of an import, to be said after it; empty if nothing is known to."""
    if isinstance(error, ModuleNotFoundError) and str(error.name).endswith(".py"):
        return "; leave out .py: it is the name of a module"
    if isinstance(error, ModuleNotFoundError):
        return "; install its package, or name the folder of its file in PYTHONPATH (PYTHONPATH=. for this one)"
    return ""


def full_id(env: str) -> str:
    """The id that is meant: a version or the namespace may be left out, and a module to import may stand before it.

    Raises:
        InvalidOptionError: no environment has it; the message names the closest.

    >>> full_id("TextWorld-w2-o3-q4")
    'textagent/TextWorld-w2-o3-q4-v0'
    """
    register_all()
    module, colon, name = env.rpartition(":")
    if colon:
        try:
            importlib.import_module(module)
        except (ImportError, ValueError) as error:
            reason = f"{error}{import_hint(error)}"
            raise InvalidOptionError(f"module {module!r} of {env!r} cannot be imported: {reason}") from error
    for candidate in (name, f"{NAMESPACE}/{name}", f"{name}-v0", f"{NAMESPACE}/{name}-v0"):
        if candidate in registry:
            return candidate
    if colon:
        raise InvalidOptionError(
            f"environment {name!r} does not exist after the import of {module!r}, which should register it: call "
            "gymnasium.register where the module is imported"
        )
    # Gymnasium's own are not of text.
    others = [known for known in registry if "/" in known and "gymnasium." not in str(registry[known].entry_point)]
    close = difflib.get_close_matches(name, others, n=3, cutoff=0.3)
    hint = f" Did you mean: {', '.join(close)}?" if close else ""
    raise InvalidOptionError(
        f"environment {env!r} does not exist.{hint} See: textagent-gym list. Ids that your own module registers are "
        "written module:ID"
    )


def world_of(env_id: str) -> World | None:
    """The world that an id belongs to; `None` if neither the suite nor an installed package has registered it.

    >>> world_of("textagent/TextWorld-w2-o3-q4-v0").packages
    ('textworld', 'jericho')
    """
    worlds = (*WORLDS, *_installed.values())
    return next((world for world in worlds if any(known.id == env_id for known in world.ids)), None)


def installed_worlds() -> tuple[World, ...]:
    """The worlds that installed packages have registered, one per entry point."""
    return tuple(_installed.values())


def require(world: World) -> None:
    """Say what to install for a world where it is missing.

    Raises:
        MissingDependencyError: a module of its extra is not installed.
    """
    for module in world.modules:
        if find_spec(module) is None:
            raise MissingDependencyError(module, world.extra)


_installed: dict[str, World] = {}  # By the value of the entry point.


def _register_installed_packages() -> None:
    for plugin in entry_points(group=ENTRY_POINT_GROUP):
        if plugin.value in _installed:
            continue
        packages = (plugin.dist.name,) if plugin.dist is not None else ()
        _installed[plugin.value] = World(plugin.name, (), packages)
        before = set(registry)
        try:
            plugin.load()()
        except Exception as error:  # noqa: BLE001 (somebody else's code must not take Gymnasium down with it)
            gymnasium.logger.warn(f"The environments of the package behind {plugin.value!r} are not available: {error}")
        ids = tuple(_plugin_registration(name) for name in sorted(set(registry) - before))
        _installed[plugin.value] = World(plugin.name, ids, packages)


def _plugin_registration(name: str) -> Registration:
    """The line of an id that an installed package has registered."""
    spec = registry[name]
    return Registration(name, str(spec.entry_point), f"from {spec.entry_point}", dict(spec.kwargs))
