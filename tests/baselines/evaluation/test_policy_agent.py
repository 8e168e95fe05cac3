"""A saved policy plays in suites, and whoever has it can compute whether it said what a result says."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import (
    BartConfig,
    BartForCausalLM,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    MptConfig,
    MptForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
)

from baselines.evaluation import policy_agent
from baselines.evaluation.policy_agent import BOUNDARY, TOLERANCE, PolicyAgents, Recomputer, distance
from baselines.policy.chat import ChatFormat
from baselines.policy.models import load_policy, make_tiny_policy
from baselines.rollout.backend import Prompt
from baselines.rollout.transformers_backend import TransformersGenerator, depends_on_others, drawn
from tests.cli.program import run
from tests.evaluation.results import SUITE, paths, read, summarize_again, write
from textagent_gym.agents import PolicySettings, make_agent
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import SUITES, evaluate, evaluate_suite, load_result, verify_result
from textagent_gym.evaluation.trust import provable

SAMPLED = PolicySettings(max_action_tokens=8)


@pytest.fixture(autouse=True)
def _suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, SUITE.name, SUITE)


@pytest.fixture(scope="module")
def honest(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recomputed") / "r"
    SUITES[SUITE.name] = SUITE
    evaluate_suite(SUITE, PolicyAgents(str(tiny), SAMPLED), folder)
    del SUITES[SUITE.name]
    return folder


def problems(folder: Path, model: Path) -> list[str]:
    return [mismatch.what for mismatch in verify_result(folder, model=model).mismatches]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_a_missing_vllm_is_named(tiny: Path) -> None:
    done = run("eval", "lights/Lights-v0", "--agent", f"vllm:{tiny}", "--tasks", "1")
    assert done.returncode == 1
    assert "'vllm' is not installed" in done.stderr


def test_what_vllm_has_sampled_proves_its_score_alone(honest: Path) -> None:
    details = load_result(honest).details
    assert provable(SUITE.name, details) == ["replayed", "recomputed"]
    assert provable(SUITE.name, {**details, "backend": "vllm"}) == ["replayed"]


def test_what_a_policy_has_played_is_recomputed(honest: Path, tiny: Path) -> None:
    verification = verify_result(honest, model=tiny)
    assert verification.mismatches == ()
    assert verification.trust == ("replayed", "recomputed")
    assert verify_result(honest).trust == ("replayed",)
    summary = json.loads((honest / "summary.json").read_text())
    assert summary["trust"] == ["replayed", "recomputed"]
    assert not any(str(tiny) in path.read_text() for path in honest.iterdir() if path.suffix != ".gz")
    assert all(episode.tokens for episode in verification.result.episodes)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_several_episodes_at_once_are_the_same(tiny: Path, tmp_path: Path, temperature: float) -> None:
    settings = PolicySettings(temperature=temperature, max_action_tokens=8)
    for workers in (1, 3):
        agents = PolicyAgents(str(tiny), settings, slots=workers)
        evaluate_suite(SUITE, agents, tmp_path / str(workers), workers=workers)
    one, three = (read(paths(tmp_path / str(workers))[0])[1:] for workers in (1, 3))
    assert [episode["actions"] for episode in one] == [episode["actions"] for episode in three]
    assert problems(tmp_path / "3", tiny) == []


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_rounding_stays_far_below_the_tolerance(tiny: Path, slots: int) -> None:
    model, tokenizer = load_policy(str(tiny))
    model.eval()
    generator = TransformersGenerator(model, tokenizer.eos_token_id, slots=slots, max_action_tokens=8)
    draw = random.Random(slots)
    read: list[list[int]] = [[] for _ in range(slots)]
    spoken: list[list[tuple[int, float]]] = [[] for _ in range(slots)]
    for turn in range(6):
        news = [tuple(draw.randrange(len(tokenizer)) for _ in range(draw.randint(5, 40))) for _ in range(slots)]
        prompts = [Prompt(slot, ids, turn == 0, slot if turn == 0 else None) for slot, ids in enumerate(news)]
        for prompt, completion in zip(prompts, generator.generate(prompts), strict=True):
            first = len(read[prompt.slot]) + len(prompt.ids)
            read[prompt.slot] += [*prompt.ids, *completion.ids]
            spoken[prompt.slot] += enumerate(completion.log_probs, start=first)
    for ids, log_probs in zip(read, spoken, strict=True):
        with torch.inference_mode():
            whole = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        differences = [abs(value - float(whole[place - 1, ids[place]])) for place, value in log_probs]
        assert max(differences) < 1e-5 < TOLERANCE


@pytest.mark.slow
def test_a_policy_plays_in_32_bits_and_what_is_sampled_in_16_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    make_tiny_policy(folder, ["press red press black the lights are on and off"], hidden=128, layers=3, heads=4)
    model, _ = load_policy(str(folder))
    model.get_output_embeddings().weight.data *= 8  # As sharp as a trained one.
    model.to(torch.bfloat16).save_pretrained(folder)
    agents = PolicyAgents(str(folder), SAMPLED)
    evaluate_suite(SUITE, agents, tmp_path / "32")
    assert verify_result(tmp_path / "32", model=folder).trust == ("replayed", "recomputed")
    agents._generator.model.to(torch.bfloat16)
    evaluate_suite(SUITE, agents, tmp_path / "16")
    assert "(computed in 32 bits, as --agent model:FOLDER does)" in problems(tmp_path / "16", folder)[0]


def test_what_a_server_has_sampled_is_not_recomputed(tiny: Path, tmp_path: Path) -> None:
    evaluate_suite(SUITE, "admissible-random", tmp_path / "r")
    with pytest.raises(
        InvalidOptionError,
        match="recorded no tokens of a policy that can be recomputed: only what --agent",
    ):
        verify_result(tmp_path / "r", model=tiny)


def test_another_policy_is_not_the_one_that_played(honest: Path, tmp_path: Path) -> None:
    texts = [message["content"] for message in read(paths(honest)[1])[0]]
    make_tiny_policy(tmp_path / "other", texts, hidden=32, layers=2, heads=2, seed=1)
    (problem,) = problems(honest, tmp_path / "other")
    assert re.search("it is a result of 'model:.*and the folder holds model:.*: another policy$", problem)


def oracles_answers(tiny: Path, folder: Path, settings: PolicySettings = SAMPLED) -> None:
    """The oracle's game, under the policy's name, with the tokens of its words and the policy's log-probabilities."""
    from dataclasses import replace

    from baselines.policy.chat import chat_of

    agents = PolicyAgents(str(tiny), settings)
    model, tokenizer = load_policy(str(tiny))
    chat = chat_of(str(tiny), tokenizer)

    class Forger:
        name, details = agents.name, agents.details

        def __init__(self, env: Any) -> None:
            self._player = make_agent("oracle", env)

        def reset(self, seed: int) -> None:
            self._player.reset(seed)
            self._read: list[int] = []
            self.tokens = 0

        def act(self, observation: str, info: dict[str, Any]) -> str | None:
            action = self._player.act(observation, info)
            assert action is not None
            opening = not self._read
            self._read += (
                chat.opening(observation, str(info["instructions"])) if opening else chat.following(observation)
            )
            ids = chat.reply(action)
            with torch.inference_mode():
                logits = model(torch.tensor([[*self._read, *ids]])).logits[0].log_softmax(-1)
            first = len(self._read) - 1
            log_probs = [float(logits[first + place, token]) for place, token in enumerate(ids)]
            self.sampled = {"ids": ids, "log_probs": log_probs}
            self._read += ids
            self.tokens += len(ids)
            return chat.text(ids)

    evaluate_suite(replace(SUITE), Forger, folder)


