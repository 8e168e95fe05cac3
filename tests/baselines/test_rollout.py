"""Token-exact episodes."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest
import torch

from baselines.chat import ChatFormat
from baselines.losses import sampled_log_probs
from baselines.models import load_policy, make_tokenizer
from baselines.rollout import Collector, Episode, TransformersGenerator
from baselines.trajectory import Trajectory, collate


def make_env(max_turns: int = 6) -> gymnasium.Env[str, str]:
    return gymnasium.make("lights/Lights-v0", switches=3, max_turns=max_turns, reward_density="dense")


def collect(tiny: Path, episodes: int = 23, slots: int = 5, **kwargs: object) -> tuple[list[Trajectory], object]:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=slots, max_action_tokens=7, **kwargs)
    collector = Collector(make_env, generator, chat)
    played = collector.collect([Episode(i, seed=i) for i in range(episodes)])
    collector.close()
    return played, model


def test_sampled_log_probs_are_those_of_reading_the_whole_conversation(tiny: Path) -> None:
    # Slots are refilled and the cache is packed on the way: 23 episodes in 5 slots.
    trajectories, model = collect(tiny)
    batch = collate(trajectories)
    with torch.no_grad():
        logits = model(input_ids=batch.ids, attention_mask=batch.attention_mask).logits
    again = sampled_log_probs(logits, batch.ids)
    difference = ((again - batch.log_probs) * batch.action_mask).abs().max()
    assert batch.action_mask.sum() > 300
    assert difference < 1e-4


def test_each_turn_alone_reads_the_same_conversation_as_the_batch(tiny: Path) -> None:
    trajectories, model = collect(tiny, episodes=3)
    for trajectory in trajectories:
        ids = torch.tensor([trajectory.ids])
        with torch.no_grad():
            alone = sampled_log_probs(model(input_ids=ids).logits, ids)[0]
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
    for trajectory in trajectories:
        first = trajectory.turns[0]
        assert list(first.prompt) == chat.opening(first.observation)
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
    batch = collate(trajectories)
    for row, trajectory in enumerate(trajectories):
        assert batch.attention_mask[row].sum() == len(trajectory.ids)
        assert batch.attention_mask[row, : len(trajectory.turns[0].prompt)].all()
        assert batch.action_mask[row, : len(trajectory.turns[0].prompt)].sum() == 0
        assert batch.action_mask[row].sum() == sum(len(turn.action) for turn in trajectory.turns)


def test_turn_rewards_sit_on_the_last_token_of_their_turn(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=3)
    batch = collate(trajectories)
    for row, trajectory in enumerate(trajectories):
        at = 0
        for number, turn in enumerate(trajectory.turns):
            at += len(turn.prompt) + len(turn.action)
            assert batch.rewards[row, at - 1] == pytest.approx(turn.reward)
            assert batch.turns[row, at - 1] == number
        assert float(batch.rewards[row].sum()) == pytest.approx(trajectory.total_reward, abs=1e-6)


def test_episodes_come_back_in_order_and_equal_seeds_begin_equally(tiny: Path) -> None:
    trajectories, _ = collect(tiny, episodes=9)
    assert [t.group for t in trajectories] == list(range(9))
    first = [t.turns[0].observation for t in trajectories]
    assert first == [make_env().reset(seed=i)[0] for i in range(9)]


def test_a_conversation_that_outgrows_the_context_is_cut_and_marked(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=2, max_action_tokens=4)
    generator.context_length = 60
    collector = Collector(lambda: make_env(max_turns=500), generator, chat)
    for trajectory in collector.collect([Episode(0, seed=0), Episode(1, seed=1), Episode(2, seed=2)]):
        assert trajectory.overflow
        assert not trajectory.terminated
        assert len(trajectory.ids) <= 60


def test_temperature_zero_takes_the_likeliest_token(tiny: Path) -> None:
    first, _ = collect(tiny, episodes=3, temperature=0.0, seed=1)
    second, _ = collect(tiny, episodes=3, temperature=0.0, seed=2)
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
