"""Generation with vLLM, beside the model itself; `make vllm` runs it where vLLM is installed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gymnasium
import pytest
import torch
from transformers import PreTrainedModel

from baselines import grpo, sft
from baselines.envs.pool import make_pool
from baselines.evaluation.policy_agent import PolicyAgents
from baselines.policy.adapters import add_adapters
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy
from baselines.rollout import Collector, Completion, EpisodeRequest, Prompt, make_generator
from baselines.rollout.trajectory import Trajectory
from tests.baselines.runs import lines, start
from textagent_gym.agents import PolicySettings
from textagent_gym.errors import MissingDependencyError
from textagent_gym.evaluation import evaluate, replay
from textagent_gym.evaluation.trust import provable
from textagent_gym.vector import env_maker

SLOTS, TOKENS = 4, 6
Played = dict[int, tuple[list[int], list[tuple[int, Completion]]]]
"""By slot: the ids of the conversation, and where in it which completion begins."""
needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here; `make vllm`")


@pytest.fixture(params=["tied", "untied", "with adapters"])
def model(policy: Path, request: pytest.FixtureRequest) -> PreTrainedModel:
    loaded, _ = load_policy(str(policy))
    if request.param == "with adapters":
        add_adapters(loaded, rank=4, alpha=8.0)
    if request.param == "untied":
        loaded.lm_head.weight = torch.nn.Parameter(torch.randn_like(loaded.lm_head.weight) / 8)
        loaded.config.tie_word_embeddings = False
    return loaded.eval()


def three_turns(generator: Any, model: PreTrainedModel, seeds: dict[int, int]) -> Played:
    """What a generator says with the weights of a model in three turns of some conversations."""
    generator.take_weights(model)
    played: Played = {slot: ([], []) for slot in seeds}
    for turn in range(3):
        prompts = []
        for slot, seed in seeds.items():
            random = torch.Generator().manual_seed(100 * seed + turn)
            length = 70 if turn == 0 else 5  # More than two blocks of the cache.
            new = torch.randint(1, model.config.vocab_size, (length,), generator=random).tolist()
            prompts.append(Prompt(slot, tuple(new), turn == 0, seed=seed if turn == 0 else None))
        for prompt, completion in zip(prompts, generator.generate(prompts), strict=True):
            ids, said = played[prompt.slot]
            ids += prompt.ids
            said.append((len(ids), completion))
            ids += completion.ids
    return played


@pytest.fixture
def speak(model: PreTrainedModel) -> Iterator[Any]:
    """A function that plays three turns of some conversations; it gives each one's ids and what was sampled in it."""
    generators: dict[float, Any] = {}

    def play(seeds: dict[int, int], temperature: float = 1.0) -> Played:
        if temperature not in generators:
            generators[temperature] = make_generator(
                "vllm", model, 0, slots=SLOTS, max_action_tokens=TOKENS, temperature=temperature
            )
        return three_turns(generators[temperature], model, seeds)

    yield play
    for generator in generators.values():
        generator.close()


def difference(model: PreTrainedModel, played: Played, temperature: float = 1.0) -> float:
    """Largest distance of the sampled tokens' log-probabilities from those of one pass over the conversation."""
    worst, count = 0.0, 0
    for ids, said in played.values():
        with torch.no_grad():
            expected = (model(torch.tensor([ids])).logits[0] / temperature).log_softmax(-1)
        for begin, completion in said:
            for place, (token, value) in enumerate(zip(completion.ids, completion.log_probs, strict=True)):
                worst = max(worst, abs(float(expected[begin + place - 1, token]) - value))
                count += 1
    assert count > 20
    return worst


@needs_vllm
@pytest.mark.slow
def test_log_probs_are_the_models_also_after_each_update(model: PreTrainedModel, speak: Any) -> None:
    seeds = {0: 5, 1: 6, 2: 7, 3: 8}
    first = speak(seeds)
    assert difference(model, first) < 1e-5
    assert speak(seeds) == first  # Equal weights and seeds sample equal tokens.
    for _ in range(2):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) / 20)
        updated = speak(seeds)
        assert difference(model, updated) < 1e-5
        assert difference(model, first) > 1e-2
    warm = speak(seeds, temperature=0.5)
    assert difference(model, warm, temperature=0.5) < 1e-5
    assert difference(model, warm) > 1e-2