def test_the_oracles_game_with_the_policys_log_probabilities_is_refused(tiny: Path, tmp_path: Path) -> None:
    oracles_answers(tiny, tmp_path / "r")
    verification = verify_result(tmp_path / "r")
    assert verification.mismatches == ()  # The score is right: the oracle has earned it.
    assert all(episode.success for episode in verification.result.episodes)
    found = problems(tmp_path / "r", tiny)
    assert len(found) >= 10
    assert "is not the one that the policy samples with the seed of the episode" in found[0]


def test_a_policy_that_finds_all_tokens_equally_likely_proves_nothing(tiny: Path, tmp_path: Path) -> None:
    """Every token is then as good as the one that is picked, the oracle's, too."""
    import torch

    from baselines.policy.models import load_policy

    indifferent = shutil.copytree(tiny, tmp_path / "policy")
    model, _ = load_policy(str(tiny))
    with torch.no_grad():
        model.model.norm.weight.zero_()
    model.save_pretrained(indifferent)
    oracles_answers(indifferent, tmp_path / "r", PolicySettings(temperature=0.0, max_action_tokens=8))
    (problem,) = problems(tmp_path / "r", indifferent)
    assert "are not those which are sampled here, but neighbours that are as good as equal" in problem


def test_a_neighbour_that_somebody_would_rather_have_had_is_refused(
    honest: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the weights could else win a lost episode by the token that lies beside the one that was drawn."""
    fair = policy_agent.drawn
    for share, said in (
        (0.9, "1 of 11 episodes hold tokens that are not those which are sampled here"),
        (1.1, "is not the one that the policy samples"),
    ):
        numbers = count()

        def shifted(*asked: Any, numbers: Any = numbers, share: float = share) -> Any:
            picked, log_probs, cumulative, heights = fair(*asked)
            if next(numbers) != 7:
                return picked, log_probs, cumulative, heights
            heights = cumulative[:, picked] + share * BOUNDARY
            return torch.searchsorted(cumulative, heights, right=True)[0], log_probs, cumulative, heights

        monkeypatch.setattr(policy_agent, "drawn", shifted)
        assert said in problems(honest, tiny)[0]


@pytest.mark.parametrize("name", [".real.safetensors", ".d/real.safetensors"])
def test_hidden_weights_are_not_those_of_a_policy(name: str, tiny: Path, tmp_path: Path) -> None:
    """Else one digest would name any number of policies, and a commitment could be met by each of them."""
    folder = shutil.copytree(tiny, tmp_path / "policy")
    (folder / name).parent.mkdir(exist_ok=True)
    shutil.copy(folder / "model.safetensors", folder / name)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_weights": name}))
    load_policy(str(folder))  # So far goes the attack.
    with pytest.raises(InvalidOptionError, match=r"its config\.json names weights"):
        PolicyAgents(str(folder), SAMPLED)


def outside(policy: Path, tokenizer: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Let a policy's tokenizer name files that no digest is of, and change nothing else."""
    vocabulary, merges = policy / "README.md", policy / "NOTES.md"
    model = json.loads((policy / "tokenizer.json").read_text())["model"]
    vocabulary.write_text(json.dumps({**model["vocab"], **{f"none{number}": number for number in range(5)}}))
    merges.write_text("#version: 0.2\n")
    shutil.copy(policy / "tokenizer.json", policy / "tokenizer.4.0.0.json.md")
    named = {"VOCABULARY": str(vocabulary), "MERGES": str(merges), "ALL": str(policy / "tokenizer.4.0.0.json.md")}
    for name, changes in (("tokenizer.json", tokenizer), ("tokenizer_config.json", settings)):
        values = json.loads((policy / name).read_text())
        values |= {
            key: {**values[key], **value} if isinstance(value, dict) else value for key, value in changes.items()
        }
        text = json.dumps(values)
        for word, path in named.items():
            text = text.replace(word, path)
        (policy / name).write_text(text)
    return policy


NAMED = {"vocab": "VOCABULARY", "merges": "MERGES"}


@pytest.mark.parametrize("settings", [NAMED, {"fast_tokenizer_files": ["ALL"]}, {"tokenizer_file": "ALL"}])
def test_a_tokenizer_says_what_its_digest_is_of(settings: dict[str, Any], tiny: Path, tmp_path: Path) -> None:
    """Else whoever has committed to a policy could say afterwards what its tokens mean."""
    folder = outside(shutil.copytree(tiny, tmp_path / "policy"), {}, settings)
    said = PolicyAgents(str(folder), SAMPLED).chat.tokenizer.get_vocab()
    assert said == PolicyAgents(str(tiny), SAMPLED).chat.tokenizer.get_vocab()


def test_a_tokenizer_without_words_of_its_own_is_refused(tiny: Path, tmp_path: Path) -> None:
    folder = outside(shutil.copytree(tiny, tmp_path / "strings"), {"model": NAMED}, NAMED)
    with pytest.raises(InvalidOptionError, match=r"the policy cannot be loaded: .*data did not match"):
        PolicyAgents(str(folder), SAMPLED)
    folder = outside(shutil.copytree(tiny, tmp_path / "none"), {}, NAMED)
    (folder / "tokenizer.json").unlink()
    load_policy(str(folder))  # So far goes the attack.
    with pytest.raises(InvalidOptionError, match=r"it has no tokenizer\.json"):
        PolicyAgents(str(folder), SAMPLED)


def test_a_token_that_is_never_drawn_is_another_one(tiny: Path) -> None:
    """A number may lie exactly where a token ends; one that hardly ever comes moves the sum by nothing, and ends there,
    too."""
    recomputer = Recomputer(str(tiny), SAMPLED)
    logits = torch.full((1, recomputer._model.config.vocab_size), -60.0)
    logits[0, [0, 8]] = 0.0
    end = float(drawn(logits, 1.0, [0.5])[2][0, 0])
    numbers = [end / (1 - 2**-20) + shift * 2**-53 for shift in range(-8, 9)]
    edge = next(number for number in numbers if float(drawn(logits, 1.0, [number])[3]) == end)
    picked, log_probs, cumulative, heights = drawn(logits, 1.0, [edge])
    assert int(picked) == 8

    class Constant:
        device = logits.device

        def __call__(self, **_: Any) -> Any:
            return SimpleNamespace(logits=logits[None])

    recomputer._model = cast("Any", Constant())
    for token, exchanged in ((8, False), (0, True), (5, True)):
        assert distance(cumulative[0], token, float(heights)) == 0.0
        recorded = [float(log_probs[0, token])]
        assert recomputer._wrong_token(DynamicCache(), [1], [token], recorded, [edge]) == ("", exchanged)


def test_weights_are_what_is_in_their_file(tiny: Path, tmp_path: Path) -> None:
    """PyTorch's own files may hold a tensor of a size, which is then what lay in memory before."""

    class Unwritten:
        def __reduce__(self) -> tuple[Any, tuple[int, ...]]:
            return torch.Tensor, (4,)

    folder = shutil.copytree(tiny, tmp_path / "policy")
    weights = load_file(folder / "model.safetensors")
    torch.save({**weights, "any": Unwritten()}, folder / "pytorch_model.bin")
    torch.load(folder / "pytorch_model.bin", weights_only=True)  # So far goes the attack.
    PolicyAgents(str(folder), SAMPLED)  # They are not looked at,
    (folder / "model.safetensors").unlink()  # and they do not suffice.
    with pytest.raises(InvalidOptionError, match=r"it has no weights \(\*\.safetensors"):
        PolicyAgents(str(folder), SAMPLED)


def test_a_template_reads_the_same_named_tokens_in_training_and_in_evaluation(tiny: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = shutil.copytree(tiny, tmp_path / "policy")
    tokenizer = AutoTokenizer.from_pretrained(folder, image_token="<|user|>")
    tokenizer.chat_template = "{{ image_token }}" + tokenizer.chat_template
    chat = ChatFormat(tokenizer)
    chat.save(folder)
    assert PolicyAgents(str(folder), SAMPLED).chat.opening("a room") == chat.opening("a room")
    assert PolicyAgents(str(tiny), SAMPLED).chat.opening("a room") == chat.opening("a room")[1:]


def test_words_that_were_added_count(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    first = len(PolicyAgents(str(tiny), SAMPLED).chat.tokenizer)
    (folder / "added_tokens.json").write_text(json.dumps({"<|extra|>": first}))
    assert PolicyAgents(str(folder), SAMPLED).chat.tokenizer.encode("<|extra|>") == [first]


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_others_play_at_once(kind: str, tiny: Path) -> None:
    model = load_policy(str(tiny))[0].eval()
    if kind == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=32, n_layer=2, n_head=2)).eval()
    assert not depends_on_others(model)


@pytest.mark.parametrize("kind", ["phi3", "mpt", "bart"])
def test_a_policy_that_depends_on_what_else_is_read_reads_one_by_one(kind: str, tiny: Path, tmp_path: Path) -> None:
    """So several episodes at once say what one says alone, and what is recomputed."""
    folder = shutil.copytree(tiny, tmp_path / "policy")
    tokens = len(PolicyAgents(str(tiny), SAMPLED).chat.tokenizer)
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0 + 3 * number for number in range(8)]}
    rope = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 150, **factors}
    size: dict[str, Any] = {"vocab_size": tokens, "initializer_range": 0.3, "pad_token_id": 0, "eos_token_id": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = MptForCausalLM(MptConfig(d_model=32, n_heads=2, n_layers=2, max_position_embeddings=4_096, **size))
        if kind == "bart":
            size |= {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 64}
            size |= {"max_position_embeddings": 4_096, "init_std": 0.3, "is_decoder": True}
            del size["initializer_range"]
            model = BartForCausalLM(BartConfig(**size))
        elif kind == "phi3":
            size |= {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
            size |= {"max_position_embeddings": 4_096, "original_max_position_embeddings": 150}
            model = Phi3ForCausalLM(Phi3Config(rope_parameters=rope, **size))
    assert depends_on_others(model.eval())
    model.save_pretrained(folder)
    for workers in (1, 3):
        evaluate_suite(
            SUITE, PolicyAgents(str(folder), SAMPLED, slots=workers), tmp_path / str(workers), workers=workers
        )
        assert verify_result(tmp_path / str(workers), model=folder).trust == ("replayed", "recomputed")
    one, three = (read(paths(tmp_path / str(workers))[0])[1:] for workers in (1, 3))
    assert [episode["actions"] for episode in one] == [episode["actions"] for episode in three]


def test_what_a_policy_holds_is_not_shown_as_it_is(
    honest: Path, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "\x1b[31mEVIL\nProven": torch.zeros(1)}, folder / "model.safetensors", {"format": "pt"})
    Recomputer(str(folder), SAMPLED)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "x\nProven: recomputed.\n"}))
    with pytest.raises(InvalidOptionError, match="Proven: recomputed") as refused:
        verify_result(honest, model=folder)
    assert "\n" not in str(refused.value)
    shown = capfd.readouterr()
    assert "EVIL" not in shown.out + shown.err


