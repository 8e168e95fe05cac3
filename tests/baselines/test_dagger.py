"""DAgger: labels of the states that were visited, and a policy that is fitted to them."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import lights
import pytest
import torch

from baselines import dagger, sft
from baselines.envs.labelled import Labelled
from baselines.envs.pool import make_pool
from baselines.policy.chat import ChatFormat, chat_of
from baselines.policy.models import load_policy
from baselines.rollout import Collector, EpisodeRequest, TransformersGenerator
from baselines.rollout.trajectory import Trajectory, Turn
from baselines.settings.run_folder import OtherRunError
from baselines.training.labels import first_labels, rows_of
from tests.baselines.runs import curve, start
from textagent_gym.errors import InvalidOptionError, PlanningBudgetError, UnsupportedOperationError
from textagent_gym.evaluation import demonstrate
from textagent_gym.vector import env_maker

KWARGS = {"switches": 2, "max_turns": 4, "num_tasks": 8}
ALFWORLD = "textagent/ALFWorld-v0"
TEXTWORLD = "textagent/TextWorld-w2-o3-q4-v0"


class ForgetfulLights(lights.LightsEnv):
    """Lights whose oracle finds no plan while no light is on."""

    def _oracle(self) -> tuple[str, ...]:
        if not self._on:
            raise PlanningBudgetError("too dark")
        return super()._oracle()


class SilentLights(lights.LightsEnv):
    """Lights whose oracle never finds a plan."""

    def _oracle(self) -> tuple[str, ...]:
        raise PlanningBudgetError("too dark")


class Script(ChatFormat):
    """A chat in which the policy presses one switch after the other, whatever it samples."""

    def text(self, ids: list[int]) -> str:
        return f"press {lights.COLOURS[sum(ids) % len(lights.COLOURS)]}"


def registered(name: str, entry_point: Any) -> str:
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=entry_point)
    return name


def config(tiny: Path, out: Path, **changes: Any) -> dagger.Config:
    basis = dagger.Config(
        model=str(tiny),
        out=out,
        env="lights/Lights-v0",
        set=KWARGS,
        labels=30,
        iterations=3,
        slots=4,
        max_action_tokens=8,
        epochs=2.0,
        batch_size=4,
    )
    return replace(basis, **changes)


def files(out: Path) -> dict[str, bytes]:
    """What a run has made, except for seconds, and for the calls of the expert, which follow from `slots`."""
    paths = ("labels/1.json", "labels/2.json", "labels/3.json")
    return {path: re.sub(rb'"expert_calls": \d+', b"", (out / path).read_bytes()) for path in paths}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_policy(str(folder))[0].state_dict())


def play(
    tiny: Path, env: str, kwargs: dict[str, Any], agent: Any, episodes: int
) -> tuple[ChatFormat, list[Trajectory]]:
    """Episodes of the tiny policy, which knows nothing, with labels."""
    model, tokenizer = load_policy(str(tiny))
    chat = chat_of(str(tiny), tokenizer)
    generator = TransformersGenerator(model.eval(), chat.end_id, slots=episodes, max_action_tokens=8)
    pool = make_pool(env_maker(env, wrappers=(lambda world: Labelled(world, agent),), **kwargs), episodes)
    collector = Collector(pool, generator, chat)
    requests = [EpisodeRequest(i, options={"task_index": i}, sampling_seed=i) for i in range(episodes)]
    trajectories = collector.collect(requests).trajectories
    collector.close()
    return chat, trajectories


def wander(env: gymnasium.Env[str, str], agent: Any, index: int, turns: int = 8) -> list[tuple[list[str], str | None]]:
    """The actions before each state of an episode of random admissible actions, and the state's label."""
    labelled = Labelled(env, agent)
    _, info = labelled.reset(options={"task_index": index})
    generator = torch.Generator().manual_seed(index)
    actions: list[str] = []
    visited: list[tuple[list[str], str | None]] = [([], info["label"])]
    for _ in range(turns):
        possible = env.unwrapped.admissible_actions()  # type: ignore[attr-defined]
        actions.append(possible[int(torch.randint(len(possible), (), generator=generator))])
        _, _, terminated, truncated, info = labelled.step(actions[-1])
        if terminated or truncated:
            assert info["label"] is None
            break
        visited.append((list(actions), info["label"]))
    return visited


