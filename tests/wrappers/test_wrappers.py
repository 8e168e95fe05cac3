"""The wrappers, alone and on top of each other."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from hypothesis import given
from hypothesis import strategies as st
from lights import LightsEnv

from textagent_gym.calls import FORMATS
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError
from textagent_gym.wrappers import (
    ActionParser,
    AdmissibleActionHints,
    ChatMessages,
    HistoryText,
    InvalidActionPenalty,
    ObservationLimit,
    restore,
    snapshot,
)

LIGHTS = Path(__file__).parents[1] / "third_party" / "lights"
TASK = {"task": "Lights/v1/s4/train/0"}


def lights(**kwargs: object) -> gymnasium.Env[str, str]:
    return gymnasium.make("lights/Lights-v0", **kwargs)


@pytest.mark.parametrize(
    "wrapper", [ActionParser, AdmissibleActionHints, ChatMessages, HistoryText, InvalidActionPenalty, ObservationLimit]
)
def test_a_wrapped_environment_passes_gymnasiums_checker_and_its_spec_survives(wrapper: type) -> None:
    env = wrapper(lights())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(env, skip_render_check=True)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert type(again) is wrapper
    assert again.reset(seed=2)[0] == env.reset(seed=2)[0]


@given(st.text())
def test_no_answer_upsets_a_parser(answer: str) -> None:
    for parser in (*FORMATS, r"do\((.*)\)"):
        env = ActionParser(lights(), parser)
        env.reset(options=TASK)
        _, _, _, _, info = env.step(answer)
        assert info["turn"] == 1


@pytest.mark.parametrize(
    ("parser", "answer"),
    [
        ("tag", "<action>press blue</action> no: <ACTION> press red </ACTION>"),
        ("last-line", "Let me see.\n\n  press red  \n\n"),
        ("react", "Thought: hm\nAction: press blue\nThought: no\nAction: press red"),
        (r"do\((.*?)\)", "do(press red)"),
        (lambda answer: answer[::-1], "der sserp"),
    ],
)
def test_the_action_is_found(parser: object, answer: str) -> None:
    env = ActionParser(lights(), parser)
    env.reset(options=TASK)
    *_, info = env.step(answer)
    assert info["parsed_action"] == "press red"
    assert info["valid_action"]


def test_an_answer_without_an_action_costs_a_turn_and_is_told_the_format() -> None:
    env = ActionParser(lights(), "tag")
    env.reset(options=TASK)
    observation, reward, _, _, info = env.step("I would rather not.")
    assert observation == "Answer with <action>...</action>."
    assert (reward, info["turn"], info["valid_action"], info["parsed_action"]) == (0.0, 1, False, None)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_told_after_the_worlds_instructions_wherever_they_stand(name: str) -> None:
    env = ActionParser(lights(), name)
    observation, info = env.reset(options=TASK)
    assert info["instructions"] == f"{env.unwrapped.instructions}\n\n{FORMATS[name].instructions}"
    assert observation == lights().reset(options=TASK)[0]
    shown, info = ActionParser(lights(instructions="observation"), name).reset(options=TASK)
    assert shown == f"{info['instructions']}\n\n{observation}"
    assert "instructions" in ActionParser(lights(), r"do\((.*)\)").reset(options=TASK)[1]
    *_, info = env.step(FORMATS[name].write("press red"))
    assert (info["parsed_action"], info["valid_action"]) == ("press red", True)


def test_a_reply_to_a_hostile_answer_stays_in_the_space() -> None:
    env = ActionParser(lights(), "call")
    env.reset(options=TASK)
    observation, _, _, _, info = env.step('{"name": "' + "x" * 2**20 + '"}')
    assert observation in env.observation_space
    assert observation.startswith("There is no function 'xxx")
    assert not info["valid_action"]
    assert env.step("sing")[0].startswith("There is no JSON object")
    own = ActionParser(lights(), "call", hint="Call act.")
    own.reset(options=TASK)
    assert own.step("sing")[0] == "Call act."


@pytest.mark.parametrize("wrong", ["(", "no group", "(two)(groups)"])
def test_a_wrong_parser_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidOptionError):
        ActionParser(lights(), wrong)


def test_history_keeps_the_goal_and_the_last_turns() -> None:
    env = HistoryText(lights(max_turns=50), turns=1)
    goal = env.reset(options=TASK)[0]
    env.step("press red")
    text = env.step("press white")[0]
    assert text.startswith(goal + "\n\n[... earlier turns left out: 1 ...]\n\n> press white\n")
    assert "press red" not in text


@pytest.mark.parametrize("wrapper", [HistoryText, ChatMessages])
def test_a_snapshot_takes_the_history_along(wrapper: type) -> None:
    env = wrapper(lights(max_turns=50))
    env.reset(options=TASK)
    env.step("press red")
    token = env.snapshot()
    after = env.step("look")
    env.step("press black")
    env.restore(token)
    assert env.step("look") == after


def test_hints_follow_the_state_and_stop_at_the_end() -> None:
    env = AdmissibleActionHints(lights(), leave_out=("press black",))
    observation, _ = env.reset(options=TASK)
    assert observation.endswith("Possible actions: press blue, press green, press red, press white")
    for action in env.unwrapped.oracle():
        observation, *_ = env.step(action)
    assert "Possible actions" not in observation


def test_wrappers_stack() -> None:
    env = ChatMessages(ActionParser(AdmissibleActionHints(lights()), "tag"), system="Play.")
    messages, _ = env.reset(options=TASK)
    messages, *_ = env.step("<action>press red</action>")
    assert messages[2] == {"role": "assistant", "content": "<action>press red</action>"}
    assert "Possible actions" in messages[3]["content"]


class Letters:
    """A tokenizer as `transformers` has them."""

    def tokenize(self, text: str) -> list[str]:
        return list(text)


@pytest.mark.parametrize("tokenizer", [list, Letters(), lambda text: text.encode("ascii")])
def test_tokens_are_limited_by_any_tokenizer(tokenizer: object) -> None:
    env = ObservationLimit(lights(), tokens=5, tokenizer=tokenizer)
    assert env.reset(options=TASK)[0] == "Tur\n[... 60 tokens left out ...]\nff"


@pytest.fixture(scope="module")
def saved_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_a_tokenizer_is_found_by_name_without_torch_and_survives_in_the_spec(saved_tokenizer: Path) -> None:
    env = ObservationLimit(lights(), tokens=5, tokenizer=str(saved_tokenizer))
    wanted = "Tur\n[... 60 tokens left out ...]\nff"
    assert env.reset(options=TASK)[0] == wanted
    assert gymnasium.make(EnvSpec.from_json(env.spec.to_json())).reset(options=TASK)[0] == wanted
    code = (
        f"import sys; sys.path.insert(0, {str(LIGHTS)!r}); import lights, gymnasium; "
        "from textagent_gym.wrappers import ObservationLimit; "
        f"ObservationLimit(lights.LightsEnv(), tokens=5, tokenizer={str(saved_tokenizer)!r}).reset(seed=0); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(
    text=st.text(st.sampled_from("ab \n🙂"), max_size=60), limit=st.integers(2, 20), unit=st.sampled_from([len, None])
)
def test_a_cut_observation_keeps_its_beginning_and_end_within_the_limit(
    text: str, limit: int, unit: Callable[[str], int] | None
) -> None:
    kwargs = {"characters": limit} if unit is len else {"tokens": limit}
    count = unit or (lambda part: len(part.split()))
    env = ObservationLimit(LightsEnv(), **kwargs)
    cut = env._cut(text)
    if count(text) <= limit:
        assert cut == text
    else:
        head, _, rest = cut.partition("\n[... ")
        notice, _, tail = rest.partition(" ...]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert count(head) + count(tail) == limit
        assert notice.startswith(f"{count(text) - limit} ")


@pytest.mark.parametrize("wrong", [{"characters": 1}, {"tokens": 0}, {"tokenizer": list}])
def test_a_wrong_limit_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        ObservationLimit(lights(), **wrong)


@pytest.mark.parametrize("template", ["Look around.", "{action}", "{actions} {}", "{actions", "{{actions}}"])
def test_a_template_without_a_place_for_the_actions_is_refused(template: str) -> None:
    with pytest.raises(InvalidOptionError, match="template must hold"):
        AdmissibleActionHints(lights(), template=template)


@pytest.mark.parametrize("wrapper", [ActionParser, AdmissibleActionHints, HistoryText, ChatMessages, ObservationLimit])
def test_what_changes_texts_refuses_messages(wrapper: type) -> None:
    with pytest.raises(InvalidOptionError, match="not inside"):
        wrapper(ChatMessages(lights()))


def test_hints_and_history_never_outgrow_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LightsEnv, "_describe", lambda self: "x" * 70_000)
    env = AdmissibleActionHints(lights(max_turns=50))
    observation = env.reset(options=TASK)[0]
    assert observation in env.observation_space
    assert observation.endswith("press white")
    told = HistoryText(env)
    told.reset(options=TASK)
    for _ in range(20):
        text, *_ = told.step("y" * 2**20)
        assert text in told.observation_space
        assert text.endswith("press white")
    assert "earlier turns left out" in text
    chat = ChatMessages(lights(max_turns=50))
    chat.reset(options=TASK)
    assert chat.step("y" * 2**21)[0] in chat.observation_space


def test_megabytes_of_half_an_answer_are_parsed_at_once() -> None:
    for parser, part in (
        ("tag", "<action>"),
        ("react", "\n"),
        ("react", "Action: a " + " " * 1000),
        ("last-line", " \n"),
    ):
        env = ActionParser(lights(max_turns=50), parser)
        env.reset(options=TASK)
        started = time.perf_counter()
        env.step(part * (2**20 // len(part)))
        assert time.perf_counter() - started < 5  # Quadratic time would be minutes.


def test_a_penalty_is_taken_once_for_each_invalid_action() -> None:
    env = InvalidActionPenalty(lights(max_turns=50, reward_density="dense"), 0.25)
    env.reset(options=TASK)
    assert env.step("sing")[1] == -0.25
    assert env.step(env.unwrapped.oracle()[0])[1] > 0
    unparsed = InvalidActionPenalty(ActionParser(lights()), 0.25)
    unparsed.reset(options=TASK)
    assert unparsed.step("press red")[1] == -0.25
    with pytest.raises(InvalidOptionError):
        InvalidActionPenalty(lights(), -1.0)


def test_a_snapshot_goes_through_every_wrapper_on_the_way() -> None:
    env = ChatMessages(ActionParser(TimeLimit(HistoryText(lights(max_turns=50)), 4)))
    env.reset(options=TASK)
    env.step("<action>press red</action>")
    token = env.snapshot()
    after = [env.step(f"<action>press {colour}</action>") for colour in ("red", "blue", "red")]
    assert after[-1][3]
    for again in (env, ChatMessages(ActionParser(TimeLimit(HistoryText(lights(max_turns=50)), 4)))):
        again.reset(options={"task_index": 5})
        again.restore(token)
        assert [again.step(f"<action>press {colour}</action>") for colour in ("red", "blue", "red")] == after


def test_functions_save_what_no_method_reaches() -> None:
    env = TimeLimit(HistoryText(lights(max_turns=50)), 9)
    env.reset(options=TASK)
    token = snapshot(env)
    after = env.step("press red")
    restore(env, token)
    assert env.step("press red") == after


def test_a_wrapper_that_cannot_save_what_it_remembers_says_so() -> None:
    env = HistoryText(RecordEpisodeStatistics(lights()))
    env.reset(options=TASK)
    with pytest.raises(UnsupportedOperationError, match="RecordEpisodeStatistics"):
        env.snapshot()
