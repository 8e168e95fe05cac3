"""What a model says, read as an action or as a call of a tool."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textagent_gym.calls import (
    FORMATS,
    ActionError,
    Call,
    Parameter,
    Tool,
    parse_agentgym,
    parse_block,
    parse_function,
    parse_last_line,
    parse_react,
    parse_tag,
    parse_thinking,
    render_function,
)

LOOK = Tool("look", "Look at lines of a file.", (Parameter("path", "a file"), Parameter("line", "a line", "integer")))
WAIT = Tool("wait", "Do nothing.", (Parameter("reason", "why", required=False),))
TOOLS = (LOOK, WAIT)


@pytest.mark.parametrize("parse", [parse_tag, parse_last_line, parse_react, parse_agentgym])
@pytest.mark.parametrize("answer", ["", " \n\t\n"])
def test_an_answer_of_nothing_holds_no_action(parse: Callable[[str], str | None], answer: str) -> None:
    assert parse(answer) is None


@pytest.mark.parametrize(
    ("parse", "answer", "action"),
    [
        (parse_tag, "<action>a</action><action> b </action>", "b"),
        (parse_tag, "<action>a<action>b</action></action>", "b"),
        (parse_tag, "</action>a<action>", None),
        (parse_last_line, "a\n  b \n\n", "b"),
        (parse_react, "Action: a\nAction: b\nThought: c", "b"),
        (parse_react, "Action: a\nAction:", "a"),
        (parse_react, "My next Action: a", None),
        (parse_react, "Action:\nThought: a", None),
        (parse_react, "Action:\nAction: a", "a"),
        (parse_react, "Action: a\nb", "a"),
        (parse_react, "action :\r\n \r\n a \r\nb", "a"),
        (parse_react, "Action: a\nAction:\nPlan: b", "a"),
        (parse_agentgym, "So, my next Action: a\nb", "a"),
        (parse_agentgym, "Action:\n\n a \nb", "a"),
        (parse_agentgym, "action: a", None),
        (parse_block, "see:\n```bash\nls\npwd\n```\nso", "ls\npwd"),
        (parse_block, " ls ", "ls"),
    ],
)
def test_the_last_action_of_an_answer_counts(
    parse: Callable[[str], str | None], answer: str, action: str | None
) -> None:
    assert parse(answer) == action


@pytest.mark.parametrize(
    ("answer", "because"),
    [("```\na\n```\n```\nb\n```", "2 blocks"), ("```bash\na", "does not end"), ("```\n\n```", "no command")],
)
def test_a_block_that_is_not_one_command_is_refused(answer: str, because: str) -> None:
    with pytest.raises(ActionError, match=because):
        parse_block(answer)


@pytest.mark.parametrize(
    "text",
    [
        'I look. {"name": "look", "arguments": {"path": "{a}", "line": 3}} {"name": "wait"}',
        '{"function": {"name": "look", "arguments": "{\\"path\\": \\"{a}\\", \\"line\\": 3}"}}',
        render_function(Call("look", {"path": "{a}", "line": 3})),
    ],
)
def test_the_first_object_of_a_text_is_the_call(text: str) -> None:
    assert parse_function(text, TOOLS) == Call("look", {"path": "{a}", "line": 3})
    assert parse_function('{"name": "wait"}', TOOLS) == Call("wait", {})
    assert parse_function('{"name": "wait", "arguments": ""}', TOOLS) == Call("wait", {})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("look", "no JSON object"),
        ("look 5", "no JSON object"),
        ('{"name": "look"', "no JSON object"),
        ('{"name": "fly"}', "no function 'fly'; there are look, wait"),
        ('{"name": ["look"]}', "no function"),
        ("{}", "no function None"),
        ('{"name": "wait", "arguments": "x"}', "not a JSON object"),
        ('{"name": "wait", "arguments": [1]}', "not a JSON object"),
        ('{"name": "look", "arguments": {"path": "a"}}', "look needs line"),
        ('{"name": "look", "arguments": {"path": 1, "line": 1}}', "path of look must be a string"),
        ('{"name": "look", "arguments": {"path": "a", "line": true}}', "line of look must be a whole number"),
        ('{"name": "look", "arguments": {"path": "a", "line": 1000000000}}', "must be a whole number"),
        ('{"name": "look", "arguments": {"path": "a", "line": 1, "b": 1, "a": 2}}', "look has no a, b; it has path"),
    ],
)
def test_what_is_no_call_of_a_tool_is_refused_in_words(text: str, because: str) -> None:
    with pytest.raises(ActionError, match=because):
        parse_function(text, TOOLS)


def test_whole_numbers_have_nine_digits_at_most() -> None:
    line = LOOK.parameters[1]
    assert line.accepts(999_999_999)
    assert line.accepts(-999_999_999)
    assert not line.accepts(-1_000_000_000)


def test_the_schema_of_a_tool_is_an_openai_function() -> None:
    assert json.loads(json.dumps(LOOK.schema)) == {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look at lines of a file.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "a file"},
                    "line": {"type": "integer", "description": "a line"},
                },
                "required": ["path", "line"],
                "additionalProperties": False,
            },
        },
    }
    assert WAIT.schema["function"]["parameters"]["required"] == []


PIECES = ["<think>", "</think>", "<action>", "</action>", "Action:", "Thought: ", "\n", " ", "{", "}", '"', "\\ud800"]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(), max_size=12).map("".join)


@pytest.mark.parametrize("name", FORMATS)
@given(answer=HOSTILE)
def test_any_answer_is_an_action_or_is_refused_in_words(name: str, answer: str) -> None:
    form = FORMATS[name]
    bare = form.without_thoughts(answer)
    try:
        action = form.parse(answer)
    except ActionError:
        assert bare == answer
    else:
        assert form.parse(bare) == action


@pytest.mark.parametrize("name", FORMATS)
@given(action=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1))
def test_what_a_format_writes_it_reads(name: str, action: str) -> None:
    action = " ".join(action.split()).replace("<", "") or "look"
    written = FORMATS[name].write(action)
    assert FORMATS[name].parse(written) == action
    assert FORMATS[name].without_thoughts(written) == written


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("tag", "I look. <action>look</action>"),
        ("last-line", "I look.\nlook"),
        ("react", "Thought: I look.\nAction: look"),
        ("think", "<think>Not <action>wait</action>.</think>\n<action>look</action>"),
        ("think", "Not <action>wait</action>.</think> <action>look</action>"),  # The template opened the thoughts.
        ("call", 'I look. {"name": "act", "arguments": {"action": "look"}}'),
        ("call", '<tool_call>\n{"name": "act", "arguments": {"action": "look"}}\n</tool_call>'),
        ("plan", "Plan: look, then go.\nThought: I look.\nAction: look"),
        ("reflect", "Reflection: it was dark.\nThought: I look.\nAction: look"),
        ("agentgym", "Thought: I look.\nAction: look"),
        *((name, "Thought:\nI look around.\n\nAction:\nlook") for name in ("react", "agentgym", "plan", "reflect")),
    ],
)
def test_a_format_keeps_the_action_and_drops_the_thoughts(name: str, answer: str) -> None:
    assert FORMATS[name].parse(answer) == "look"
    bare = FORMATS[name].without_thoughts(answer)
    assert len(bare) < len(answer)
    assert bare == FORMATS[name].write("look")


@pytest.mark.parametrize(
    ("name", "answer", "because"),
    [
        ("think", "<think>I look. <action>look</action>", "thoughts do not end"),
        ("think", "<think>I look. <action>look</action></think>", "no action after the thoughts"),
        ("think", "look", "no action after the thoughts"),
        ("call", "look", "no JSON object"),
        ("call", '{"name": "look", "arguments": {}}', "no function 'look'; there are act"),
        ("call", '{"name": "act", "arguments": {}}', "act needs action"),
        ("plan", "Plan: look.", "'Plan: ...', 'Thought: ...' and 'Action: ...'"),
        ("agentgym", "look", "'Thought:' and 'Action:'"),
        ("agentgym", "Action:\nlook\nAction:\nwait", "There are 2 actions"),
        ("reflect", "look", "'Reflection: ...', 'Thought: ...' and 'Action: ...'"),
    ],
)
def test_an_answer_without_an_action_is_told_what_is_wrong(name: str, answer: str, because: str) -> None:
    with pytest.raises(ActionError, match=because):
        FORMATS[name].parse(answer)


@pytest.mark.parametrize(
    "part", ["<think>", "</think>", "<think><action>", '{"a":', "[", "Action: ", "Action:\n", "Action:", "\n"]
)
def test_megabytes_of_half_an_answer_are_read_at_once(part: str) -> None:
    for form in FORMATS.values():
        started = time.perf_counter()
        form.without_thoughts(part * (2**20 // len(part)))
        assert time.perf_counter() - started < 5  # Quadratic time would be minutes.


def test_thoughts_hold_no_action() -> None:
    assert parse_thinking("<THINK>a</THINK><think>b</think><action>c</action>") == "c"


@pytest.mark.parametrize(
    "asked", ["{}", '{{"name": "write", "arguments": {}}}', '{{"name": "write", "arguments": "{}"}}']
)
@pytest.mark.parametrize("levels", [101, 900, 100_000])
def test_what_is_nested_deeply_is_no_call_however_deep_the_stack_is(asked: str, levels: int) -> None:
    text = asked.format("[" * levels + "]" * levels)
    said = {asked_at(depth, text) for depth in (0, 300)}
    assert len(said) == 1


def asked_at(depth: int, text: str) -> str:
    if depth:
        return asked_at(depth - 1, text)
    with pytest.raises(ActionError) as error:
        parse_function(text, [Tool("write", "Write.")])
    return str(error.value)
