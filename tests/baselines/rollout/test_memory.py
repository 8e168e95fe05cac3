"""Memories of the conversation: contexts that are begun anew are rows, and what is trained is what was read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from baselines import dagger, grpo, sft_then_rl, vineppo
from baselines.envs.pool import InProcessPool
from baselines.evaluation.evaluate import evaluate_policy
from baselines.policy.chat import ChatFormat, chat_of
from baselines.policy.models import load_policy
from baselines.rollout import Collector, Completion, EpisodeRequest, Prompt, TransformersGenerator
from baselines.rollout.trajectory import Row, Trajectory, Turn, collate, rows_of
from baselines.settings.config import AnswerFormatName
from baselines.settings.dialogue import Dialogue, dialogue_of
from baselines.training.critic import load_critic, read_values
from baselines.training.scoring import read_log_probs, sampling_log_probs
from baselines.training.update import Learner, update
from tests.baselines.runs import curve
from textagent_gym.calls import FORMATS
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import load, replay, save
from textagent_gym.vector import env_maker
from textagent_gym.wrappers import AdmissibleActionHints

ENV = "lights/Lights-v0"
CPU = torch.device("cpu")
ANSWERS = (
    "<think>Red is off.</think><action>press red</action>",
    "<action>press green</action>",
    "no action",
    "<think>Again.</think><think>Yes.</think> <action>press blue</action>",
    "<think>Red <action>press blue</action></think><action>press red</action>",
    "<think>I cannot",
)
BARE = (
    "<action>press red</action>",
    "<action>press green</action>",
    "no action",
    "<action>press blue</action>",
    "<action>press red</action>",
    "<think>I cannot",
)
ACTIONS = ("press red", "press green", "no action", "press blue", "press red", "<think>I cannot")
DIALOGUES = [
    Dialogue("think", "whole"),
    Dialogue("think", "window", 1),
    Dialogue("think", "window", 2),
    Dialogue("think", "turn", 2),
    Dialogue("think", "no-thoughts"),
]
IDS = [f"{dialogue.memory}-{dialogue.memory_turns}" for dialogue in DIALOGUES]


class Halves(Dialogue):
    """The first half of an answer counts as its thoughts: what an untrained policy says holds no thoughts."""

    def without_thoughts(self, answer: str) -> str:
        return answer[len(answer) // 2 :]


class Scripted:
    """A generator that gives `ANSWERS` one after the other, and notes all that it has read before each of them."""

    slots = 1
    max_action_tokens = 40

    def __init__(self, chat: ChatFormat, context_length: int = 4_000) -> None:
        self.context_length = context_length
        self.read: list[list[int]] = []
        self.seeds: list[int | None] = []
        self._chat = chat
        self._context: list[int] = []

    def generate(self, prompts: Sequence[Prompt]) -> list[Completion]:
        [prompt] = prompts
        self._context = [*([] if prompt.fresh else self._context), *prompt.ids]
        assert len(self._context) + self.max_action_tokens <= self.context_length
        number = len(self.read) % len(ANSWERS)
        self.seeds.append(prompt.seed)
        self.read.append(list(self._context))
        ids = self._chat.tokenizer(ANSWERS[number], add_special_tokens=False)["input_ids"]
        if number != 1:  # One action is cut before its end token.
            ids = [*ids, self._chat.end_id]
        self._context += ids
        return [Completion(tuple(ids), tuple(-0.5 for _ in ids))]

    def take_weights(self, model: Any) -> None: ...

    def close(self) -> None: ...


def play_script(tiny: Path, dialogue: Dialogue, *, turns: int = 6, context: int = 4_000) -> tuple[Trajectory, Scripted]:
    chat = ChatFormat(load_policy(str(tiny))[1], "Be brief.", dialogue=dialogue)
    generator = Scripted(chat, context)
    make = env_maker(ENV, wrappers=dialogue.wrappers, switches=3, max_turns=turns)
    collector = Collector(InProcessPool(make, 1), generator, chat)
    [trajectory] = collector.collect([EpisodeRequest(0, seed=3)]).trajectories
    collector.close()
    return trajectory, generator


def play(tiny: Path, dialogue: Dialogue, *, episodes: int = 7, turns: int = 4) -> tuple[list[Trajectory], Any]:
    model, tokenizer = load_policy(str(tiny))
    chat = ChatFormat(tokenizer, dialogue=dialogue)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=3, max_action_tokens=6)
    make = env_maker(ENV, switches=3, max_turns=turns, reward_density="dense")
    collector = Collector(InProcessPool(make, 3), generator, chat)
    requests = [EpisodeRequest(i // 2, seed=i // 2, sampling_seed=i) for i in range(episodes)]
    trajectories = collector.collect(requests).trajectories
    collector.close()
    return trajectories, model


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def expected(dialogue: Dialogue, told: list[str], turn: int) -> list[dict[str, str]]:
    """What the policy reads before an action, written down from the documentation; `told[t]` is observation t."""
    earlier = range(turn)
    if dialogue.memory == "no-thoughts":
        return [m for t in earlier for m in (user(told[t]), assistant(BARE[t]))] + [user(told[turn])]
    first = max(0, turn - dialogue.memory_turns)
    note = [f"[... earlier turns left out: {first} ...]"] if first else []
    if dialogue.memory == "window":
        begin = user("\n\n".join([told[0], *note, *([told[first]] if first else [])]))
        return [begin, *(m for t in range(first, turn) for m in (assistant(ANSWERS[t]), user(told[t + 1])))]
    parts = [f"> {ACTIONS[t]}\n{told[t + 1]}" for t in range(first, turn)]
    return [user("\n\n".join([told[0], *note, *parts]))]


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=IDS)
def test_what_is_trained_is_what_was_read_and_sampled(tiny: Path, dialogue: Dialogue) -> None:
    trajectory, generator = play_script(tiny, dialogue)
    assert len(trajectory.turns) == len(generator.read) == 6
    batch = collate(rows_of([trajectory]))
    number = 0
    for place, row in enumerate(rows_of([trajectory])):
        ids = batch.ids[place, : int(batch.attention_mask[place].sum())].tolist()
        assert ids == row.ids
        for turn in row.turns:
            begin = len(generator.read[number])
            end = begin + len(turn.action)
            assert ids[:begin] == generator.read[number]
            assert ids[begin:end] == list(turn.action)
            assert batch.action_mask[place, begin:end].all()
            assert batch.steps[place, begin:end].tolist() == [number] * len(turn.action)
            number += 1
        assert int(batch.action_mask[place].sum()) == sum(len(turn.action) for turn in row.turns)
    assert number == 6


@pytest.mark.parametrize("dialogue", DIALOGUES[1:], ids=IDS[1:])
def test_a_context_that_is_begun_anew_is_the_template_of_what_the_memory_keeps(tiny: Path, dialogue: Dialogue) -> None:
    trajectory, generator = play_script(tiny, dialogue)
    _, tokenizer = load_policy(str(tiny))
    env = env_maker(ENV, wrappers=dialogue.wrappers, switches=3)()
    instructions = env.reset(seed=3)[1]["instructions"]
    assert "<think>" in instructions
    told = [turn.observation for turn in trajectory.turns]
    begun = 0
    for number, turn in enumerate(trajectory.turns):
        if not turn.fresh:
            continue
        messages = [{"role": "system", "content": f"Be brief.\n\n{instructions}"}, *expected(dialogue, told, number)]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert generator.read[number] == tokenizer(text, add_special_tokens=False)["input_ids"]
        begun += 1
    # Answers without thoughts need no new context, nor do turns that are all in the window.
    assert begun == {"window": 6 - dialogue.memory_turns, "turn": 6, "no-thoughts": 4}[dialogue.memory]
    last = [*told, trajectory.last_observation]
    if trajectory.closing_fresh:
        messages = [{"role": "system", "content": f"Be brief.\n\n{instructions}"}, *expected(dialogue, last, 6)]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert list(trajectory.closing) == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert trajectory.closing_fresh == (dialogue.memory != "no-thoughts")


@pytest.mark.parametrize("memory", ["whole", "window", "turn"])
def test_a_message_holds_the_newest_list_of_actions_only(tiny: Path, memory: Any) -> None:
    chat = ChatFormat(load_policy(str(tiny))[1], dialogue=Dialogue(memory=memory, memory_turns=2))
    make = env_maker(ENV, wrappers=(AdmissibleActionHints,), switches=3, max_turns=6)
    generator = Scripted(chat)
    collector = Collector(InProcessPool(make, 1), generator, chat)
    [trajectory] = collector.collect([EpisodeRequest(0, seed=3)]).trajectories
    collector.close()
    for turn, ids in zip(trajectory.turns, generator.read, strict=True):
        messages = chat.tokenizer.decode(ids).split("<|user|>")[1:]
        assert [message.count("Possible actions: ") for message in messages] == [1] * len(messages)
        assert turn.observation in messages[-1]
        assert "Turn on all 3 lights." in messages[0]
    assert ("left out: 3" in messages[0]) == (memory != "whole")


def test_long_turns_are_short_in_the_message_of_a_turn(tiny: Path) -> None:
    from baselines.rollout.memory import first_context, next_context

    chat = ChatFormat(load_policy(str(tiny))[1], dialogue=Dialogue(memory="turn", memory_turns=3))
    turns = [
        Turn((1,), (2, chat.end_id), (0.0, 0.0), 0.0, "B" * 900, "goal" + "g" * 900),
        Turn((1,), (2, chat.end_id), (0.0, 0.0), 0.0, "c", "D" * 900),
    ]
    before = first_context(chat, "goal")
    context = next_context(chat, turns, "e" * 900, instructions="", before=before, room=100_000)
    text = chat.tokenizer.decode(context.ids)
    assert "goal" + "g" * 900 in text
    assert "e" * 900 in text
    assert text.count("B") == text.count("D") == 200
    assert text.count("700 characters left out") == 2


@pytest.mark.parametrize(
    "dialogue",
    [
        Dialogue(),
        Dialogue(memory="window", memory_turns=1),
        Dialogue(memory="turn", memory_turns=2),
        Halves("last-line", "no-thoughts"),
    ],
    ids=lambda dialogue: dialogue.memory,
)
def test_log_probs_of_sampling_are_those_of_reading_the_rows(tiny: Path, dialogue: Dialogue) -> None:
    trajectories, model = play(tiny, dialogue)
    assert (len(rows_of(trajectories)) > 7) == (dialogue.memory != "whole")
    again = read_log_probs(model, trajectories, 1.0, 1_000, CPU)
    sampled = 0
    for trajectory, mine, theirs in zip(trajectories, again, sampling_log_probs(trajectories), strict=True):
        assert len(mine) == len(theirs) == len(trajectory.ids)
        at = 0
        for turn in trajectory.turns:
            begin = at + len(turn.prompt)
            at = begin + len(turn.action)
            assert mine[begin:at] == pytest.approx(theirs[begin:at], abs=1e-5)
            sampled += len(turn.action)
    assert sampled > 60


def test_an_episode_samples_on_in_a_new_context(tiny: Path) -> None:
    # With its random numbers begun anew, a policy would draw with the same ones in every turn.
    _, scripted = play_script(tiny, Dialogue("think", "turn"))
    assert scripted.seeds == [0, None, None, None, None, None]
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model.eval(), tokenizer.eos_token_id, slots=1, max_action_tokens=8)
    first, on, again = (
        generator.generate([Prompt(0, (7, 8, 9), fresh=True, seed=seed)])[0].ids for seed in (5, None, 5)
    )
    assert first == again
    assert first != on


@pytest.mark.parametrize("memory", ["window", "turn"])
def test_a_memory_that_leaves_turns_out_ends_no_episode_for_want_of_context(tiny: Path, memory: Any) -> None:
    whole, _ = play_script(tiny, Dialogue("think"), turns=12, context=330)
    assert whole.overflow
    assert len(whole.turns) < 12
    for turns in (1, 50):  # More turns than fit are shown as far as they fit.
        trajectory, generator = play_script(tiny, Dialogue("think", memory, turns), turns=12, context=330)
        assert (trajectory.terminated, trajectory.overflow) == (True, False)
        assert len(trajectory.turns) > len(whole.turns)
        assert max(len(ids) for ids in generator.read) <= 330 - generator.max_action_tokens
        assert len(trajectory.closing) <= 330
    # No turn fits beside the goal and what is seen now; then not even these do.
    alone = len(generator.read[0]) + generator.max_action_tokens
    tight, _ = play_script(tiny, Dialogue("think", memory, 1), turns=12, context=alone)
    assert tight.overflow


@dataclass
class Recorder:
    """An optimizer that notes the policy's gradients instead of using them."""

    model: Any
    noted: list[dict[str, torch.Tensor]] = field(default_factory=list)

    def step(self) -> None:
        self.noted.append({n: p.grad.clone() for n, p in self.model.named_parameters() if p.grad is not None})

    def zero_grad(self) -> None:
        self.model.zero_grad()


