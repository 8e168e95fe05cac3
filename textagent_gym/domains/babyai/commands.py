"""Actions as text: the primitive ones, and those that walk to what is seen.

A command of the second sort is a list of primitive actions: the shortest walk over cells that are seen and free, and
what is done at its end. Things of one name are numbered from the nearest, as AgentGym numbers them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from textagent_gym.domains.babyai.grid import (
    CLOSED,
    DROP,
    EMPTY,
    FORWARD,
    LEFT,
    LOCKED,
    NOWHERE,
    OPEN,
    PICK_UP,
    RIGHT,
    TOGGLE,
    Seen,
    State,
    view,
)

PRIMITIVE = {
    "turn left": LEFT, "turn right": RIGHT, "move forward": FORWARD, "pick up": PICK_UP, "drop": DROP,
    "toggle": TOGGLE,
}  # fmt: skip
WALKS = ("toggle and go through", "go through", "go to", "pick up")
"""Beginnings of the commands that walk to what is seen."""
DOOR_STATES = {OPEN: "open", CLOSED: "closed", LOCKED: "locked"}


@dataclass(frozen=True, slots=True)
class Named:
    """A thing that is seen.

    Attributes:
        name: name in commands, such as `red ball 1` or `grey closed door 2`.
        thing: number of the thing.
        seen: cell in which it is seen.
    """

    name: str
    thing: int
    seen: Seen


@dataclass(frozen=True, slots=True)
class Command:
    """What a text stands for.

    Attributes:
        actions: primitive actions; empty for a command that cannot be carried out.
        refusal: reason why it cannot; "" where it can.
    """

    actions: tuple[int, ...] = ()
    refusal: str = ""


def name_of(state: State, thing: int) -> str:
    """What a thing is called, without a number."""
    what = state.world.things[thing]
    if what.kind == "door":
        return f"{what.color} {DOOR_STATES[state.doors[thing]]} door"
    return f"{what.color} {what.kind}"


def named_things(state: State, seen: list[Seen]) -> list[Named]:
    """Things that are seen, the nearest first, each with its number."""
    things = sorted((each for each in seen if each.thing >= 0), key=lambda each: abs(each.right) + each.ahead)
    counts: dict[str, int] = {}
    named = []
    for each in things:
        name = name_of(state, each.thing)
        counts[name] = counts.get(name, 0) + 1
        named.append(Named(f"{name} {counts[name]}", each.thing, each))
    return named


def normalize(text: str) -> str:
    """A command in the spelling of this module: upstream's other spellings mean the same.

    >>> normalize("  Pickup red  ball 1"), normalize("go forward")
    ('pick up red ball 1', 'move forward')
    """
    words = " ".join(text.lower().split())
    if words == "go forward":
        return "move forward"
    return f"pick up{words[6:]}" if words == "pickup" or words.startswith("pickup ") else words


def primitive_command(state: State, text: str) -> Command:
    """What a normalized text means in the primitive set."""
    action = PRIMITIVE.get(text)
    if action is None:
        return Command(refusal="That is not an action.")
    refusal = _refusal(state, action)
    return Command(refusal=refusal) if refusal else Command((action,))


def macro_command(state: State, text: str, size: int) -> Command:
    """What a normalized text means in the macro set."""
    if text in PRIMITIVE:
        return primitive_command(state, text)
    for verb in WALKS:
        if text.startswith(f"{verb} "):
            name = text[len(verb) + 1 :]
            seen = view(state, size)
            named = named_things(state, seen)
            for each in named:
                if each.name == name:
                    return _walk(state, verb, each, _walks(state, seen))
            alike = [each.name for each in named if name_of(state, each.thing) == name]
            if alike:
                return Command(refusal=f"Names end with a number: {verb} {' or '.join(alike)}.")
            return Command(refusal=f"You do not see {name[:100]}.")
    return Command(refusal="That is not an action.")


def admissible(state: State, size: int | None) -> dict[str, tuple[int, ...]]:
    """Every command that would do something, with its primitive actions.

    Args:
        state: moment of the episode.
        size: width and depth of the view; `None` for the primitive set.
    """
    commands: dict[str, tuple[int, ...]] = {
        text: (action,) for text, action in PRIMITIVE.items() if not _refusal(state, action)
    }
    if size is None:
        return commands
    seen = view(state, size)
    walks = _walks(state, seen)
    for each in named_things(state, seen):
        for verb in ("go to", "pick up", "go through", "toggle and go through"):
            command = _walk(state, verb, each, walks)
            if command.actions:
                commands[f"{verb} {each.name}"] = command.actions
    return commands


def _refusal(state: State, action: int) -> str:
    """Why a primitive action would change nothing; "" where it would."""
    if action in (LEFT, RIGHT):
        return ""
    thing = state.cells[state.front]
    if action == FORWARD:
        return "" if state.is_free(state.front) else "The way ahead is blocked."
    if action == PICK_UP:
        if thing < 0 or state.world.is_door[thing]:
            return "There is nothing to pick up in front of you."
        return "You already carry something." if state.carrying != NOWHERE else ""
    if action == DROP:
        if state.carrying == NOWHERE:
            return "You carry nothing."
        return "" if thing == EMPTY else "There is no room in front of you to drop it."
    return _toggle_refusal(state, thing)


def _toggle_refusal(state: State, thing: int) -> str:
    if thing < 0 or state.world.things[thing].kind not in ("door", "box"):
        return "There is no door or box in front of you."
    if not state.world.is_door[thing] or state.doors[thing] != LOCKED:
        return ""
    color = state.world.things[thing].color
    held = state.world.things[state.carrying] if state.carrying != NOWHERE else None
    fits = held is not None and held.kind == "key" and held.color == color
    return "" if fits else f"The door is locked: you need to carry a {color} key."


def _walk(state: State, verb: str, target: Named, walks: _Walks) -> Command:
    """The command that walks to a thing and does something there."""
    is_door, door = state.world.is_door[target.thing], state.doors[target.thing]
    cell = target.seen.cell
    if verb == "go through":
        if not is_door or door != OPEN:
            return Command(refusal=f"You cannot go through {target.name}: it is not an open door.")
        walk = walks.onto(cell)
    elif verb == "toggle and go through":
        if not is_door or door == OPEN:
            return Command(refusal=f"You cannot toggle and go through {target.name}: it is not a shut door.")
        refusal = _toggle_refusal(state, target.thing)
        if refusal:
            return Command(refusal=refusal)
        walk = walks.before(cell, (TOGGLE, FORWARD))
    elif verb == "pick up":
        if is_door:
            return Command(refusal=f"You cannot pick up {target.name}.")
        if state.carrying != NOWHERE:
            return Command(refusal="You already carry something.")
        walk = walks.before(cell, (PICK_UP,))
    else:
        walk = walks.before(cell, ())
        if walk == ():
            return Command(refusal=f"You are already in front of {target.name}.")
    if walk is None:
        return Command(refusal=f"You see no free way to {target.name}.")
    return Command(walk)


@dataclass(frozen=True, slots=True)
class _Walks:
    """Shortest walks over what is seen.

    Attributes:
        parents: the pose before each pose (cell, direction), and the action between them.
        facing: first pose that faces a cell.
        standing: first pose in a cell.
    """

    parents: dict[tuple[int, int], tuple[tuple[int, int], int] | None]
    facing: dict[int, tuple[int, int]]
    standing: dict[int, tuple[int, int]]

    def before(self, cell: int, then: tuple[int, ...]) -> tuple[int, ...] | None:
        """The walk that ends in front of a cell, and what is done there."""
        pose = self.facing.get(cell)
        return None if pose is None else (*self._to(pose), *then)

    def onto(self, cell: int) -> tuple[int, ...] | None:
        """The walk that ends in a cell."""
        pose = self.standing.get(cell)
        return None if pose is None else self._to(pose)

    def _to(self, pose: tuple[int, int]) -> tuple[int, ...]:
        actions = []
        while (parent := self.parents[pose]) is not None:
            pose, action = parent
            actions.append(action)
        return tuple(reversed(actions))


def _walks(state: State, seen: list[Seen]) -> _Walks:
    """Breadth first from where the agent is, forward before left before right."""
    free = {each.cell for each in seen if each.thing == EMPTY or (each.thing >= 0 and state.is_free(each.cell))}
    steps = state.world.steps
    start = (state.agent, state.direction)
    parents: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {start: None}
    facing: dict[int, tuple[int, int]] = {}
    standing: dict[int, tuple[int, int]] = {}
    queue = deque([start])
    while queue:
        pose = queue.popleft()
        cell, direction = pose
        ahead = cell + steps[direction]
        facing.setdefault(ahead, pose)
        standing.setdefault(cell, pose)
        left, right = (cell, (direction - 1) % 4), (cell, (direction + 1) % 4)
        if ahead in free and (ahead, direction) not in parents:
            parents[ahead, direction] = (pose, FORWARD)
            queue.append((ahead, direction))
        if left not in parents:
            parents[left] = (pose, LEFT)
            queue.append(left)
        if right not in parents:
            parents[right] = (pose, RIGHT)
            queue.append(right)
    return _Walks(parents, facing, standing)
