"""What the policy reads before an action: its context, continued or begun anew, as the memory of the dialogue says.

    o: observation, a: answer, A: answer without its thoughts, |: a context is begun anew, as a row of its own

    whole                o1 a1 o2 a2 o3 a3 o4 a4
    no-thoughts          o1 a1 | o1 A1 o2 a2 | o1 A1 o2 A2 o3 a3 | o1 A1 o2 A2 o3 A3 o4 a4
    window, 1 turn       o1 a1 o2 a2 | (o1 o2) a2 o3 a3 | (o1 o3) a3 o4 a4
    turn, 1 turn         o1 a1 | (o1 A1 o2) a2 | (o1 A2 o3) a3 | (o1 A3 o4) a4        (...): one message

The first observation always stays, because it states the goal. Where earlier turns are left out, a note says how many.
Where a message holds several observations, only the newest keeps its list of admissible actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baselines.policy.chat import ChatFormat, Message
from baselines.rollout.trajectory import Turn
from textagent_gym.texts import cut_middle
from textagent_gym.wrappers import without_hints

_SHORT = 200
"""Largest number of characters per action and per observation of an earlier turn in the message of "turn"."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the policy reads before an action.

    Attributes:
        ids: ids that are added to what it has read.
        fresh: whether a context is begun anew with these ids.
        length: number of tokens of the whole context.
        shown: number of earlier turns in it.
    """

    ids: tuple[int, ...]
    fresh: bool
    length: int
    shown: int


def first_context(chat: ChatFormat, observation: str, instructions: str = "") -> Context:
    """The context of an episode's first action."""
    return _anew([Message(role="user", content=observation)], 0, chat, instructions)


def next_context(
    chat: ChatFormat, turns: Sequence[Turn], observation: str, *, instructions: str, before: Context, room: int
) -> Context:
    """The context of the action after some turns.

    Args:
        chat: chat template and dialogue.
        turns: all earlier turns of the episode, at least one.
        observation: what followed the last of them.
        instructions: the environment's instructions.
        before: context of the last of them.
        room: largest number of tokens that leaves room for an action. "window" and "turn" show fewer turns where those
            asked for do not fit; whether the context fits then is the caller's to check.
    """
    dialogue = chat.dialogue
    grown = _grown(chat, turns[-1], observation, before)
    if dialogue.memory == "whole":
        return grown
    if dialogue.memory == "no-thoughts":
        answers = [dialogue.without_thoughts(turn.text) for turn in turns]
        if answers[-1] == turns[-1].text:
            return grown
        return _anew(_messages(turns, answers, observation), len(turns), chat, instructions)
    most = min(dialogue.memory_turns, len(turns))
    if dialogue.memory == "window" and grown.shown <= most and grown.length <= room:
        return grown
    for shown in range(most, -1, -1):
        messages = _window(turns, observation, shown)
        if dialogue.memory == "turn":
            messages = [_summary(chat, turns, observation, shown)]
        context = _anew(messages, shown, chat, instructions)
        if context.length <= room:
            break
    return context


def _grown(chat: ChatFormat, turn: Turn, observation: str, before: Context) -> Context:
    """The context of a turn, its action, and a further observation."""
    ids = chat.following(observation)
    if turn.action[-1] != chat.end_id:
        # The action was cut before its end token; the template needs one, which nobody sampled.
        ids = [chat.end_id, *ids]
    return Context(tuple(ids), False, before.length + len(turn.action) + len(ids), before.shown + 1)


def _anew(messages: list[Message], shown: int, chat: ChatFormat, instructions: str) -> Context:
    ids = chat.conversation(messages, instructions)
    return Context(tuple(ids), True, len(ids), shown)


def _messages(turns: Sequence[Turn], answers: Sequence[str], observation: str) -> list[Message]:
    """Observations as user and answers as assistant, in turn, ending with an observation."""
    messages = []
    for turn, answer in zip(turns, answers, strict=True):
        messages += [Message(role="user", content=turn.observation), Message(role="assistant", content=answer)]
    return [*messages, Message(role="user", content=observation)]


def _window(turns: Sequence[Turn], observation: str, shown: int) -> list[Message]:
    """The last turns as they were; the goal stands in the first message."""
    kept = turns[len(turns) - shown :]
    first, *rest = _messages(kept, [turn.text for turn in kept], observation)
    if shown == len(turns):
        return [first, *rest]
    content = "\n\n".join((without_hints(turns[0].observation), _left_out(len(turns) - shown), first["content"]))
    return [Message(role="user", content=content), *rest]


def _summary(chat: ChatFormat, turns: Sequence[Turn], observation: str, shown: int) -> Message:
    """The goal, the last actions with what followed them, in short, and the observation."""
    replies = [*(turn.observation for turn in turns[1:]), observation]
    parts = [without_hints(turns[0].observation)]
    if shown < len(turns):
        parts.append(_left_out(len(turns) - shown))
    for number in range(len(turns) - shown, len(turns)):
        action = cut_middle(chat.dialogue.action(turns[number].text), _SHORT)
        last = number == len(turns) - 1
        reply = replies[number] if last else cut_middle(without_hints(replies[number]), _SHORT)
        parts.append(f"> {action}\n{reply}")
    if not shown:
        parts.append(observation)
    return Message(role="user", content="\n\n".join(parts))


def _left_out(turns: int) -> str:
    return f"[... earlier turns left out: {turns} ...]"