@needs_vllm
@pytest.mark.slow
def test_an_episode_depends_neither_on_its_slot_nor_on_the_others(policy: Path, speak: Any) -> None:
    together = speak({0: 1, 1: 2, 2: 3})
    alone = speak({3: 2})
    assert alone[3][0] == together[1][0]
    assert together[0][0] != together[1][0]


def play(generator: Any, tokenizer: Any, make: Any, patience: float) -> tuple[list[Trajectory], int]:
    """Ten episodes in four slots, and the number of steps that the engine took for them."""
    chat = ChatFormat(tokenizer)
    collector = Collector(make_pool(make, SLOTS), generator, chat, patience=patience)
    engine = generator._engine._llm.llm_engine
    with patch.object(engine, "step", wraps=engine.step) as step:
        collection = collector.collect([EpisodeRequest(i, seed=i, sampling_seed=i) for i in range(10)])
    return collection.trajectories, step.call_count


@needs_vllm
@pytest.mark.slow
def test_an_action_that_has_ended_does_not_wait_for_the_others_and_an_error_leaves_nothing(policy: Path) -> None:
    model, tokenizer = load_policy(str(policy))
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.eos_token_id] *= 5.0  # Actions of different lengths.
    generator: Any = make_generator(
        "vllm", model.eval(), tokenizer.eos_token_id, slots=SLOTS, max_action_tokens=24, temperature=1.0
    )
    make = env_maker("lights/Lights-v0", switches=3, max_turns=4, reward_density="dense")
    batches, together = play(generator, tokenizer, make, math.inf)
    lengths = {len(turn.action) for trajectory in batches for turn in trajectory.turns}
    assert len(lengths) > 3
    for _ in range(2):
        generator.take_weights(model)
        joined, alone = play(generator, tokenizer, make, 0.05)
        assert [trajectory.ids for trajectory in joined] == [trajectory.ids for trajectory in batches]
        for one, other in zip(joined, batches, strict=True):
            for ours, theirs in zip(one.turns, other.turns, strict=True):
                assert ours.log_probs == pytest.approx(theirs.log_probs, abs=1e-5)
        assert alone < 0.9 * together
        with pytest.raises(LookupError):  # While others speak.
            play(generator, tokenizer, partial(Holed, make), 0.05)
        assert generator._engine._llm.llm_engine.get_num_unfinished_requests() == 0
    generator.close()


class Holed(gymnasium.Wrapper[str, str, str, str]):
    """A world that raises in its second step."""

    def __init__(self, make: Any) -> None:
        super().__init__(make())
        self._steps = 0

    def step(self, action: str) -> Any:
        self._steps += 1
        if self._steps == 2:
            raise LookupError("the world has a hole")
        return super().step(action)


@needs_vllm
@pytest.mark.slow
def test_temperature_0_takes_the_likeliest_token(model: PreTrainedModel, speak: Any) -> None:
    for ids, said in speak({0: 1, 1: 2}, temperature=0.0).values():
        with torch.no_grad():
            likeliest = model(torch.tensor([ids])).logits[0].argmax(-1)
        for begin, completion in said:
            assert completion.ids == tuple(likeliest[begin - 1 : begin - 1 + len(completion.ids)].tolist())


@needs_vllm
@pytest.mark.slow
def test_a_run_learns_and_evaluates_with_it_and_resumes(policy: Path, demos: Path, tmp_path: Path) -> None:
    taught = sft.Config(
        model=str(policy), demos=demos, out=tmp_path / "sft", epochs=8, batch_size=8, learning_rate=5e-3
    )
    settings: dict[str, Any] = {
        "model": str(sft.run(taught)),
        "env": "lights/Lights-v0",
        "set": {"switches": 1, "max_turns": 2},
        "generator": "vllm",
        "groups": 4,
        "group_size": 8,
        "slots": 16,
        "max_action_tokens": 6,
        "learning_rate": 5e-4,
        "eval_every": 3,
        "eval_tasks": 20,
    }
    grpo.run(grpo.Config(**settings, out=tmp_path / "run", iterations=3))
    grpo.run(grpo.Config(**settings, out=tmp_path / "run", iterations=6))  # Resumes.
    grpo.run(grpo.Config(**settings, out=tmp_path / "whole", iterations=6))
    resumed, whole = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("run", "whole")
    )
    for one, other in zip(resumed, whole, strict=True):
        assert {**one, "rollout_seconds": 0, "update_seconds": 0} == {
            **other,
            "rollout_seconds": 0,
            "update_seconds": 0,
        }
    assert max(each.get("log_prob_difference_max", 0.0) for each in whole) < 1e-5
    assert whole[-1]["return"] > whole[0]["return"] + 0.05
    evaluations = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in evaluations] == [0, 3, 6]


