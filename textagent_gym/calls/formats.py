"""Formats of a model's answers: how it is told to answer, and where its action stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from textagent_gym.calls.functions import parse_function, render_function
from textagent_gym.calls.tool import ActionError, Call, Parameter, Tool

Format = Callable[[str], str | None]
"""Takes an answer; returns the action, or `None` where the answer has none.

It may raise `ActionError`, whose message says what is wrong.
"""

ACT = Tool("act", "Take one action.", (Parameter("action", "the action, in the words of the world"),))
"""The tool of the format "call", for worlds whose actions are commands."""

_BLOCK = re.compile(r"```(?:bash|sh|shell)?[ \t]*\n(.*?)\n?```", re.DOTALL)
_LABEL = re.compile(r"(Action|Thought|Plan|Reflection)[ \t]*:", re.IGNORECASE)
_AGENTGYM = re.compile(r"Action:\s*([^\n]*)")


def parse_tag(answer: str) -> str | None:
    """The text in the last `<action>...</action>`.

    >>> parse_tag("I need the key. <action> take key </action>")
    'take key'
    """
    # Tag by tag: a pattern for the pair would go through a megabyte of opening tags once for each of them.
    opened, action = None, None
    for tag in re.finditer("<(/?)action>", answer, re.IGNORECASE):
        if not tag[1]:
            opened = tag.end()
        elif opened is not None:
            action = answer[opened : tag.start()].strip()
            opened = None
    return action


def parse_last_line(answer: str) -> str | None:
    """The last line that is not empty."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return lines[-1] if lines else None


def parse_react(answer: str) -> str | None:
    """The text after the last `Action:`, on its line or on the next that is not empty (Yao et al., 2022, "ReAct", arXiv
    2210.03629).

    A line with another label is no action.

    >>> parse_react("Thought: the door is locked.\\nAction: unlock door with key")
    'unlock door with key'
    >>> parse_react("Thought:\\nThe door is locked.\\n\\nAction:\\nunlock door with key")
    'unlock door with key'
    """
    action, awaited = None, False
    for line in map(str.strip, answer.split("\n")):
        label = _LABEL.match(line)
        if label is not None:
            awaited = label[1].lower() == "action"
        content = line if label is None else line[label.end() :].strip()
        if awaited and content:
            action, awaited = content, False
    return action


def parse_agentgym(answer: str) -> str | None:
    """The text after `Action:`, on its line or on the next that is not empty, as AgentGym's clients find it.

    Raises:
        ActionError: there are several.

    >>> parse_agentgym("Thought:\\nThe door is locked.\\n\\nAction:\\nunlock door with key")
    'unlock door with key'
    """
    actions: list[str] = _AGENTGYM.findall(answer)
    if len(actions) > 1:
        raise ActionError(f"There are {len(actions)} actions; write 'Action:' once.")
    return (actions[0].strip() or None) if actions else None


def parse_block(answer: str) -> str:
    """The command in the only code block of an answer; an answer without a block is a command as it stands.

    Raises:
        ActionError: there are several blocks, one that does not end, or no command.

    >>> parse_block("I look around.\\n```bash\\nls\\n```")
    'ls'
    """
    blocks = _BLOCK.findall(answer)
    if len(blocks) > 1:
        raise ActionError(f"There are {len(blocks)} blocks; write one command per turn.")
    if not blocks and "```" in answer:
        raise ActionError("The block does not end; write ```bash, the command, and ``` on lines of their own.")
    command = str(blocks[0] if blocks else answer).strip()
    if not command:
        raise ActionError("There is no command; write one in a block that begins with ```bash.")
    return command


def parse_thinking(answer: str) -> str | None:
    """The last `<action>...</action>` after the thoughts, which `</think>` ends; thoughts may be left out.

    Raises:
        ActionError: the thoughts do not end.

    >>> parse_thinking("<think>Not <action>wait</action>.</think> <action>open door</action>")
    'open door'
    """
    tags = list(re.finditer("<(/?)think>", answer, re.IGNORECASE))
    if not tags:
        return parse_tag(answer)
    if not tags[-1][1]:
        raise ActionError("The thoughts do not end: write </think> after them, then <action>...</action>.")
    return parse_tag(answer[tags[-1].end() :])


