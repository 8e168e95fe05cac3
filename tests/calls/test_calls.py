"""What a model says, read as an action or as a call of a tool."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from textagent_gym.calls import (
    ActionError,
    Call,
    Parameter,
    Tool,
    parse_block,
    parse_function,
    parse_last_line,
    parse_react,
    parse_tag,
    render_function,
)

LOOK = Tool("look", "Look at lines of a file.", (Parameter("path", "a file"), Parameter("line", "a line", "integer")))
WAIT = Tool("wait", "Do nothing.", (Parameter("reason", "why", required=False),))
TOOLS = (LOOK, WAIT)


@pytest.mark.parametrize("parse", [parse_tag, parse_last_line, parse_react])
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