def test_a_label_turns_on_a_light_that_is_off_in_the_text_that_was_read() -> None:
    checked = 0
    fresh = gymnasium.make("lights/Lights-v0", switches=6)
    for index in range(20):
        for actions, label in wander(gymnasium.make("lights/Lights-v0", switches=6), "oracle", index):
            shown, _ = fresh.reset(options={"task_index": index})
            for action in actions:
                shown, *_ = fresh.step(action)
            assert label is not None
            assert label.removeprefix("press ") in re.findall(r"(\w+): off", shown)
            checked += bool(actions)
    assert checked > 40


def test_the_collector_keeps_the_label_of_the_observation_that_a_turn_answers(tiny: Path) -> None:
    model, tokenizer = load_policy(str(tiny))
    generator = TransformersGenerator(model.eval(), tokenizer.eos_token_id, slots=2, max_action_tokens=8)
    pool = make_pool(env_maker("lights/Lights-v0", wrappers=(partial(Labelled, agent="oracle"),), switches=6), 2)
    chat = Script(tokenizer)
    collector = Collector(pool, generator, chat)
    requests = [EpisodeRequest(i, options={"task_index": i}, sampling_seed=i) for i in range(6)]
    trajectories = collector.collect(requests).trajectories
    collector.close()
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    assert len({turn.label for turn in turns}) > 3
    for turn in turns:
        assert str(turn.label).removeprefix("press ") in re.findall(r"(\w+): off", turn.observation)


@pytest.mark.parametrize(("env", "kwargs"), [(TEXTWORLD, {}), (ALFWORLD, {})])
def test_from_every_visited_state_the_labels_lead_to_the_goal_on_a_shortest_way(
    env: str, kwargs: dict[str, Any]
) -> None:
    fresh: Any = gymnasium.make(env, max_turns=200, **kwargs)
    checked = 0
    for index in range(3):
        for actions, label in wander(gymnasium.make(env, max_turns=200, **kwargs), "oracle", index):
            fresh.reset(options={"task_index": index})
            for action in actions:
                fresh.step(action)
            plan = fresh.unwrapped.oracle()
            if plan is None:
                assert label is None
                continue
            labelled = Labelled(fresh, "oracle")
            terminated, info, step = False, {"label": label, "success": False}, 0
            while not terminated:
                _, _, terminated, _, info = labelled.step(str(info["label"]))
                step += 1
            assert info["success"]
            assert step == len(plan)
            checked += 1
    assert checked > 10


def test_the_expert_labels_by_what_was_said_while_another_played() -> None:
    env = gymnasium.make(ALFWORLD, max_turns=200)
    for index in range(2):
        visited = wander(env, "expert", index)
        fresh: Any = gymnasium.make(ALFWORLD, max_turns=200)
        fresh.reset(options={"task_index": index})
        watcher = fresh.unwrapped.expert()
        watcher.observe(None, fresh.unwrapped.observation)
        assert visited[0] == ([], watcher.action())
        for actions, label in visited[1:]:
            observation = fresh.step(actions[-1])[0]
            watcher.observe(actions[-1], observation)
            assert label == watcher.action()


def test_following_the_labels_of_the_expert_is_the_experts_episode() -> None:
    env = gymnasium.make(ALFWORLD, max_turns=200)
    demo = demonstrate(env, {"task_index": 0}, "expert")
    labelled = Labelled(gymnasium.make(ALFWORLD, max_turns=200), "expert")
    _, info = labelled.reset(options={"task_index": 0})
    actions, ended = [], False
    while not ended:
        actions.append(info["label"])
        _, _, terminated, truncated, info = labelled.step(actions[-1])
        ended = terminated or truncated
    assert actions == [message["content"] for message in demo["messages"] if message["role"] == "assistant"]


