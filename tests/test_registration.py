"""Every id of the suite, in one table."""

from __future__ import annotations

import re
import subprocess
import sys

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec, load_env_creator

from textagent_gym import register_all
from textagent_gym.core import TextEnv
from textagent_gym.registration import NAMESPACE, REGISTRATIONS, Registration


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
