"""Token-exact episodes."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from baselines.credit.losses import token_log_probs
from baselines.credit.rollouts import rollouts_of
from baselines.envs.pool import InProcessPool
from baselines.policy.chat import ChatFormat, chat_of
from baselines.policy.models import load_policy, make_tokenizer
from baselines.rollout import Collector, EpisodeRequest, TransformersGenerator
from baselines.rollout.backend import Prompt
from baselines.rollout.trajectory import Trajectory, collate, rows_of


def make_env(max_turns: int = 6) -> gymnasium.Env[str, str]:
    return gymnasium.make("lights/Lights-v0", switches=3, max_turns=max_turns, reward_density="dense")


def collect(
    tiny: Path, episodes: int = 23, slots: int = 5, seed: int = 0, group_size: int = 1, **kwargs: object
) -> tuple[list[Trajectory], object]:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=slots, max_action_tokens=7, **kwargs)
    collector = Collector(InProcessPool(make_env, slots), generator, chat)
    requests = [EpisodeRequest(i, seed=i // group_size, sampling_seed=seed + i) for i in range(episodes)]
    collection = collector.collect(requests)
    collector.close()
    assert not collection.broken
    return collection.trajectories, model


def whole_log_probs(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Log-probability of each token of whole conversations; 0 for the first. Shape (batch, time)."""
    return torch.nn.functional.pad(token_log_probs(logits[:, :-1], ids[:, 1:]), (1, 0))


@pytest.mark.parametrize("group_size", [1, 4])
def test_sampled_log_probs_are_those_of_reading_the_whole_conversation(tiny: Path, group_size: int) -> None:
    # Slots are refilled and the cache is packed on the way: 23 episodes in 5 slots.
    trajectories, model = collect(tiny, group_size=group_size)
    batch = collate(rows_of(trajectories))
    with torch.no_grad():
        logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask).logits
    again = whole_log_probs(logits, batch.ids)
    difference = ((again - batch.log_probs) * batch.action_mask).abs().max()
    assert batch.action_mask.sum() > 300
    assert difference < 1e-5


def test_slots_whose_action_has_ended_are_not_computed(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.eos_token_id] *= 6  # Actions differ in length.
    generator = TransformersGenerator(model.eval(), tokenizer.eos_token_id, slots=9, max_action_tokens=12)
    read: list[int] = []
    model.get_input_embeddings().register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].numel()))
    lengths: list[int] = []
    for turn in range(3):
        slots = range(9) if turn == 0 else (1, 8, 4, 2)
        prompts = [Prompt(slot, (5 + slot, 6, 7), turn == 0, slot if turn == 0 else None) for slot in slots]
        read.clear()
        sampled = [len(completion.ids) for completion in generator.generate(prompts)]
        assert sum(read[1:]) == sum(sampled) - len(sampled)  # Nobody reads the last token of an action yet.
        lengths += sampled
    assert len(set(lengths)) > 2


def test_conversations_that_begin_equally_are_read_once_and_do_not_wait_in_padding(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model.eval(), tokenizer.eos_token_id, slots=8, max_action_tokens=3)
    read: list[tuple[int, ...]] = []
    model.get_input_embeddings().register_forward_pre_hook(lambda _, inputs: read.append(tuple(inputs[0].shape)))
    first, second, other = tuple(range(5, 45)), tuple(range(6, 46)), tuple(range(7, 37))
    openings = [first, second, first, first, second, other]
    generator.generate([Prompt(slot, ids, True, slot) for slot, ids in enumerate(openings)])
    assert read[:2] == [(2, 40), (1, 30)]
    read.clear()
    # Two slots go on, one begins anew and two begin for the first time, while three are silent.
    generator.generate(
        [Prompt(0, (5, 6), False), Prompt(3, (7,), False)] + [Prompt(s, first, True, s) for s in (2, 6, 7)]
    )
    assert read[:2] == [(2, 3), (1, 40)]


