"""What is typed and what recipes hold becomes the configuration of a run, or one line that says what is wrong."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml

from baselines import grpo, sft
from baselines.command_line import read_config
from baselines.envs.pool import make_text_env
from baselines.evaluation.held_out import make_held_out_env
from baselines.settings.config import RolloutConfig, TrainerConfig
from baselines.settings.recipe import RECIPES, RecipeError
from baselines.sft_then_rl import CONFIGS
from tests.baselines.training.test_training import NumbersEnv, config, curve
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import SUITES
from textagent_gym.registration import REGISTRATIONS

ROOT = Path(__file__).parents[2]
LIGHTS = ["--model", "m", "--out", "o", "--env", "lights/Lights-v0"]
COMMAND = re.compile(r"python -m baselines\.(\w+)((?:[^\n\\]|\\\n)*)")
DOCUMENTED = [
    pytest.param(module, arguments.replace("\\\n", " "), id=f"{path.stem}-{number}")
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *sorted((ROOT / "baselines").glob("*.py")))
    for number, (module, arguments) in enumerate(COMMAND.findall(path.read_text().replace("\\\\\n", "\\\n")))
    if "--" in arguments and "..." not in arguments and "`" not in arguments and module != "demo"
]


def bounded(settings: RolloutConfig) -> bool:
    """Whether an iteration draws from tasks that exist already. Making the environment checks its settings too."""
    env = make_text_env(settings.env, settings.set, settings.wrappers)
    base = env.unwrapped
    env.close()
    return base.num_tasks is not None or base.tasks.size(base.split) is not None


def test_settings_of_the_environment_are_spelled_as_on_the_command_line_of_the_suite() -> None:
    together = read_config(grpo.Config, [*LIGHTS, "--set", "switches=2", "reward_density=dense", "--kl", "0.5"])
    assert together.set == {"switches": 2, "reward_density": "dense"}
    assert together.kl == 0.5
    assert (
        read_config(grpo.Config, [*LIGHTS, "--set", "switches=2", "--set", "reward_density=dense"]).set == together.set
    )
    assert read_config(grpo.Config, LIGHTS).set == {}
    short = read_config(
        grpo.Config, ["--model", "m", "--out", "o", "--env", "ALFWorld", "--set", "task_types=pick,heat"]
    )
    assert (short.env, short.set) == ("textagent/ALFWorld-v0", {"task_types": ("pick", "heat")})
    with pytest.raises(InvalidOptionError, match="switches must be a whole number from 1 to 6, got 'x'"):
        read_config(grpo.Config, [*LIGHTS, "--set", "switches=x"])
    with pytest.raises(InvalidOptionError, match=r"'Lihgts' does not exist\. Did you mean"):
        read_config(grpo.Config, ["--model", "m", "--out", "o", "--env", "Lihgts"])


def test_an_environment_of_a_module_is_found_again_by_its_workers_and_on_resume() -> None:
    settings = read_config(grpo.Config, ["--model", "m", "--out", "o", "--env", "lights:lights/Lights"])
    assert settings.env == "lights:lights/Lights-v0"
    make_text_env(settings.env, settings.set).close()


def test_the_command_line_comes_before_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model: m\nenv: lights/Lights-v0\nout: o\nset: {switches: 3, max_turns: 5}\n"
        "groups: 4\nscale: false\nlearning_rate: 1e-6\npatience: .inf\nworkers: null\n"
    )
    plain = read_config(grpo.Config, ["--config", str(recipe)])
    assert plain == grpo.Config(
        model="m",
        env="lights/Lights-v0",
        out=Path("o"),
        set={"switches": 3, "max_turns": 5},
        groups=4,
        scale=False,
        learning_rate=1e-6,
        patience=float("inf"),
    )
    words = ["--groups", "2", "--config", str(recipe), "--scale", "--set", "switches=2"]
    assert read_config(grpo.Config, words) == replace(plain, groups=2, scale=True, set={"switches": 2, "max_turns": 5})


def test_the_settings_of_a_run_are_a_recipe(tiny: Path, tmp_path: Path) -> None:
    settings = config(tiny, tmp_path / "first", iterations=1, patience=float("inf"), workers=2)
    grpo.run(settings)
    written = tmp_path / "first" / "config.json"
    assert json.loads(written.read_text()) == json.loads(json.dumps(asdict(settings), default=str))
    assert read_config(grpo.Config, ["--config", str(written)]) == settings
    grpo.run(read_config(grpo.Config, ["--config", str(written), "--out", str(tmp_path / "again")]))
    assert curve(tmp_path / "again") == curve(tmp_path / "first")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gruops: 3", "there is no setting 'gruops'. Did you mean 'groups'?"),
        ("groups: many", "groups cannot be 'many': Input should be a valid integer"),
        ("groups: true", "groups cannot be True: Input should be a valid integer"),
        ("groups: 0", "groups must be at least 1, got 0"),
        ("kl_in: losses", "kl_in cannot be 'losses': Input should be 'loss' or 'reward'"),
        ("set: 3", "set cannot be 3: Input should be an object"),
        ("set: {switches: 7}", "switches must be a whole number from 1 to 6, got 7"),
        ("[1]", "must be a mapping of settings, such as 'groups: 8', got list"),
        ("groups: [", "cannot be read: while parsing a flow node"),
    ],
)
def test_a_recipe_that_is_wrong_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        grpo.run(read_config(grpo.Config, ["--config", str(recipe), *LIGHTS]))
    assert "\n" not in str(raised.value)
    assert str(recipe) in str(raised.value) or text.startswith("set: {")


def test_a_recipe_that_is_not_there_is_named() -> None:
    with pytest.raises(RecipeError, match=r"the recipe nowhere\.yaml does not exist"):
        read_config(sft.Config, ["--config", "nowhere.yaml"])


@pytest.mark.parametrize("recipe", sorted(RECIPES.rglob("*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recipe_of_ours_is_a_configuration_that_its_environment_accepts(recipe: Path) -> None:
    method = importlib.import_module(f"baselines.{recipe.stem}")
    settings = read_config(method.Config, ["--config", recipe.relative_to(RECIPES).as_posix()])
    if recipe.stem == "sft":
        assert settings.demos.parent == settings.out.parent
        return
    if "TextWorld" in settings.env:
        pytest.importorskip("textworld")
    assert bounded(settings)
    if isinstance(settings, TrainerConfig):  # The others do not evaluate.
        make_held_out_env(settings).close()


@pytest.mark.parametrize(
    ("world", "horizon", "numbers"),
    [
        ("textcraft", (10, 20, 30), (32, 8, 2, 512)),
        ("babyai", (6, 13, 20), (32, 4, 2, 512)),
        ("scienceworld", (10, 20, 30), (16, 8, 1, 200)),
    ],
)
def test_a_recipe_has_the_settings_of_agentgym_rl(
    world: str, horizon: tuple[int, ...], numbers: tuple[int, ...]
) -> None:
    settings = read_config(grpo.Config, ["--config", f"{world}/agentgym/grpo.yaml"])
    assert (settings.horizon, settings.horizon_every, settings.format) == (horizon, 100, "agentgym")
    assert (settings.set["max_turns"], settings.eval_set["max_turns"]) == (horizon[-1], 20)
    assert (settings.groups, settings.group_size, settings.epochs, settings.max_action_tokens) == numbers
    assert settings.groups == 8 * settings.minibatches
    assert (settings.learning_rate, settings.kl) == (1e-6, 0.001)
    newest = max(name for name in SUITES if name.startswith(f"{world}-agentgym-"))
    assert 20 in {part.max_turns for part in SUITES[newest].parts}
    texts = {part.kwargs.get("observation_format") for part in SUITES[newest].parts}
    assert texts == {settings.set.get("observation_format")}


def test_every_method_has_a_recipe_for_every_world() -> None:
    methods = {"ppo", "grpo", "rloo", "reinforce_pp", "sft"}
    for world in {registration.entry_point.split(".")[2] for registration in REGISTRATIONS}:
        assert {path.stem for path in (RECIPES / world).glob("*.yaml")} >= methods
        settings = [yaml.safe_load((RECIPES / world / f"{method}.yaml").read_text()) for method in methods - {"sft"}]
        assert all(each["set"] == settings[0]["set"] for each in settings)


@pytest.mark.parametrize(("module", "arguments"), DOCUMENTED)
def test_a_documented_command_is_one_that_makes_no_game_per_episode(module: str, arguments: str) -> None:
    words = shlex.split(arguments, comments=True)
    config = CONFIGS[words.pop(0)] if module == "sft_then_rl" else importlib.import_module(f"baselines.{module}").Config
    settings: Any = read_config(config, words)
    if isinstance(settings, RolloutConfig):
        pytest.importorskip("textworld")
        assert bounded(settings)


def test_hints_are_shown_in_training_and_in_evaluations(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from baselines.rollout import Collector

    seen = []
    collect = Collector.collect

    def spy(self: Collector, *arguments: object) -> object:
        collection = collect(self, *arguments)
        seen.extend(turn.observation for each in collection.trajectories for turn in each.turns)
        return collection

    monkeypatch.setattr(Collector, "collect", spy)
    grpo.run(config(tiny, tmp_path / "hints", iterations=1, hints=True, eval_every=1, eval_tasks=2))
    assert len(seen) >= 2 + 8 + 2
    assert all("Possible actions: press" in observation for observation in seen)
    seen.clear()
    grpo.run(config(tiny, tmp_path / "none", iterations=1))
    assert not any("Possible actions" in observation for observation in seen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env": "textagent/SWE-v0", "set": {}, "hints": True}, "SWERepairEnv has no list of admissible actions"),
        ({"env": "lights/Lights-v0", "set": {"switchs": 3}}, "Did you mean 'switches'"),
        ({"env": "plain/Plain-v0", "set": {"rooms": 3}}, "takes no arguments"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused_before_a_model_is_loaded(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if "plain/Plain-v0" not in gymnasium.registry:
        gymnasium.register("plain/Plain-v0", entry_point=NumbersEnv)
    with pytest.raises(InvalidOptionError, match=message):
        grpo.run(config(tmp_path / "no-such-model", tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()
