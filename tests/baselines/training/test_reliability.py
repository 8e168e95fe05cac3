"""What goes wrong in a run: nothing is lost, the cause is in the log, and the same command resumes along the curve."""

from __future__ import annotations

import itertools
import math
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import pytest
from lights import LightsEnv

from baselines import grpo, ppo
from baselines.credit.losses import DivergedError
from baselines.credit.method import Forward, Losses
from baselines.training import trainer
from baselines.training.signals import TerminatedError
from baselines.training.trainer import train
from baselines.training.update import update as update_weights
from tests.baselines.runs import curve, kill_and_resume, lines, small_run, start
from textagent_gym.errors import WorldBrokenError


class FaultyLights(LightsEnv):
    """Lights whose step with a certain number, counted over all environments, goes wrong."""

    steps: ClassVar[int] = 0
    faulty_step: ClassVar[float] = math.inf
    fault: ClassVar[str] = ""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        FaultyLights.steps += 1
        if FaultyLights.steps == FaultyLights.faulty_step:
            if self.fault == "raises":
                raise LookupError("the world has a hole")
            if self.fault == "terminates":
                signal.raise_signal(signal.SIGTERM)
            if self.fault == "hangs":
                time.sleep(3)
            elif self.fault == "nan":
                observation, _, terminated, truncated, info = super().step(action)
                return observation, math.nan, terminated, truncated, info
            elif self.fault == "infinite score":
                observation, reward, terminated, truncated, info = super().step(action)
                return observation, reward, terminated, truncated, {**info, "score": math.inf}
            else:
                observation, _, _, _, info = super().step(action)
                return observation, 0.0, False, True, {**info, "broken": "the server is gone"}
        return super().step(action)


@pytest.fixture
def faulty() -> Iterator[type[FaultyLights]]:
    if "faulty/Lights-v0" not in gymnasium.registry:
        gymnasium.register("faulty/Lights-v0", entry_point=FaultyLights)
    FaultyLights.steps, FaultyLights.faulty_step = 0, math.inf
    yield FaultyLights
    FaultyLights.faulty_step = math.inf


def config(tiny: Path, out: Path, **changes: Any) -> grpo.Config:
    # Every episode is learned from, also those whose group did no better.
    basis = {"env": "faulty/Lights-v0", "iterations": 3, "kl": 0.1}
    settings: grpo.Config = small_run(grpo.Config, tiny, out, **{**basis, **changes})
    return settings


def test_an_environment_that_raises_stops_the_run_and_loses_nothing(
    tiny: Path, tmp_path: Path, faulty: type[FaultyLights]
) -> None:
    grpo.run(config(tiny, tmp_path / "whole"))
    faulty.fault, faulty.faulty_step, faulty.steps = "raises", faulty.steps - 2, 0
    out = tmp_path / "raised"
    with pytest.raises(LookupError, match="the world has a hole"):
        grpo.run(config(tiny, out))  # In its last iteration; checkpoints are ten iterations apart.
    assert lines(out / "log.jsonl")[-1]["cause"] == "LookupError: the world has a hole"
    assert "LookupError: the world has a hole" in (out / "index.html").read_text()
    assert len(curve(out)) == 2
    seen: list[dict[str, Any]] = []
    grpo.run(config(tiny, out), log=seen.append)
    assert [line["iteration"] for line in seen] == [3]
    assert curve(out) == curve(tmp_path / "whole")
    assert [line["event"] for line in lines(out / "log.jsonl")] == ["start", "stop", "start", "stop"]
    assert lines(out / "log.jsonl")[-1]["cause"] is None


def test_sigterm_loses_no_iteration_and_an_update_is_ended_before(
    tiny: Path, tmp_path: Path, faulty: type[FaultyLights], monkeypatch: pytest.MonkeyPatch
) -> None:
    grpo.run(config(tiny, tmp_path / "whole"))
    steps, out, seen = faulty.steps, tmp_path / "stopped", []
    updates = itertools.count(1)

    def update(*arguments: Any, **settings: Any) -> dict[str, float]:
        if next(updates) == 2:
            signal.raise_signal(signal.SIGTERM)
        return update_weights(*arguments, **settings)

    monkeypatch.setattr(trainer, "update", update)
    for fault in (math.inf, steps - 2):  # Amid the second update, and then amid the last iteration's episodes.
        faulty.fault, faulty.faulty_step = "terminates", fault
        with pytest.raises(TerminatedError):
            grpo.run(config(tiny, out), log=seen.append)
        stop = lines(out / "log.jsonl")[-1]
        assert (stop["iteration"], stop["cause"]) == (2, "TerminatedError: SIGTERM")
        assert "TerminatedError: SIGTERM" in (out / "index.html").read_text()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        faulty.steps = 2 * steps // 3
    faulty.faulty_step = math.inf
    grpo.run(config(tiny, out), log=seen.append)
    assert [line["iteration"] for line in seen] == [1, 2, 3]
    assert curve(out) == curve(tmp_path / "whole")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("breaks", "the server is gone"),
        ("hangs", "no answer within 1 seconds"),
        ("nan", "the reward is nan"),
        ("infinite score", "the score is inf"),
    ],
)
def test_an_episode_whose_world_breaks_hangs_or_pays_nan_is_played_again_and_its_cause_is_kept(
    tiny: Path, tmp_path: Path, faulty: type[FaultyLights], fault: str, reason: str
) -> None:
    pool = "thread" if fault == "hangs" else "in-process"  # Where nothing can be interrupted.
    settings = {"pool": pool, "answer_seconds": 1.0, "patience": math.inf, "iterations": 2}
    grpo.run(config(tiny, tmp_path / "whole", **settings))
    faulty.fault, faulty.faulty_step, faulty.steps = fault, 5, 0
    out = tmp_path / "broken"
    grpo.run(config(tiny, out, **settings))
    assert [(line["iteration"], line["reason"]) for line in lines(out / "broken.jsonl")] == [(1, reason)]
    assert reason in (out / "index.html").read_text()
    for whole, broken in zip(curve(tmp_path / "whole"), curve(out), strict=True):
        assert broken["episodes"] == whole["episodes"]
        # Played again, not a zero; only the batches were composed otherwise.
        assert broken == pytest.approx(whole, rel=1e-3, abs=1e-4)