def test_a_panic_of_the_tokenizer_is_told(tiny: Path, tmp_path: Path, honest: Path) -> None:
    """It is no `Exception`."""
    folder = shutil.copytree(tiny, tmp_path / "policy")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    assert len(tokenizer["model"]["merges"]) > 2
    tokenizer["model"]["continuing_subword_prefix"] = "#####"
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InvalidOptionError, match="the policy cannot be loaded: PanicException"):
        Recomputer(str(folder), SAMPLED)

    class Panics:
        def __call__(self, *_: Any) -> Any:
            return Tokenizer.from_file(str(folder / "tokenizer.json"))

    recomputer = Recomputer(str(tiny), SAMPLED)
    recomputer._context = cast("Any", Panics())  # type: ignore[method-assign]
    record = load_result(honest).evaluations[SUITE.parts[0].name].episodes[0]
    what = recomputer.difference(read_first(paths(honest)[1]), record)
    assert what.startswith("the policy cannot be asked: PanicException")


def test_what_a_policy_says_beside_its_actions_buys_no_other_token(tiny: Path) -> None:
    """A policy that finds all tokens equally likely may say thousands that count for nothing."""
    recomputer = Recomputer(str(tiny), SAMPLED)
    recomputer.episodes, recomputer.exchanged = 19, 1
    assert recomputer.doubt
    recomputer.episodes = 20
    assert not recomputer.doubt