def learned(rows: list[dict[str, list[int]]], end_id: int) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every label that rows teach, with the ids before it."""
    found: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for row in rows:
        ids, labels = row["input_ids"], row["labels"]
        assert all(label in (-100, token) for token, label in zip(ids, labels, strict=True))
        begin = None
        for place, label in enumerate(labels):
            if label != -100 and begin is None:
                begin = place
            if label == end_id and begin is not None:
                found[tuple(ids[:begin]), tuple(ids[begin : place + 1])] += 1
                begin = None
        assert begin is None
    return found


def test_each_label_is_learned_once_behind_the_ids_that_the_policy_had_read_and_sampled(tiny: Path) -> None:
    chat, trajectories = play(tiny, "lights/Lights-v0", KWARGS, "oracle", 8)
    _, tokenizer = load_policy(str(tiny))
    agreeing = [agree(trajectory, chat, every=2) for trajectory in trajectories]
    for trajectory in [*trajectories, *agreeing]:
        expected: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        before: tuple[int, ...] = ()
        for turn in trajectory.turns:
            before += turn.prompt
            label = (*tokenizer(turn.label, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)
            expected[before, label] += 1
            before += turn.action
        assert learned(rows_of(trajectory.turns, chat), chat.end_id) == expected
    # Turns in which the policy did as the label says share a row.
    rows = [len(rows_of(trajectory.turns, chat)) for trajectory in agreeing]
    assert rows == [1 + len(trajectory.turns) // 2 for trajectory in trajectories]


def agree(trajectory: Trajectory, chat: ChatFormat, every: int) -> Trajectory:
    """An episode in which some labels are what was sampled; no such one is likely in the play of a tiny policy."""
    turns = []
    for number, turn in enumerate(trajectory.turns):
        action = tuple(chat.reply(str(turn.label)))
        agrees = number % every == 0
        turns.append(replace(turn, action=action, text=str(turn.label)) if agrees else turn)
    return replace(trajectory, turns=tuple(turns))


def test_shared_rows_have_the_loss_and_the_gradient_of_a_row_per_label(tiny: Path) -> None:
    chat, trajectories = play(tiny, "lights/Lights-v0", KWARGS, "oracle", 4)
    model, _ = load_policy(str(tiny))
    rows = [row for each in trajectories for row in rows_of(agree(each, chat, every=2).turns, chat)]

    def loss(ids: list[int], labels: list[int]) -> torch.Tensor:
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, torch.tensor(labels[1:]), reduction="sum")

    shared = torch.stack([loss(row["input_ids"], row["labels"]) for row in rows]).sum()
    single = []
    for each in trajectories:
        before: list[int] = []
        for turn in agree(each, chat, every=2).turns:
            before += turn.prompt
            label = chat.reply(str(turn.label))
            single.append(loss(before + label, [-100] * len(before) + label))
            before += turn.action
    singles = torch.stack(single).sum()
    assert shared.item() == pytest.approx(singles.item(), rel=1e-5)
    gradients = [torch.autograd.grad(total, list(model.parameters()), retain_graph=True) for total in (shared, singles)]
    for ours, naive in zip(*gradients, strict=True):
        assert torch.allclose(ours, naive, atol=1e-4, rtol=1e-4)


def test_what_has_no_label_teaches_nothing() -> None:
    turn = Turn((1,), (2,), (0.0,), 0.0, "", "")
    assert rows_of([turn, turn], None) == []  # type: ignore[arg-type]


def test_an_episode_is_cut_behind_the_last_label_that_is_paid_for() -> None:
    turns = [Turn((n,), (0,), (0.0,), 0.0, "", "", label=label) for n, label in enumerate(["a", None, "b", None, "c"])]
    prompts = [[turn.prompt[0] for turn in first_labels(turns, limit)] for limit in range(5)]
    assert prompts == [[], [0], [0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


def test_one_iteration_is_sft_on_the_same_demonstrations(tiny: Path, tmp_path: Path) -> None:
    env = gymnasium.make("lights/Lights-v0", **KWARGS)
    demos = [demonstrate(env, {"task_index": index}) for index in range(8)]
    path = tmp_path / "demos.jsonl"
    path.write_text("".join(json.dumps(demo) + "\n" for demo in demos))
    sft.run(sft.Config(model=str(tiny), demos=path, out=tmp_path / "sft", epochs=2.0, batch_size=4))
    labels = sum(message["role"] == "assistant" for demo in demos for message in demo["messages"])
    policy = dagger.run(config(tiny, tmp_path / "dagger", iterations=1, labels=labels))
    ours, theirs = weights(policy), weights(tmp_path / "sft")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert chat_of(str(policy), load_policy(str(policy))[1]).instructed
    assert curve(tmp_path / "dagger")[0]["rows"] == 8


def test_the_labels_are_spent_to_the_last_one_and_aggregated(tiny: Path, tmp_path: Path) -> None:
    dagger.run(config(tiny, tmp_path, labels=31))
    metrics = curve(tmp_path)
    assert [m["new_labels"] for m in metrics] == [10, 10, 11]
    assert [m["labels"] for m in metrics] == [10, 20, 31]
    assert [m["expert_share"] for m in metrics] == [1, 0, 0]
    lessons = [json.loads((tmp_path / "labels" / f"{i}.json").read_text()) for i in (1, 2, 3)]
    assert metrics[-1]["rows"] == sum(len(lesson["rows"]) for lesson in lessons)
    _, tokenizer = load_policy(str(tiny))
    counts = [sum(learned(lesson["rows"], tokenizer.eos_token_id).values()) for lesson in lessons]
    assert counts == [10, 10, 11]
    assert metrics[0]["success"] == 1.0
    assert metrics[0]["agreement"] == 1.0
    assert metrics[1]["agreement"] < 1.0


@pytest.mark.parametrize("cut", [False, True])
def test_every_call_of_the_expert_is_counted(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    asked: list[str | None] = []
    label = Labelled._label

    def counted(self: Labelled, action: str | None) -> str | None:
        asked.append(action)
        return label(self, action)

    monkeypatch.setattr(Labelled, "_label", counted)
    settings = config(tiny, tmp_path, decay=0.5, labels=24, epochs=1.0)
    if cut:  # The context is full after the first turn.
        chat = chat_of(str(tiny), load_policy(str(tiny))[1])
        env = gymnasium.make(settings.env, **KWARGS)
        begun = [env.reset(options={"task_index": task}) for task in range(8)]
        openings = [len(chat.opening(text, info["instructions"])) for text, info in begun]
        longest = max(openings) + settings.max_action_tokens
        monkeypatch.setattr("baselines.rollout.transformers_backend.context_length", lambda model: longest)
    dagger.run(settings)
    metrics = curve(tmp_path)
    assert sum(m["expert_calls"] for m in metrics) == len(asked)
    assert metrics[0]["expert_calls"] >= metrics[0]["new_labels"]
    assert sum(m["expert_calls"] for m in metrics[1:]) > sum(m["new_labels"] for m in metrics[1:])


def test_the_first_policy_is_fitted_to_the_labels_of_all_iterations(tiny: Path, tmp_path: Path) -> None:
    policy = dagger.run(config(tiny, tmp_path / "dagger"))
    lessons = [json.loads((tmp_path / "dagger" / "labels" / f"{i}.json").read_text()) for i in (1, 2, 3)]
    rows = [row for lesson in lessons for row in lesson["rows"]]
    model, tokenizer = load_policy(str(tiny))
    sft.fit(model, tokenizer, rows, config(tiny, tmp_path), tmp_path / "sft", seed=0).train()
    ours, expected = weights(policy), model.state_dict()
    assert all(torch.equal(ours[name], expected[name]) for name in ours)


def test_the_experts_share_falls_and_episodes_have_one_author(tiny: Path, tmp_path: Path) -> None:
    dagger.run(config(tiny, tmp_path, decay=0.5, labels=120))
    metrics = curve(tmp_path)
    assert [m["expert_share"] for m in metrics] == [1, 0.5, 0.25]
    assert metrics[0]["agreement"] == 1.0
    assert 1.0 > metrics[1]["agreement"] > metrics[2]["agreement"] > 0.0


@pytest.mark.parametrize("instant", ["_collect", "_fit", "append_metrics", "rename"])
def test_a_run_that_stopped_resumes_with_the_same_files(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    whole = dagger.run(config(tiny, tmp_path / "whole"))
    out = tmp_path / "parts"
    calls: list[int] = []
    with monkeypatch.context() as patch:
        owner, name = (Path, "rename") if instant == "rename" else (dagger, instant)
        working: Any = getattr(owner, name)

        def fails(*arguments: Any) -> Any:
            calls.append(1)
            # The second iteration; its policy is renamed after the first's, which has made way, was.
            if len(calls) == (3 if instant == "rename" else 2):
                raise KeyboardInterrupt
            return working(*arguments)

        patch.setattr(owner, name, fails)
        with pytest.raises(KeyboardInterrupt):
            dagger.run(config(tiny, out))
    assert (out / "policy.old").is_dir() == (instant == "rename")
    policy = dagger.run(config(tiny, out, slots=7))
    assert files(out) == files(tmp_path / "whole")
    curves = [curve(out), curve(tmp_path / "whole")]
    for line in (*curves[0], *curves[1]):
        del line["expert_calls"]  # They follow from `slots`.
    assert curves[0] == curves[1]
    ours, expected = weights(policy), weights(whole)
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


@pytest.mark.slow
def test_a_run_that_was_killed_resumes_with_the_same_files(tiny: Path, tmp_path: Path) -> None:
    whole = dagger.run(config(tiny, tmp_path / "whole"))
    code = """