def test_each_turn_alone_reads_the_same_conversation_as_the_batch(tiny: Path) -> None:
    trajectories, model = collect(tiny, episodes=3)
    for trajectory in trajectories:
        ids = torch.tensor([trajectory.ids])
        with torch.no_grad():
            alone = whole_log_probs(model(input_ids=ids).logits, ids)[0]
        at = 0
        for turn in trajectory.turns:
            at += len(turn.prompt)
            expected = alone[at : at + len(turn.action)]
            assert torch.allclose(expected, torch.tensor(turn.log_probs), atol=1e-4)
            at += len(turn.action)


def test_the_conversation_is_what_the_chat_template_renders(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=6)
    _, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    instructions = make_env().unwrapped.instructions
    for trajectory in trajectories:
        first = trajectory.turns[0]
        assert list(first.prompt) == chat.opening(first.observation, instructions)
        for before, turn in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            expected = chat.following(turn.observation)
            cut = before.action[-1] != chat.end_id
            assert list(turn.prompt) == ([chat.end_id] if cut else []) + expected


def test_the_environment_gets_what_was_sampled(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=4)
    _, tokenizer = load_policy(str(tiny))
    for number, trajectory in enumerate(trajectories):
        env = make_env()
        env.reset(seed=number)
        for turn in trajectory.turns:
            text = tokenizer.decode(turn.action, skip_special_tokens=True).strip()
            assert text == turn.text
            assert env.step(text)[1] == turn.reward


def test_prompts_are_attended_to_and_not_trained_on(tiny: Path) -> None:
    # A released trainer attended to as many prompt tokens as the batch had rows.
    trajectories, _ = collect(tiny, episodes=3)
    batch = collate(rows_of(trajectories))
    for row, trajectory in enumerate(trajectories):
        assert batch.attention_mask[row].sum() == len(trajectory.ids)
        assert batch.attention_mask[row, : len(trajectory.turns[0].prompt)].all()
        assert batch.action_mask[row, : len(trajectory.turns[0].prompt)].sum() == 0
        assert batch.action_mask[row].sum() == sum(len(turn.action) for turn in trajectory.turns)


def test_every_sampled_token_knows_its_turn_and_its_place_among_the_sampled(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=3)
    by_turn, by_token = collate(rows_of(trajectories)), collate(rows_of(trajectories), "token")
    for row, trajectory in enumerate(trajectories):
        sampled = by_turn.action_mask[row].bool()
        turns = [number for number, turn in enumerate(trajectory.turns) for _ in turn.action]
        assert by_turn.steps[row, sampled].tolist() == turns
        assert by_token.steps[row, sampled].tolist() == list(range(len(turns)))
        assert by_turn.step_mask[row].sum() == len(trajectory.turns)
        assert torch.equal(by_token.step_mask[row], by_token.action_mask[row])
        firsts = by_turn.step_mask[row].bool()
        assert by_turn.steps[row, firsts].tolist() == list(range(len(trajectory.turns)))


def test_rewards_stand_on_turns_or_on_their_last_tokens(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=3)
    by_turn, by_token = rollouts_of(trajectories), rollouts_of(trajectories, "token")
    for row, trajectory in enumerate(trajectories):
        assert by_turn.lengths[row] == len(trajectory.turns)
        assert by_turn.rewards[row, : by_turn.lengths[row]].tolist() == [turn.reward for turn in trajectory.turns]
        ends = np.cumsum([len(turn.action) for turn in trajectory.turns])
        assert by_token.lengths[row] == ends[-1]
        assert by_token.rewards[row, ends - 1].tolist() == [turn.reward for turn in trajectory.turns]
        assert by_token.returns[row] == pytest.approx(trajectory.total_reward)


def test_episodes_come_back_in_order_and_equal_seeds_begin_equally(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=9)
    assert [t.group for t in trajectories] == list(range(9))
    first = [t.turns[0].observation for t in trajectories]
    assert first == [make_env().reset(seed=i)[0] for i in range(9)]