def test_nothing_that_follows_is_known_when_a_token_is_computed_again(
    honest: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that attends to both sides would else find likely whatever is recorded."""
    read: list[list[int]] = []
    recomputer = Recomputer(str(tiny), SAMPLED)
    forward = recomputer._model.forward

    def noted(*arguments: Any, **asked: Any) -> Any:
        read.append(asked["input_ids"][0].tolist())
        return forward(*arguments, **asked)

    monkeypatch.setattr(recomputer._model, "forward", noted)
    conversation = read_first(paths(honest)[1])
    record = load_result(honest).evaluations[SUITE.parts[0].name].episodes[0]
    assert recomputer.difference(conversation, record) == ""
    answers = [message["ids"] for message in conversation if message["role"] == "assistant"]
    assert len(read) == sum(map(len, answers))
    for ids in answers:
        read.pop(0)  # What the agent reads before its answer.
        for token in ids[:-1]:
            assert read.pop(0) == [token]


def read_first(conversations: Path) -> list[dict[str, Any]]:
    """The first conversation of a file."""
    first: list[dict[str, Any]] = read(conversations)[0]
    return first


def test_a_number_at_the_edge_of_a_token_picks_the_one_that_the_sampler_draws(tiny: Path) -> None:
    """The sampler makes numbers smaller by 2**-20, so that none is above a rounded sum."""
    recomputer = Recomputer(str(tiny), SAMPLED)
    with torch.inference_mode():
        logits = recomputer._model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1:].float()
    _, log_probs, cumulative, _ = drawn(logits, 1.0, [0.5])
    token = int(torch.searchsorted(cumulative, torch.tensor([[0.5]])))
    number = float(cumulative[0, token]) * (1 + 2**-21)
    generator = TransformersGenerator(recomputer._model, 0, slots=1)
    assert int(generator._sample(logits, [number])[0]) == token
    recorded = [float(log_probs[0, token])]
    assert recomputer._wrong_token(DynamicCache(), [5, 6, 7], [token], recorded, [number]) == ("", False)


def test_a_template_that_fails_late_is_told_in_a_line(honest: Path, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    template = folder / "chat_template.jinja"
    late = "{% if messages[0]['content']|length > 30 %}{{ raise_exception('\x1b[2J') }}{% endif %}"
    template.write_text(late + template.read_text())
    recomputer = Recomputer(str(folder), SAMPLED)
    record = load_result(honest).evaluations[SUITE.parts[0].name].episodes[0]
    what = recomputer.difference(read_first(paths(honest)[1]), record)
    assert what.startswith("the policy cannot be asked: TemplateError: ")


def test_weights_that_are_missing_are_not_drawn_at_random(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3, "layer_types": None}))
    with pytest.raises(InvalidOptionError, match=r"it has no weights model\.layers\.2\."):
        PolicyAgents(str(folder), SAMPLED)


@pytest.mark.parametrize("asked", ["strftime_now('%d %f')", "range(90_000)|random"])
def test_a_template_reads_neither_the_clock_nor_chance(asked: str, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text() + "{{ " + asked + " }}")
    chats = [PolicyAgents(str(folder), SAMPLED).chat for _ in range(2)]
    assert chats[0].opening("a room") == chats[1].opening("a room")
    assert chats[0].opening("a room") != PolicyAgents(str(tiny), SAMPLED).chat.opening("a room")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chat.json", "{"),
        ("chat.json", "[1]"),
        ("chat.json", '{"memory_turns": "x"}'),
        ("config.json", "[]"),
        ("config.json", '{"_attn_implementation": "somebody/attention"}'),
        ("config.json", '{"attn_implementation": "somebody/attention"}'),
        ("config.json", '{"text_config": [{"attn_implementation": "somebody/attention"}]}'),
        ("tokenizer_config.json", "[]"),
        ("tokenizer.json", "{}"),
        ("chat_template.jinja", "{{ 1 / 0 }}"),
        ("chat_template.jinja", "{% if %}"),
    ],
)
def test_whatever_is_in_a_strangers_policy_is_refused_in_words(
    name: str, text: str, tiny: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    (folder / name).write_text(text)
    with pytest.raises(InvalidOptionError, match="the policy cannot be loaded"):
        Recomputer(str(folder), SAMPLED)


@pytest.mark.parametrize("asked", [{"attn_implementation": "x/y"}, {"vision": [{"_attn_implementation": "x/y"}]}])
def test_attention_of_a_policys_own_choice_is_not_looked_for(asked: dict[str, Any], tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **asked}))
    with pytest.raises(InvalidOptionError, match=r"its config\.json asks for attention of 'x/y'"):
        Recomputer(str(folder), SAMPLED)


@pytest.mark.parametrize(
    "asked",
    [
        {"configuration_files": ["config.4.0.0.json"]},
        {"attribute_map": {"mine": "_attn_implementation"}, "mine": "flex_attention"},
        {"text_config": {"attribute_map": {}}},
    ],
)
def test_a_configuration_names_nothing_elsewhere(asked: dict[str, Any], tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **asked}))
    with pytest.raises(InvalidOptionError, match=r"its config\.json names (other files|names of its own) \("):
        Recomputer(str(folder), SAMPLED)


def test_a_model_that_is_far_larger_than_its_weights_is_refused_before_it_fills_the_memory(
    tiny: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    config = json.loads((folder / "config.json").read_text())
    huge = {**config, "hidden_size": 65_536, "intermediate_size": 65_536, "vocab_size": 10**7}
    (folder / "config.json").write_text(json.dumps(huge))
    with pytest.raises(InvalidOptionError, match=r"config\.json asks for [\d,]{15} weights, and it has"):
        PolicyAgents(str(folder), SAMPLED)


@pytest.mark.parametrize("length", ["x", [], {}, None])
def test_a_context_of_no_length_is_told(length: Any, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": length}))
    with pytest.raises(InvalidOptionError, match="the policy cannot be loaded"):
        Recomputer(str(folder), SAMPLED)


def test_code_of_a_policy_is_not_run_and_nobody_is_asked_to(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "policy")
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    config = json.loads((folder / "config.json").read_text())
    mine = {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mine", "auto_map": mine}))
    with pytest.raises(InvalidOptionError, match="cannot be loaded"):
        PolicyAgents(str(folder), SAMPLED)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_damaged_policy_is_refused(name: str, honest: Path, tiny: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(tiny, tmp_path / "policy")
    (damaged / name).write_bytes(b"{}")
    with pytest.raises(InvalidOptionError, match="cannot be loaded"):
        verify_result(honest, model=damaged)


def test_the_number_of_tokens_is_that_of_the_conversation(honest: Path, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    records, _ = paths(folder)
    header, first, *others = read(records)
    write(records, [header, first | {"tokens": first["tokens"] - 1}, *others])
    summarize_again(folder)
    (mismatch,) = verify_result(folder).mismatches
    assert f"holds {first['tokens']} tokens, and {first['tokens'] - 1} are recorded" in mismatch.what


def test_a_policy_stops_only_where_it_cannot_read_on(tiny: Path, tmp_path: Path) -> None:
    class Quitter:
        """The policy, but for the turns that it would rather not play."""

        def __init__(self, agents: PolicyAgents, env: Any) -> None:
            self.name, self.details, self._player = agents.name, agents.details, agents(env)
            self.stop_reason = "context"

        def reset(self, seed: int) -> None:
            self._player.reset(seed)

        def act(self, observation: str, info: dict[str, Any]) -> str | None:
            answer = self._player.act(observation, info) if self._player.tokens < 10 else None
            self.sampled, self.tokens = self._player.sampled, self._player.tokens
            return answer

    agents = PolicyAgents(str(tiny), SAMPLED)
    evaluate_suite(SUITE, lambda env: Quitter(agents, env), tmp_path / "r")
    assert verify_result(tmp_path / "r").mismatches == ()  # It is lost, whoever stopped.
    assert "the policy had not stopped" in problems(tmp_path / "r", tiny)[0]


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "log-probability": lambda answer: answer["log_probs"].__setitem__(0, answer["log_probs"][0] + 0.05),
    "another token": lambda answer: answer["ids"].__setitem__(0, (answer["ids"][0] + 1) % 50),
    "a token is missing": lambda answer: (answer["ids"].pop(), answer["log_probs"].pop()),
    "a token of no vocabulary": lambda answer: answer["ids"].__setitem__(0, 10**9),
    "a token below all": lambda answer: answer["ids"].__setitem__(0, -1),
    "a log-probability is missing": lambda answer: answer["log_probs"].pop(),
    "a log-probability is no number": lambda answer: answer["log_probs"].__setitem__(0, float("nan")),
    "a log-probability is a text": lambda answer: answer["log_probs"].__setitem__(0, "0"),
    "no tokens": lambda answer: answer.pop("ids"),
    "nothing": lambda answer: (answer.pop("ids"), answer.pop("log_probs")),
    "more": lambda answer: answer.__setitem__("weights", 1),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_tokens_that_were_not_sampled_are_refused(name: str, honest: Path, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    _, conversations = paths(folder)
    values = read(conversations)
    FORGERIES[name](values[0][2])
    write(conversations, values)
    summarize_again(folder)
    assert problems(folder, tiny)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"temperature": 1.0', '"temperature": 0.5'),
        ('"temperature": 1.0', '"temperature": NaN'),
        ('"temperature": 1.0', '"temperature": "warm"'),
        ('"max_action_tokens": 8', '"max_action_tokens": 9'),
        ('"max_action_tokens": 8', '"max_action_tokens": 1000000000000'),
        ('"max_action_tokens": 8', '"max_action_tokens": -1'),
    ],
)
def test_settings_of_the_sampling_are_the_recorded_ones(
    before: str, after: str, honest: Path, tiny: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(honest, tmp_path / "r")
    for path in (folder / "result.json", *folder.glob("*.jsonl")):
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))
    for part in folder.glob("*.jsonl"):
        write(part, read(part))
    with suppress(InvalidOptionError):  # A number that is none is refused at once.
        summarize_again(folder)
        assert problems(folder, tiny)


def test_more_agents_than_slots_are_refused(tiny: Path) -> None:
    agents = PolicyAgents(str(tiny), SAMPLED, slots=1)
    import gymnasium

    env = gymnasium.make("lights/Lights-v0")
    observation, info = env.reset(seed=0)
    first, second = agents(env), agents(env)
    assert first.act(observation, info) is not None
    with pytest.raises(InvalidOptionError, match="1 agents play already"):
        second.act(observation, info)
    del first
    second.reset(0)
    assert second.act(observation, info) is not None


def test_a_policy_whose_context_is_full_stops(tiny: Path) -> None:
    agents = PolicyAgents(str(tiny), SAMPLED)
    agents.room = 60  # The opening fits, and no further observation.
    result = evaluate("lights/Lights-v0", agents, tasks=1)
    assert result.episodes[0].stopped == "context"
    assert not result.episodes[0].success


@pytest.mark.slow
def test_the_command_line_plays_a_policy_and_answers_a_challenge(tiny: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "commitment.json", tmp_path / "r"
    committed = run(
        "challenge", "commit", str(tiny), "--suite", "alfworld-quick-v1", "--max-tokens", "4", "--out", str(file)
    )
    assert committed.returncode == 0, committed.stderr
    drawn = run("challenge", "draw", str(file), "--out", str(tmp_path / "challenge.json"))
    assert drawn.returncode == 0, drawn.stderr
    refused = run("eval", "--challenge", str(tmp_path / "challenge.json"), "--agent", "oracle", "--out", str(out))
    assert refused.returncode == 2
    assert "give its folder as --agent model:FOLDER" in " ".join(refused.stderr.split())
    challenge = ("--challenge", str(tmp_path / "challenge.json"))
    _, *command = drawn.stdout.splitlines()[-1].replace("FOLDER", str(tiny)).replace("results/NAME", str(out)).split()
    played = run(*command, "--workers", "8")
    assert played.returncode == 0, played.stderr
    verified = run("verify", str(out), *challenge, "--model", str(tiny))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "Proven: replayed, challenge, recomputed." in verified.stdout
    assert "Not checked: what it wrote beside its actions, seconds, and the versions of packages." in verified.stdout
    other = json.loads((tmp_path / "challenge.json").read_text()) | {"seed": "0" * 32}
    (tmp_path / "challenge.json").write_text(json.dumps(other))
    forged = run("verify", str(out), *challenge)
    assert forged.returncode == 1
    assert "the challenge asks for alfworld-quick-v1@" in " ".join(forged.stdout.split())