from baselines import dagger
from tests.baselines.test_dagger import config
dagger.run(config(Path(sys.argv[1]), Path(sys.argv[2])))
"""
    out = tmp_path / "killed"
    for sign in ("labels/1.json", "policy/iteration", "labels/3.json"):
        process = start(code, tiny, out)
        while not (out / sign).exists() and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate(timeout=60)
    process = start(code, tiny, out)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert files(out) == files(tmp_path / "whole")
    assert curve(out) == curve(tmp_path / "whole")
    ours, expected = weights(out / "policy"), weights(whole)
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


def test_a_finished_run_does_nothing_and_other_settings_need_another_folder(tiny: Path, tmp_path: Path) -> None:
    policy = dagger.run(config(tiny, tmp_path))
    before = (policy / "model.safetensors").stat().st_mtime_ns
    seen: list[dict[str, Any]] = []
    assert dagger.run(config(tiny, tmp_path), log=seen.append) == policy
    assert not seen
    assert (policy / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(OtherRunError, match=r"\(iterations\)"):
        dagger.run(config(tiny, tmp_path, iterations=2))


def test_worker_processes_label_too(tiny: Path, tmp_path: Path) -> None:
    dagger.run(config(tiny, tmp_path / "process", pool="process", workers=1, patience=float("inf")))
    dagger.run(config(tiny, tmp_path / "here"))
    assert files(tmp_path / "process") == files(tmp_path / "here")


def test_a_state_without_an_answer_is_passed_over_and_counted(tiny: Path, tmp_path: Path) -> None:
    env = registered("lights/Forgetful-v0", ForgetfulLights)
    dagger.run(config(tiny, tmp_path, env=env, iterations=2, labels=20))
    metrics = curve(tmp_path)
    assert metrics[-1]["labels"] == 20
    assert metrics[-1]["unlabelled"] > 0


def test_an_expert_that_has_nothing_to_say_ends_the_run(tiny: Path, tmp_path: Path) -> None:
    env = registered("lights/Silent-v0", SilentLights)
    with pytest.raises(UnsupportedOperationError, match="100 episodes in a row gave no label: the oracle of lights/Si"):
        dagger.run(config(tiny, tmp_path, env=env))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agent": "expert"}, "agent 'expert' cannot play LightsEnv, which has no expert"),
        ({"env": "FrozenLake-v1", "set": {}}, "not a text environment"),
    ],
)
def test_a_world_without_the_expert_is_refused_before_anything_is_made(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        dagger.run(config(tmp_path / "no-such-model", tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


def test_a_start_that_fails_leaves_no_folder_behind(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no-such-model"):
        dagger.run(config(tmp_path / "no-such-model", tmp_path / "run"))
    dagger.run(config(tiny, tmp_path / "run", iterations=1, labels=2))


@pytest.mark.parametrize(
    "setting",
    [
        {"labels": 2},
        {"iterations": 0},
        {"decay": 1.5},
        {"decay": float("nan")},
        {"epochs": 0.0},
        {"batch_size": 0},
        {"learning_rate": -1.0},
        {"slots": 0},
        {"answer_seconds": 0.0},
    ],
)
def test_settings_out_of_range_are_refused(tiny: Path, tmp_path: Path, setting: dict[str, float]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(setting))):
        config(tiny, tmp_path, **setting)


def test_a_label_that_the_policy_could_never_say_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidOptionError, match=r"max_action_tokens must be at least \d+, got 1: the oracle does 'press"
    ):
        dagger.run(config(tiny, tmp_path, max_action_tokens=1))