def test_a_world_that_always_breaks_ends_the_run_with_its_cause(
    tiny: Path, tmp_path: Path, faulty: type[FaultyLights], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: FaultyLights, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        raise WorldBrokenError("no route to host")

    monkeypatch.setattr(FaultyLights, "reset", fail)
    with pytest.raises(WorldBrokenError, match="no episode of iteration 1 could be played: no route to host"):
        grpo.run(config(tiny, tmp_path))
    assert "no route to host" in lines(tmp_path / "log.jsonl")[-1]["cause"]


@pytest.mark.usefixtures("faulty")
def test_a_loss_that_is_not_a_number_stops_the_run_before_the_weights_are_touched(tiny: Path, tmp_path: Path) -> None:
    asked = config(tiny, tmp_path, checkpoint_every=1, iterations=2)
    sound = grpo.method(asked)

    def loss(forward: Forward) -> Losses:
        losses = sound.loss(forward)
        spoilt = (tmp_path / "checkpoint").is_dir()  # From the second iteration on.
        return replace(losses, policy=losses.policy * math.nan) if spoilt else losses

    with pytest.raises(DivergedError, match=r"gradient_norm=nan, loss=nan: the update was not made; a lower"):
        train(asked, replace(sound, loss=loss))
    assert len(curve(tmp_path)) == 1
    assert lines(tmp_path / "log.jsonl")[-1]["cause"].startswith("DivergedError: gradient_norm=nan")
    train(asked, sound)
    grpo.run(replace(asked, out=tmp_path / "whole"))
    assert curve(tmp_path) == curve(tmp_path / "whole")


FULL_DISK = """
import resource
from baselines import grpo
from tests.baselines.training.test_reliability import killed_config

def log(metrics):
    if metrics["iteration"] == 2:  # From now on no file may grow beyond 20 kB, as on a disk that is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

grpo.run(killed_config(grpo, Path(sys.argv[1]), Path(sys.argv[2])), log)
"""
KILLED = """
from baselines import {method}
from tests.baselines.training.test_reliability import killed_config
{method}.run(killed_config({method}, Path(sys.argv[1]), Path(sys.argv[2])))
"""


def killed_config(method: Any, tiny: Path, out: Path) -> Any:
    critic = {"critic_warmup": 1} if method is ppo else {}
    return small_run(method.Config, tiny, out, iterations=5, checkpoint_every=2, kl=0.1, **critic)


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_the_checkpoint_before_is_whole(tiny: Path, tmp_path: Path) -> None:
    grpo.run(killed_config(grpo, tiny, tmp_path / "whole"))
    process = start(FULL_DISK, tiny, tmp_path / "full")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "could not be written" in errors
    assert "the same command resumes from the last checkpoint" in errors
    assert not (tmp_path / "full" / "checkpoint.new").exists()
    assert "could not be written" in lines(tmp_path / "full" / "log.jsonl")[-1]["cause"]
    grpo.run(killed_config(grpo, tiny, tmp_path / "full"))
    assert curve(tmp_path / "full") == curve(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("method", [grpo, ppo])
def test_a_run_killed_at_random_instants_has_the_curve_of_one_that_was_not(
    tiny: Path, tmp_path: Path, method: Any
) -> None:
    out, name = tmp_path / "killed", method.__name__.rpartition(".")[2]
    method.run(killed_config(method, tiny, tmp_path / "whole"))
    chance = random.Random(name)
    # Somewhere after so many iterations: while it plays, learns, logs or saves.
    kill_and_resume(KILLED.format(method=name), tiny, out, [(after, chance.random() * 0.4) for after in (1, 2, 4)])
    assert curve(out) == curve(tmp_path / "whole")
    assert all(line["gradient_norm"] > 0 for line in curve(out)[1:])
    weights = [(folder / "policy" / "model.safetensors").read_bytes() for folder in (out, tmp_path / "whole")]
    assert weights[0] == weights[1]