def config(tiny: Path, out: Path, **changes: Any) -> grpo.Config:
    basis = grpo.Config(
        model=str(tiny),
        out=out,
        env=ENV,
        set={"switches": 3, "max_turns": 4, "reward_density": "dense", "num_tasks": 8},
        iterations=2,
        groups=2,
        group_size=3,
        slots=6,
        max_action_tokens=6,
        minibatches=1,
        max_gradient=1e9,
        checkpoint_every=1,
    )
    return replace(basis, **changes)


def gradients(settings: grpo.Config, trajectories: list[Trajectory]) -> dict[str, torch.Tensor]:
    policy = load_policy(settings.model)[0]
    recorder = Recorder(policy)
    learner = Learner(Accelerator(cpu=True), policy, recorder, Recorder(policy))
    update(learner, grpo.method(settings), settings, trajectories, seed=0)
    return recorder.noted[0]


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert max(float(gradient.abs().max()) for gradient in one.values()) > 1e-2
    for name, gradient in one.items():
        torch.testing.assert_close(gradient, other[name], rtol=1e-5, atol=2e-6)


def episodes_of_rows(tiny: Path) -> list[Trajectory]:
    """Two groups of three episodes of one to three rows; what was sampled is as likely as the policy says."""
    random = np.random.default_rng(2)
    played = []
    for number in range(6):
        turns = []
        for turn in range(1 + number % 4):
            prompt, action = (tuple(random.integers(5, 200, random.integers(1, 7)).tolist()) for _ in range(2))
            fresh = turn > 0 and (number + turn) % 2 == 0
            turns.append(Turn(prompt, action, (0.0,) * len(action), float(random.random()), "", "", fresh=fresh))
        played.append(Trajectory(tuple(turns), number // 3, terminated=True))
    scores = read_log_probs(load_policy(str(tiny))[0].eval(), played, 1.0, 1, CPU)
    scored = []
    for trajectory, line in zip(played, scores, strict=True):
        at, turns = 0, []
        for turn in trajectory.turns:
            begin = at + len(turn.prompt)
            at = begin + len(turn.action)
            turns.append(replace(turn, log_probs=tuple(line[begin:at].tolist())))
        scored.append(replace(trajectory, turns=tuple(turns)))
    return scored


def split(trajectory: Trajectory) -> list[list[Turn]]:
    rows: list[list[Turn]] = []
    for turn in trajectory.turns:
        if turn.fresh or not rows:
            rows.append([])
        rows[-1].append(turn)
    return rows


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
def test_an_episode_of_several_rows_counts_once(tiny: Path, tmp_path: Path, aggregation: Any) -> None:
    played = episodes_of_rows(tiny)
    assert [len(split(trajectory)) for trajectory in played] == [1, 2, 2, 3, 1, 2]
    settings = config(tiny, tmp_path, aggregation=aggregation, scale=False)
    policy = load_policy(str(tiny))[0]
    tokens = sum(trajectory.sampled for trajectory in played)
    total = torch.tensor(0.0)
    for trajectory in played:
        group = [other.total_reward for other in played if other.group == trajectory.group]
        advantage = trajectory.total_reward - sum(group) / len(group)
        divisor = {"token": tokens, "sequence": 6 * trajectory.sampled, "constant": 6 * settings.max_action_tokens}
        for turns in split(trajectory):
            ids: list[int] = []
            for turn in turns:
                ids += turn.prompt
                for token in turn.action:
                    scores = policy(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)
                    total = total - advantage * scores[token] / divisor[aggregation]
                    ids.append(token)
    total.backward()
    naive = {name: parameter.grad.clone() for name, parameter in policy.named_parameters()}
    for microbatch in (1, 20, 1_000):
        assert_same(gradients(replace(settings, microbatch=microbatch), played), naive)


def test_an_episode_of_one_turn_teaches_the_same_with_every_memory(tiny: Path, tmp_path: Path) -> None:
    played = {}
    for memory in ("whole", "turn", "window"):
        trajectories, _ = play(tiny, Dialogue(memory=memory), turns=1, episodes=8)
        spread = [replace(t, turns=(replace(t.turns[0], reward=float(i % 3)),)) for i, t in enumerate(trajectories)]
        played[memory] = gradients(config(tiny, tmp_path), spread)
    assert_same(played["turn"], played["whole"])
    assert_same(played["window"], played["whole"])


@pytest.mark.parametrize("closing_fresh", [False, True])
def test_a_critic_reads_each_row_alone(tiny: Path, closing_fresh: bool) -> None:
    critic = load_critic(str(tiny)).eval()
    torch.nn.init.normal_(critic.score.weight, generator=torch.Generator().manual_seed(0))
    turns = (
        Turn((1, 2, 3), (4, 5), (0.0, 0.0), 0.0, "", ""),
        Turn((6,), (7,), (0.0,), 0.0, "", ""),
        Turn((1, 6), (7, 8, 9), (0.0, 0.0, 0.0), 1.0, "", "", fresh=True),
    )
    cut = Trajectory(turns, 0, closing=(10, 11), closing_fresh=closing_fresh)

    def said(*ids: int) -> float:
        with torch.no_grad():
            return float(critic(input_ids=torch.tensor([ids])).logits[0, -1, 0])

    values, bootstrap = read_values(critic, [cut], "turn", 1, CPU)
    assert values[0] == pytest.approx([said(1, 2, 3), said(1, 2, 3, 4, 5, 6), said(1, 6)], abs=1e-5)
    assert bootstrap[0] == pytest.approx(said(*(() if closing_fresh else (1, 6, 7, 8, 9)), 10, 11), abs=1e-5)
    values, _ = read_values(critic, [cut], "token", 50, CPU)
    rows = [(1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (1, 6), (1, 6, 7), (1, 6, 7, 8)]
    assert values[0] == pytest.approx([said(*row) for row in rows], abs=1e-5)


def test_steps_are_those_of_the_episode_in_every_row() -> None:
    turns = [Turn((1,), (2,) * (number + 1), (0.0,) * (number + 1), 0.0, "", "", fresh=True) for number in range(3)]
    rows = rows_of([Trajectory(tuple(turns[:1]), 0), Trajectory(tuple(turns), 0)])
    assert [(row.episode, row.number, row.sampled, row.start) for row in rows] == [
        (0, 0, 0, 0),
        (1, 0, 0, 0),
        (1, 1, 1, 2),
        (1, 2, 3, 5),
    ]
    assert isinstance(rows[0], Row)
    assert collate(rows, "token").steps[3].tolist() == [0, 3, 4, 5]
    assert collate(rows).steps[3].tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize("memory", ["window", "turn", "no-thoughts"])
def test_a_memory_trains_and_resumes_along_the_same_curve(tiny: Path, tmp_path: Path, memory: Any) -> None:
    chosen = {"memory": memory, "memory_turns": 1, "format": "last-line", "aggregation": "sequence", "kl": 0.1}
    grpo.run(config(tiny, tmp_path / "whole", **chosen))
    grpo.run(config(tiny, tmp_path / "parts", iterations=1, **chosen))
    policy = grpo.run(config(tiny, tmp_path / "parts", **chosen))
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    assert all(metrics["log_prob_difference_max"] < 1e-4 for metrics in curve(tmp_path / "whole"))
    assert dialogue_of(str(policy)) == Dialogue("last-line", memory, 1)


def test_a_policy_is_evaluated_as_it_was_trained(tiny: Path, tmp_path: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    folder = tmp_path / "policy"
    model.save_pretrained(folder)
    ChatFormat(tokenizer, dialogue=Dialogue("react", "turn", 3)).save(folder)
    assert chat_of(str(folder), tokenizer).dialogue == Dialogue("react", "turn", 3)
    assert dialogue_of(str(folder), memory="window") == Dialogue("react", "window", 3)
    assert dialogue_of("some/hub-name") == Dialogue()
    kwargs = {"switches": 3, "max_turns": 3}
    evaluation, collection = evaluate_policy(str(folder), ENV, kwargs, tasks=2, max_action_tokens=4)
    assert all(turn.fresh for trajectory in collection.trajectories for turn in trajectory.turns)
    assert "Thought: " in tokenizer.decode(collection.trajectories[0].ids)
    assert evaluation.details["memory"] == "turn"
    save(evaluation, tmp_path / "result.jsonl")
    assert replay(load(tmp_path / "result.jsonl")) == []
    _, collection = evaluate_policy(
        str(folder), ENV, kwargs, tasks=1, max_action_tokens=4, memory="whole", format="plain"
    )
    assert "Thought: " not in tokenizer.decode(collection.trajectories[0].ids)
    assert len(rows_of(collection.trajectories)) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": "no-thoughts"}, "memory='no-thoughts' needs a format with thoughts"),
        ({"memory": "most"}, "memory must be one of whole, window, turn, no-thoughts, got 'most'"),
        ({"format": "prose"}, "format must be one of plain, tag, .* got 'prose'"),
        ({"memory": "window", "loss": "gspo"}, "loss='gspo' .* needs memory='whole', got memory='window'"),
        ({"memory": "turn", "loss": "episode"}, "loss='episode' .* needs memory='whole', got memory='turn'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_a_model_is_loaded(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        grpo.run(config(tmp_path / "no-such-model", tmp_path / "run", **settings))
    assert not (tmp_path / "run").exists()


def test_a_window_holds_a_turn_at_least(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="memory_turns must be at least 1, got 0"):
        config(tmp_path, tmp_path, memory_turns=0)


def test_half_a_character_in_an_observation_is_read(tiny: Path) -> None:
    chat = ChatFormat(load_policy(str(tiny))[1])
    assert "a?b" in chat.tokenizer.decode(chat.following("a\ud800b"))


def test_every_format_of_the_suite_is_a_setting() -> None:
    assert get_args(AnswerFormatName) == ("plain", *FORMATS)


def test_branches_need_the_whole_conversation(tmp_path: Path) -> None:
    settings = vineppo.Config(model=str(tmp_path / "none"), env=ENV, out=tmp_path / "run", memory="turn")
    with pytest.raises(InvalidOptionError, match="memory must be 'whole', got 'turn'"):
        vineppo.run(settings)


def test_demonstrations_are_plain(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / "chat.json").write_text(json.dumps({"format": "think", "memory": "window"}))
    message = "format='plain' and memory='whole', and the policy has format='think' and memory='window'"
    taught = dagger.Config(model=str(policy), env=ENV, out=tmp_path / "run", labels=10)
    with pytest.raises(InvalidOptionError, match=message):
        dagger.run(taught)
    both = sft_then_rl.GRPOConfig(
        **{"model": str(policy), "env": ENV, "out": tmp_path / "run"},
        budget=1000,
        sft_fraction=0.5,
        demonstration_cost=10,
    )
    with pytest.raises(InvalidOptionError, match=message):
        sft_then_rl.run(both)
    assert not (tmp_path / "run").exists()


def test_a_format_that_is_never_told_is_refused(tiny: Path, tmp_path: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    model.save_pretrained(tmp_path / "untold")
    ChatFormat(tokenizer, instructed=False).save(tmp_path / "untold")
    with pytest.raises(InvalidOptionError, match="format='think' is told in the instructions"):
        grpo.run(config(tmp_path / "untold", tmp_path / "run", format="think"))


def test_hints_stand_under_what_is_said_of_an_answer(tiny: Path, tmp_path: Path) -> None:
    settings = config(tiny, tmp_path, format="think", hints=True)
    env = env_maker(settings.env, wrappers=settings.wrappers, **settings.set)()
    env.reset(options={"task_index": 0})
    said = env.step("no action at all")[0]
    assert "action" in said
    assert "Possible actions: press" in said
    env.close()


def test_a_first_prompt_that_does_not_fit_is_never_played(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model, tokenizer.eos_token_id, slots=1, max_action_tokens=6)
    generator.context_length = 16
    collector = Collector(InProcessPool(env_maker(ENV, switches=2), 1), generator, ChatFormat(tokenizer))
    collection = collector.collect([EpisodeRequest(0, seed=1)])
    assert not collection.trajectories
    assert re.fullmatch(r"the first \d+ tokens do not fit, 10 do", collection.broken[0].reason)
    collector.close()


def test_a_run_converses_as_it_did_when_its_first_model_is_gone(tiny: Path, tmp_path: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    first = tmp_path / "first"
    model.save_pretrained(first)
    ChatFormat(tokenizer, "Press switches.", dialogue=Dialogue("think", "window", 2)).save(first)
    settings = config(first, tmp_path / "run", iterations=1)
    grpo.run(settings)
    first.rename(tmp_path / "elsewhere")
    policy = grpo.run(replace(settings, iterations=2))
    chat = chat_of(str(policy), load_policy(str(policy))[1])
    assert (chat.system, chat.dialogue) == ("Press switches.", Dialogue("think", "window", 2))
