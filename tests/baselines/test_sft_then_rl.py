"""A budget that is shared by demonstrations and reinforcement learning."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import lights
import pytest
import torch

from baselines import grpo, ppo, sft, sft_then_rl
from baselines.command_line import read_config
from baselines.credit.advantages import GroupTooSmallError
from baselines.policy.chat import ChatFormat, chat_of
from baselines.policy.models import load_policy
from baselines.settings.run_folder import OtherRunError
from baselines.sft import FineTuningConfig
from baselines.sft_then_rl import Purchase, purchase
from tests.baselines.runs import LIGHTS, curve, lines, small_run
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError

NAN, INFINITY = float("nan"), float("inf")


class HalfSilentLights(lights.LightsEnv):
    """Lights whose oracle has no plan where the first light is on."""

    def _oracle(self) -> tuple[str, ...]:
        if self._colours[0] in self._on and len(self._on) == 1:
            raise PlanningBudgetError("too bright")
        return super()._oracle()


def config(tiny: Path, out: Path, method: str = "grpo", **changes: Any) -> Any:
    """4 demonstrations of 6 and 3 iterations of 8 episodes by default."""
    basis: dict[str, Any] = {"checkpoint_every": 1, "budget": 48, "sft_fraction": 0.5, "demonstration_cost": 6}
    basis["sft"] = FineTuningConfig(epochs=25.0, batch_size=2, learning_rate=5e-3)
    return small_run(sft_then_rl.CONFIGS[method], tiny, out, **{**basis, **changes})


def alone(config: Any, **changes: Any) -> Path:
    """GRPO without a budget."""
    names = [field.name for field in fields(grpo.Config)]
    return grpo.run(replace(grpo.Config(**{name: getattr(config, name) for name in names}), **changes))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_policy(str(folder))[0].state_dict())


def same(one: Path, other: Path) -> bool:
    ours, theirs = weights(one), weights(other)
    return all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("budget", "fraction", "costs", "bought"),
    [
        (48, 0.5, (6, 1), (4, 3)),
        (48, 0.0, (6, 1), (0, 6)),
        (48, 1.0, (6, 1), (8, 0)),
        (48, 1.0, (48, 1), (1, 0)),
        (8, 0.0, (6, 1), (0, 1)),
        (80, 0.3, (0.1, 0.1), (240, 70)),
        (100, 0.9, (10, 1.25), (9, 1)),  # (1 - 0.9) * 100 is 9.999999999999998 in floating point.
        (47.9, 0.5, (6, 1), (3, 2)),
    ],
)
def test_the_budget_buys_whole_demonstrations_and_whole_iterations(
    budget: float, fraction: float, costs: tuple[float, float], bought: tuple[int, int]
) -> None:
    wanted = {"budget": budget, "sft_fraction": fraction, "demonstration_cost": costs[0], "episode_cost": costs[1]}
    assert purchase(config(Path(), Path(), **wanted)) == Purchase(*bought, episodes=8)


def test_what_is_bought_is_never_more_than_the_budget_and_one_more_would_be(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    for _ in range(300):
        budget, hundredths, cost, episode = (int(torch.randint(1, 1000, (), generator=random)) for _ in range(4))
        fraction = hundredths % 101 / 100
        wanted = config(
            tmp_path,
            tmp_path,
            budget=float(1000 * budget),
            sft_fraction=fraction,
            demonstration_cost=cost / 10,
            episode_cost=episode / 100,
        )
        bought = purchase(wanted)
        for_sft, for_rl = Fraction(1000 * budget * (hundredths % 101), 100), Fraction(1000 * budget)
        for_rl -= for_sft
        assert bought.demonstrations * Fraction(cost, 10) <= for_sft < (bought.demonstrations + 1) * Fraction(cost, 10)
        iteration = 8 * Fraction(episode, 100)
        assert bought.iterations * iteration <= for_rl < (bought.iterations + 1) * iteration


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 10}, "does not pay for one demonstration"),
        ({"budget": 15}, r"does not pay for one iteration of 8 episodes .*; lower groups or group_size"),
        ({"resample": 2}, "resample=2 would play more episodes"),
        ({"budget": 200}, r"pays for 16 demonstrations; there are 8 tasks of lights/Lights-v0"),
        ({"agent": "expert"}, "agent 'expert' cannot play LightsEnv"),
        ({"env": "FrozenLake-v1", "set": {}}, "not a text environment"),
        *(
            ({name: value}, name)
            for name in ("budget", "demonstration_cost", "episode_cost")
            for value in (0.0, NAN, INFINITY)
        ),
        *(({"sft_fraction": value}, "sft_fraction must be from 0 to 1") for value in (-0.1, 1.1, NAN)),
    ],
)
def test_what_cannot_be_bought_is_refused_before_anything_is_made(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        sft_then_rl.run(config(tmp_path / "no-such-model", tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


def test_a_group_that_is_too_small_is_refused_before_the_demonstrations(tmp_path: Path) -> None:
    with pytest.raises(GroupTooSmallError, match="group_size=1"):
        sft_then_rl.run(config(tmp_path / "no-such-model", tmp_path / "run", group_size=1))
    assert not (tmp_path / "run").exists()


def test_too_few_lines_in_a_file_are_refused(tmp_path: Path, demos: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(line + "\n" for line in demos.read_text().splitlines()[:3]))
    with pytest.raises(
        InvalidOptionError, match=r"pays for 4 demonstrations; there are 3 conversations in .*few\.jsonl"
    ):
        sft_then_rl.run(config(tmp_path / "no-such-model", tmp_path / "run", demos=few))


def test_one_run_is_the_two_executables_one_after_the_other(tiny: Path, demos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    wanted = config(tiny, out, demos=demos)
    seen: list[dict[str, Any]] = []
    policy = sft_then_rl.run(wanted, seen.append)
    assert policy == out / "rl" / "policy"
    settings = asdict(wanted.sft)
    sft.run(sft.Config(model=str(tiny), demos=demos, out=tmp_path / "sft", max_demos=4, **settings))
    assert same(out / "sft", tmp_path / "sft")
    alone(wanted, model=str(tmp_path / "sft"), out=tmp_path / "grpo", iterations=3)
    assert same(policy, tmp_path / "grpo" / "policy")
    metrics = curve(out)
    assert [(line["stage"], line["spent"]) for line in metrics] == [("sft", 24), ("rl", 32), ("rl", 40), ("rl", 48)]
    assert any(line["gradient_norm"] > 0 for line in metrics[1:])  # There was something to learn.
    assert metrics[0]["demonstrations"] == metrics[0]["learned_from"] == 4
    grpos = curve(tmp_path / "grpo")
    assert [{k: v for k, v in line.items() if k not in ("stage", "spent")} for line in metrics[1:]] == grpos
    assert [line["spent"] for line in seen if line["stage"] == "rl"] == [32, 40, 48]


def test_without_sft_it_is_the_method_alone(tiny: Path, tmp_path: Path) -> None:
    wanted = config(tiny, tmp_path / "run", sft_fraction=0.0, budget=16)
    policy = sft_then_rl.run(wanted)
    alone(wanted, out=tmp_path / "grpo", iterations=2)
    assert same(policy, tmp_path / "grpo" / "policy")
    assert not (tmp_path / "run" / "sft").exists()
    assert [line["spent"] for line in curve(tmp_path / "run")] == [8, 16]


def test_without_rl_it_is_sft_alone(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    wanted = config(tiny, out, sft_fraction=1.0, budget=24, system="Press switches.", eval_every=1, eval_tasks=2)
    policy = sft_then_rl.run(wanted)
    assert same(policy, out / "sft")
    assert [line["spent"] for line in curve(out)] == [24]
    assert chat_of(str(policy), load_policy(str(policy))[1]).system == "Press switches."
    assert [line["iteration"] for line in lines(out / "rl" / "evaluations.jsonl")] == [0]
    assert sft_then_rl.run(wanted) == policy


@pytest.mark.parametrize(
    "setting", [{"eval_every": 1, "eval_split": "nope"}, {"horizon": (5, 2)}, {"loss": "gspo", "memory": "turn"}]
)
def test_what_the_method_cannot_play_is_refused_before_anything_is_paid(
    tiny: Path, tmp_path: Path, setting: dict[str, object]
) -> None:
    with pytest.raises(InvalidOptionError):
        sft_then_rl.run(config(tiny, tmp_path / "run", **setting))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["gigpo", "ppo", "rloo", "reinforce_pp"])
def test_every_method_follows(tiny: Path, tmp_path: Path, method: str) -> None:
    policy = sft_then_rl.run(config(tiny, tmp_path, method, budget=32, sft=FineTuningConfig(epochs=1)))
    load_policy(str(policy))
    assert [line["stage"] for line in curve(tmp_path)] == ["sft", "rl", "rl"]


def test_a_demonstration_that_fails_is_paid_for_and_not_learned_from(tiny: Path, tmp_path: Path) -> None:
    if "lights/HalfSilent-v0" not in gymnasium.registry:
        gymnasium.register("lights/HalfSilent-v0", entry_point=f"{__name__}:HalfSilentLights")
    sft_then_rl.run(config(tiny, tmp_path, env="lights/HalfSilent-v0", sft_fraction=1.0))
    (line,) = curve(tmp_path)
    assert line["demonstrations"] == 8
    assert 0 < line["learned_from"] < 8
    assert line["spent"] == 48


@pytest.mark.parametrize("saved", [False, True])
def test_the_policy_is_played_with_the_system_message_that_it_was_fine_tuned_with(
    tiny: Path, tmp_path: Path, saved: bool
) -> None:
    model, tokenizer = load_policy(str(tiny))
    told = tmp_path / "told"
    model.save_pretrained(told)
    ChatFormat(tokenizer, "Press switches.").save(told)
    wanted = config(told if saved else tiny, tmp_path, budget=24, sft=FineTuningConfig(epochs=1))
    policy = sft_then_rl.run(wanted if saved else replace(wanted, system="Press switches."))
    chat = chat_of(str(policy), load_policy(str(policy))[1])
    assert (chat.system, chat.instructed) == ("Press switches.", True)
    _, info = (env := gymnasium.make("lights/Lights-v0", **LIGHTS)).reset(options={"task_index": 0})
    system = json.loads((tmp_path / "demos.jsonl").read_text().splitlines()[0])["messages"][0]
    assert system == {"role": "system", "content": f"Press switches.\n\n{info['instructions']}"}
    env.close()


def test_a_file_of_demonstrations_has_its_own_system_message(tmp_path: Path, demos: Path) -> None:
    with pytest.raises(InvalidOptionError, match="system cannot be set: the conversations in"):
        sft_then_rl.run(config(tmp_path / "no-such-model", tmp_path / "run", demos=demos, system="Press switches."))


@pytest.mark.parametrize(
    ("instant", "call"),
    [("demonstrate", 3), ("fine_tune", 1), ("_write_metrics", 1), ("_write_metrics", 3), ("write_whole", 2)],
)
def test_a_run_that_stopped_resumes_with_the_same_files(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str, call: int
) -> None:
    from textagent_gym import evaluation

    whole = sft_then_rl.run(config(tiny, tmp_path / "whole"))
    out = tmp_path / "parts"
    calls: list[int] = []
    with monkeypatch.context() as patch:
        owner: Any = evaluation if instant == "demonstrate" else sft_then_rl
        working = getattr(owner, instant)

        def fails(*arguments: Any, **options: Any) -> Any:
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return working(*arguments, **options)

        patch.setattr(owner, instant, fails)
        with pytest.raises(KeyboardInterrupt):
            sft_then_rl.run(config(tiny, out))
    if instant == "demonstrate":  # A kill in the middle of a line.
        with open(out / "demos.part", "a") as file:
            file.write('{"messages": [')
    if instant == "_write_metrics" and call == 3:
        with open(out / "rl" / "metrics.jsonl", "a") as file:
            file.write('{"iteration": 2, "epi')
    policy = sft_then_rl.run(config(tiny, out, checkpoint_every=2))
    assert same(policy, whole)
    assert (out / "demos.jsonl").read_bytes() == (tmp_path / "whole" / "demos.jsonl").read_bytes()
    assert curve(out) == curve(tmp_path / "whole")
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.parents[1].iterdir())


def test_other_settings_need_another_folder(tiny: Path, tmp_path: Path) -> None:
    sft_then_rl.run(config(tiny, tmp_path))
    with pytest.raises(OtherRunError, match="budget"):
        sft_then_rl.run(config(tiny, tmp_path, budget=64))
    with pytest.raises(OtherRunError, match="clip_low"):
        sft_then_rl.run(config(tiny, tmp_path, clip_low=0.1))


def test_a_start_that_fails_leaves_no_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no-such-model"):
        sft_then_rl.run(config(tmp_path / "no-such-model", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_settings_are_spelled_as_for_the_methods_own_executable(tmp_path: Path) -> None:
    words = ["--model", "m", "--out", "o", "--env", "lights/Lights-v0", "--set", "switches=3", "--level", "token"]
    budget = ["--budget", "100", "--sft-fraction", "0.5", "--demonstration-cost", "10", "--sft.epochs", "5"]
    settings = read_config(sft_then_rl.PPOConfig, [*words, *budget])
    method = read_config(ppo.Config, words)
    different = {f.name for f in fields(method) if getattr(settings, f.name) != getattr(method, f.name)}
    assert different == {"iterations"}
    assert settings.set == {"switches": 3}
    assert settings.sft == FineTuningConfig(epochs=5.0)