def parse_call(answer: str) -> str:
    """The argument of a call of the tool `act`, the first JSON object of the answer.

    Raises:
        ActionError: there is no such call.

    >>> parse_call('It is dark. {"name": "act", "arguments": {"action": "light lamp"}}')
    'light lamp'
    """
    return str(parse_function(answer, (ACT,)).arguments["action"]).strip()


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """A format of answers.

    Attributes:
        find: finds the action.
        write: writes an action in the format, without thoughts; `find` reads it back, if it is one line.
        instructions: text on how to answer, which follows the world's text on how to act.
        hint: reply to an answer in which `find` finds nothing.
    """

    find: Format
    write: Callable[[str], str]
    instructions: str
    hint: str

    def parse(self, answer: str) -> str:
        """The action in an answer.

        Raises:
            ActionError: there is none; the message, which the agent reads, says what is wrong.
        """
        action = self.find(answer)
        if action is None:
            raise ActionError(self.hint)
        return action

    def without_thoughts(self, answer: str) -> str:
        """The answer with its action and nothing else; unchanged where it has no action.

        >>> FORMATS["think"].without_thoughts("<think>It is locked.</think><action>unlock door</action>")
        '<action>unlock door</action>'
        """
        try:
            return self.write(self.parse(answer))
        except ActionError:
            return answer


def _lines(*lines: tuple[str, str]) -> AnswerFormat:
    """A format of labelled lines; the last one holds the action."""
    form = "\n".join(f"{label}: <{content}>" for label, content in (*lines, ("Action", "one action")))
    labels = [f"'{label}: ...'" for label, _ in lines]
    return AnswerFormat(
        parse_react,
        "Action: {}".format,
        f"Answer in this form:\n{form}",
        f"Answer with lines {', '.join(labels)} and 'Action: ...'.",
    )


def _tag(action: str) -> str:
    return f"<action>{action}</action>"


def _call(action: str) -> str:
    return render_function(Call(ACT.name, {"action": action}))


_THOUGHT = ("Thought", "what you think")

FORMATS: dict[str, AnswerFormat] = {
    "tag": AnswerFormat(
        parse_tag,
        _tag,
        "Answer with one action in <action>...</action>; you may think before it.",
        "Answer with <action>...</action>.",
    ),
    "last-line": AnswerFormat(
        parse_last_line,
        str,
        "Write one action on the last line of your answer; you may think before it.",
        "Answer with an action on the last line.",
    ),
    "react": _lines(_THOUGHT),
    "agentgym": AnswerFormat(
        parse_agentgym,
        "Action:\n{}".format,
        "Answer in this form:\nThought:\n<what you think>\n\nAction:\n<one action>",
        "Answer with lines 'Thought:' and 'Action:', each followed by a line with what it is.",
    ),
    "think": AnswerFormat(
        parse_thinking,
        _tag,
        "First think in <think>...</think>, then write one action in <action>...</action>.",
        "There is no action after the thoughts: answer with <think>...</think> and <action>...</action>.",
    ),
    "call": AnswerFormat(
        parse_call,
        _call,
        f"Answer with one call of a function, as a JSON object such as {_call('...')}; you may think before it. "
        f"The function:\n{json.dumps(ACT.schema['function'])}",
        "Answer with a call of the function act.",
    ),
    "plan": _lines(("Plan", "the steps that are left to reach the goal"), _THOUGHT),
    "reflect": _lines(
        ("Reflection", "what the last observation says of your last action, and what to do otherwise"), _THOUGHT
    ),
}
"""By name. "react": Yao et al., 2022, "ReAct" (arXiv 2210.03629); "agentgym": its layout in AgentGym (Xi et al., 2024,
arXiv 2406.04151), with the action on a line of its own; "plan" and "reflect" ask besides for what Xi et al., 2025,
"AgentGym-RL" (arXiv 2509.08755) call long-horizon planning and self-reflection, in words of our own."""