def test_a_conversation_that_outgrows_the_context_is_cut_and_marked(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=2, max_action_tokens=4)
    generator.context_length = 150
    collector = Collector(InProcessPool(lambda: make_env(max_turns=500), 2), generator, chat)
    for trajectory in collector.collect([EpisodeRequest(i, seed=i) for i in range(3)]).trajectories:
        assert trajectory.overflow
        assert not trajectory.terminated
        assert not trajectory.truncated
        assert len(trajectory.ids) + len(trajectory.closing) <= 150
        assert len(trajectory.ids) <= 150


def test_what_is_sampled_depends_on_the_request_alone(tiny: Path) -> None:
    first, _ = collect(tiny, slots=5)
    second, _ = collect(tiny, slots=2)
    assert [t.ids for t in first] == [t.ids for t in second]
    others, _ = collect(tiny, slots=5, seed=100)
    assert [t.ids for t in first] != [t.ids for t in others]


def test_tokens_are_drawn_as_often_as_they_are_likely(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model, tokenizer.eos_token_id, slots=1, temperature=0.5)
    logits = torch.tensor([[0.0, 1.0, -100.0, 0.5, -100.0]])
    draws = 20_000
    uniform = np.random.default_rng(0).random(draws).tolist()
    token, log_probs = generator._sample(logits.expand(draws, -1), uniform)
    expected = (logits[0].double() / 0.5).softmax(-1)
    assert torch.allclose(torch.bincount(token, minlength=5).double() / draws, expected, atol=0.02)
    assert torch.allclose(log_probs.exp(), expected[token], atol=1e-6)


def test_the_largest_uniform_number_draws_a_token_that_can_be_drawn(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model, tokenizer.eos_token_id, slots=1)
    logits = torch.full((1, 50_000), -100.0)
    logits[0, :1_000] = 1.0
    token, log_probs = generator._sample(logits, [1.0])
    assert token.item() < 1_000
    assert log_probs.item() > -10


def test_temperature_zero_takes_the_likeliest_token(tiny: Path) -> None:
    first, _ = collect(tiny, episodes=3, temperature=0.0, seed=1)
    second, _ = collect(tiny, episodes=3, temperature=0.0, seed=9)
    assert [t.ids for t in first] == [t.ids for t in second]


@pytest.mark.parametrize("text", ["go north", "", "naïve 🙂", "\x00\x1b[31m", "  two  spaces ", "<|end|>?"])
def test_no_text_upsets_the_tokenizer(text: str) -> None:
    tokenizer = make_tokenizer(["go north", "take the key"])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_a_tokenizer_without_a_chat_template_is_refused() -> None:
    tokenizer = make_tokenizer(["go north"])
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="chat_template"):
        ChatFormat(tokenizer)
    tokenizer.chat_template = "{{ messages | length }} messages"
    with pytest.raises(ValueError, match="template"):
        ChatFormat(tokenizer)


def test_the_system_message_is_saved_with_a_policy_and_instructions_follow_it(tiny: Path, tmp_path: Path) -> None:
    _, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer, "Be brief.")
    chat.save(tmp_path)
    assert chat_of(str(tmp_path), tokenizer) == chat
    assert chat_of(str(tmp_path), tokenizer, "Go.") == ChatFormat(tokenizer, "Go.")
    assert chat_of("some/hub-name", tokenizer) == ChatFormat(tokenizer)
    ChatFormat(tokenizer, "Be brief.", instructed=False).save(tmp_path)
    alone = chat_of(str(tmp_path), tokenizer)
    assert alone.opening("A room.", "Say up or down.") == chat.opening("A room.")
    opening = tokenizer.decode(chat.opening("A room.", "Say one command."))
    assert opening == "<|system|>Be brief.\n\nSay one command.<|end|><|user|>A room.<|end|><|assistant|>"
    assert tokenizer.decode(ChatFormat(tokenizer).opening("A room.")).startswith("<|user|>")