@needs_vllm
@pytest.mark.slow
def test_a_saved_policy_plays_by_vllm_what_it_plays_without(policy: Path, demos: Path, tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    sft.run(sft.Config(model=str(policy), demos=demos, out=trained, epochs=8, batch_size=8, learning_rate=5e-3))
    env, settings = (
        partial(gymnasium.make, "lights/Lights-v0", switches=2),
        PolicySettings(temperature=0.0, max_action_tokens=8),
    )
    expected = evaluate(env(), PolicyAgents(str(trained), settings), tasks=12)
    agents = PolicyAgents(str(trained), settings, 4, vllm=True)
    played = evaluate(env(), agents, tasks=12, workers=4)
    assert replay(played) == []
    assert [episode.actions for episode in played.episodes] == [episode.actions for episode in expected.episodes]
    assert played.details == {**expected.details, "backend": "vllm"}
    assert provable("any", expected.details) == ["replayed", "recomputed"]
    assert provable("any", played.details) == ["replayed"]


ALONE_OR_NOT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lights import register
register()
from baselines import grpo
grpo.run(grpo.Config(
    model=sys.argv[2], out=Path(sys.argv[3]), env="lights/Lights-v0", set={"switches": 3, "reward_density": "dense"},
    generator="vllm", groups=4, group_size=4, slots=8, max_action_tokens=4, learning_rate=1e-3, iterations=2,
))
"""


@needs_vllm
@pytest.mark.slow
def test_two_processes_play_the_episodes_that_one_would(policy: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ALONE_OR_NOT)
    lights = Path(__file__).parents[2] / "third_party" / "lights"
    curves = []
    for processes in (1, 2):
        out = tmp_path / str(processes)
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes), str(script)]
        environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            [*command, str(lights), str(policy), str(out)], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr[-3000:]
        curves.append([json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()])
    assert len(curves[0]) == 2
    for alone, together in zip(*curves, strict=True):
        for name in ("return", "action_tokens", "turns", "episodes"):
            assert together[name] == alone[name]
        assert together["entropy_estimate"] == pytest.approx(alone["entropy_estimate"], abs=1e-4)


AHEAD = """
from baselines import grpo
from tests.baselines.runs import small_run

steps, act = [], lights.LightsEnv.step

def step(self, action):
    steps.append(action)
    if len(steps) == 30:  # An iteration has 24 at most, so this one is played during an update.
        raise LookupError("the world has a hole")
    return act(self, action)

lights.LightsEnv.step = step
grpo.run(small_run(grpo.Config, Path(sys.argv[1]), Path(sys.argv[2]), iterations=3, staleness=1, generator="vllm"))
"""


@needs_vllm
def test_an_error_while_episodes_are_played_ahead_ends_the_process_with_its_cause(policy: Path, tmp_path: Path) -> None:
    process = start(AHEAD, policy, tmp_path / "run")
    _, errors = process.communicate(timeout=400)
    stop = lines(tmp_path / "run" / "log.jsonl")[-1]
    assert process.returncode == 1, errors
    assert "LookupError: the world has a hole" in errors
    assert (stop["event"], stop["cause"]) == ("stop", "LookupError: the world has a hole")
    assert (datetime.now(UTC) - datetime.fromisoformat(stop["time"])).total_seconds() < 60


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_the_error_names_it(policy: Path) -> None:
    model, _ = load_policy(str(policy))
    with pytest.raises(MissingDependencyError, match="train,vllm"):
        make_generator("vllm", model, 0, slots=1, max_action_tokens=4, temperature=1.0)
    # And before anything is loaded or written.
    command = [sys.executable, "-m", "baselines.grpo", "--model", str(policy), "--env", "textagent/ALFWorld-v0"]
    done = subprocess.run(
        [*command, "--generator", "vllm", "--out", str(policy / "run")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "train,vllm" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (policy / "run").exists()
