"""The native engine: ALFWorld's rules and text without a planner, a parser or a compiler.

Reference: `textworld.envs.pddl.PddlEnv` (TextWorld 1.7) with ALFWorld 0.4.2's `AlfredDemangler`, on the domain and
grammar of the official games. What it prints, what it admits and when it is won is the same, oddities included:

- Before the first move, `look` sees nothing, though the first observation lists all receptacles.
- Going to a receptacle in front of which one stands already does nothing.
- Only what is held can be examined, other than receptacles.
- Something taken out and put down elsewhere at the same place lies "next to" the first receptacle too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textagent_gym.domains.alfworld.game import Game, Goal

NOTHING_HAPPENS = "Nothing happens."

_HELP = """\
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
{put}  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""
_HELP_PUT = {
    "move": "  move (object) to (receptacle):  place an object in or on a receptacle\n",
    "put": "  put (object) in/on (receptacle):  place an object in or on a receptacle\n",
}
PUT = {"move": ("move", " to "), "put": ("put", " in/on ")}
PROCESSES = {"clean": "clean", "heat": "hot", "cool": "cool"}
_OPPOSITE = {"hot": "cool", "cool": "hot"}


class State:
    """Where everything is. `copy` takes about a microsecond.

    Attributes:
        place: number of the place where the agent is.
        held: number of the object in the agent's hand, or -1.
        opened: receptacles that are open, as bits.
        contents: objects in each receptacle.
        around: objects at each place.
        taken: objects that have been taken out of each receptacle and not been put back.
        marked: objects that are clean, hot, cool or sliced, by condition.
        on: objects that have been used.
        seen: objects that the agent has been told of; it changes no text.
    """

    __slots__ = ("around", "contents", "game", "held", "marked", "on", "opened", "place", "seen", "taken")

    def __init__(self, game: Game) -> None:
        self.game = game
        self.place = game.start
        self.held = -1
        self.opened = game.opened
        self.contents = list(game.contents)
        self.around = list(game.around)
        self.taken = [0] * len(game.contents)
        self.marked = dict(game.marked)
        self.on = 0
        self.seen = 0

    def copy(self) -> State:
        """An independent copy."""
        other = State.__new__(State)
        other.game, other.place, other.held, other.opened = self.game, self.place, self.held, self.opened
        other.contents, other.around = self.contents.copy(), self.around.copy()
        other.taken, other.marked = self.taken.copy(), self.marked.copy()
        other.on, other.seen = self.on, self.seen
        return other

    def key(self, *, with_seen: bool) -> tuple[object, ...]:
        """All that decides what will be said; `with_seen` also what decides milestones."""
        wanted = 0
        for goal in self.game.goals:
            wanted |= goal.objects
        world = (self.place, self.held, self.opened, *self.contents, *self.around, *self.taken, self.on)
        return (*world, *sorted(self.marked.items()), self.seen & wanted if with_seen else None)

    def introduction(self) -> str:
        """What is said at the beginning."""
        game = self.game
        if game.here[self.place]:
            seen = self._look()
        else:
            seen = _MIDDLE.format(_join([f"a {name}" for name in game.receptacles]))
        return f"-= Welcome to TextWorld, ALFRED! =-\n\n{seen}\n\nYour task is to: {game.task}"

    @property
    def won(self) -> bool:
        """All goals hold now."""
        return all(map(self.holds, self.game.goals))

    def milestones(self) -> int:
        """How many of the goals' milestones (see `Goal.milestones`) hold now."""
        return sum(map(self._reached, self.game.goals))

    def _reached(self, goal: Goal) -> int:
        if goal.kind == "light":
            return bool(goal.objects & self.seen) + bool(goal.objects & self.on)
        stages: list[list[int]] = [[] for _ in goal.receptacles or (-1,)]
        for number in bits(goal.objects & self.seen):
            conditions = sum(self.marked[condition] >> number & 1 for condition in goal.conditions)
            ready = conditions == len(goal.conditions)
            for receptacle, reached in zip(goal.receptacles or (-1,), stages, strict=True):
                placed = ready and receptacle >= 0 and self.contents[receptacle] >> number & 1
                reached.append(1 + conditions + (2 if placed else self.held == number))
        return max((sum(sorted(reached)[-goal.count :]) for reached in stages), default=0)

    def holds(self, goal: Goal) -> bool:
        """A goal holds now."""
        objects = goal.objects
        for condition in goal.conditions:
            objects &= self.marked[condition]
        if goal.kind == "place":
            return any((self.contents[r] & objects).bit_count() >= goal.count for r in goal.receptacles)
        if goal.kind == "hold":
            return self.held >= 0 and bool(objects >> self.held & 1)
        lit = objects & self.on
        return any(self.contents[r] & lit for r in self.game.here[self.place])

    def reachable(self, receptacle: int) -> bool:
        """One can take from it and put into it: it is here, and open if it can be closed."""
        bit = 1 << receptacle
        return self.game.places[receptacle] == self.place and not (self.game.openable & bit & ~self.opened)

    def commands(self) -> tuple[str, ...]:
        """Everything that would be understood now, sorted."""
        game, place, held = self.game, self.place, self.held
        commands = list(_travels(game, place))
        for receptacle in game.here[place]:
            name, bit = game.receptacles[receptacle], 1 << receptacle
            contents = self.contents[receptacle]
            accessible = True
            if game.openable & bit:
                accessible = bool(self.opened & bit)
                commands.append(f"{'close' if accessible else 'open'} {name}")
            if accessible and held < 0:
                commands += [f"take {game.objects[o]} from {name}" for o in bits(contents & game.able["pickup"])]
            commands += [f"use {game.objects[o]}" for o in bits(contents & game.able["light"])]
            if held >= 0:
                object_bit, thing = 1 << held, game.objects[held]
                if accessible and game.accepts[receptacle] & object_bit:
                    put, to = PUT[game.dialect]
                    commands.append(f"{put} {thing}{to}{name}")
                for verb, condition in PROCESSES.items():
                    if game.uses[condition] & bit and game.able[condition] & object_bit:
                        commands.append(f"{verb} {thing} with {name}")
        if held >= 0:
            thing = game.objects[held]
            commands.append(f"examine {thing}")
            if game.able["knife"] >> held & 1:
                sliceable = self.around[place] & game.able["sliced"]
                commands += [f"slice {game.objects[o]} with {thing}" for o in bits(sliceable)]
        commands.sort()
        return tuple(dict.fromkeys(commands))

    def step(self, command: str) -> str | None:
        """Do what a command says; returns what is said, or `None` if it is not admissible now."""
        verb, _, rest = command.partition(" ")
        action = _ACTIONS.get(verb)
        if action is None or (verb in ("move", "put") and verb != self.game.dialect):
            return None
        return action(self, rest)

    def _look_command(self, rest: str) -> str | None:
        return None if rest else self._look()

    def _look(self) -> str:
        game = self.game
        here = game.here[self.place]
        if not here:
            return _MIDDLE.format("nothing")
        beside = [f"a {game.objects[o]}" for o in bits(self.around[self.place]) for r in here if self.taken[r] >> o & 1]
        facing = _join([game.receptacles[r] for r in here])
        return f"You are facing the {facing}. Next to it, you see {_join(beside)}."

    def _inventory(self, rest: str) -> str | None:
        if rest:
            return None
        if self.held < 0:
            return "You are not carrying anything."
        return f"You are carrying: a {self.game.objects[self.held]}."

    def _help(self, rest: str) -> str | None:
        return None if rest else _HELP.format(put=_HELP_PUT[self.game.dialect])

    def _go(self, rest: str) -> str | None:
        if not rest.startswith("to "):
            return None
        receptacle = self.game.receptacle_of.get(rest[3:])
        if receptacle is None or self.game.places[receptacle] == self.place:
            return None
        self.place = self.game.places[receptacle]
        return f"You arrive at {rest[3:]}. {self._inspect(receptacle)}"

    def _open(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is None or not self.game.openable & ~self.opened & 1 << receptacle:
            return None
        self.opened |= 1 << receptacle
        return f"You open the {rest}. {self._inspect(receptacle)}"

    def _close(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is None or not self.game.openable & self.opened & 1 << receptacle:
            return None
        self.opened &= ~(1 << receptacle)
        return f"You close the {rest}."

    def _take(self, rest: str) -> str | None:
        thing, _, name = rest.partition(" from ")
        held, receptacle = self.game.object_of.get(thing), self.game.receptacle_of.get(name)
        if held is None or receptacle is None or self.held >= 0 or not self.reachable(receptacle):
            return None
        bit = 1 << held
        if not self.contents[receptacle] & self.game.able["pickup"] & bit:
            return None
        self.contents[receptacle] &= ~bit
        self.taken[receptacle] |= bit
        self.around[self.place] &= ~bit
        self.held = held
        return f"You pick up the {thing} from the {name}."

    def _put(self, rest: str) -> str | None:
        verb, to = PUT[self.game.dialect]
        thing, _, name = rest.partition(to)
        receptacle = self.game.receptacle_of.get(name)
        if receptacle is None or not self._holding(thing) or not self.reachable(receptacle):
            return None
        bit = 1 << self.held
        if not self.game.accepts[receptacle] & bit:
            return None
        self.contents[receptacle] |= bit
        self.taken[receptacle] &= ~bit
        self.around[self.place] |= bit
        self.held = -1
        return f"You {verb} the {thing}{to}the {name}."

    def _process(self, verb: str, rest: str) -> str | None:
        condition = PROCESSES[verb]
        thing, _, name = rest.partition(" with ")
        receptacle = self._here(name)
        if receptacle is None or not self._holding(thing) or not self.game.uses[condition] >> receptacle & 1:
            return None
        bit = 1 << self.held
        if not self.game.able[condition] & bit:
            return None
        self.marked[condition] |= bit
        if condition in _OPPOSITE:
            self.marked[_OPPOSITE[condition]] &= ~bit
        return f"You {verb} the {thing} using the {name}."

    def _slice(self, rest: str) -> str | None:
        thing, _, knife = rest.partition(" with ")
        target = self.game.object_of.get(thing)
        if target is None or not self._holding(knife) or not self.game.able["knife"] >> self.held & 1:
            return None
        if not self.around[self.place] & self.game.able["sliced"] & 1 << target:
            return None
        self.marked["sliced"] |= 1 << target
        return f"You sliced the {thing} with the {knife}."

    def _use(self, rest: str) -> str | None:
        target = self.game.object_of.get(rest)
        if target is None or not self.game.able["light"] >> target & 1:
            return None
        if not any(self.contents[r] >> target & 1 for r in self.game.here[self.place]):
            return None
        self.on |= 1 << target
        return f"You turn on the {rest}."

    def _examine(self, rest: str) -> str | None:
        receptacle = self._here(rest)
        if receptacle is not None:
            return self._inspect(receptacle)
        return self._describe() if self._holding(rest) else None

    def _here(self, name: str) -> int | None:
        """The receptacle of that name, if the agent stands before it."""
        receptacle = self.game.receptacle_of.get(name)
        return receptacle if receptacle is not None and self.game.places[receptacle] == self.place else None

    def _holding(self, name: str) -> bool:
        return self.held >= 0 and self.game.objects[self.held] == name

    def _inspect(self, receptacle: int) -> str:
        game = self.game
        name, bit = game.receptacles[receptacle], 1 << receptacle
        if game.openable & bit & ~self.opened:
            return f"The {name} is closed."
        contents = self.contents[receptacle]
        self.seen |= contents
        seen = _join([f"a {game.objects[o]}" for o in bits(contents)])
        if game.openable & bit:
            return f"The {name} is open. In it, you see {seen}."
        return f"On the {name}, you see {seen}."

    def _describe(self) -> str:
        """What the held object looks like."""
        game, held = self.game, self.held
        name = game.objects[held]
        if game.able["receptacle"] >> held & 1:
            seen = _join([f"a {game.objects[o]}" for o in bits(game.inside.get(held, 0))])
            return f"This is a normal {name}. In it, you see {seen}."
        clean, hot, cool, sliced = (self.marked[c] >> held & 1 for c in ("clean", "hot", "cool", "sliced"))
        if sliced and (clean or hot or cool):
            marks = ["hot"] if hot else ["cool"] if cool else []
            return f"This is a {' and '.join([*marks, 'clean'] if clean else marks)} sliced {name}."
        if clean and (hot or cool):
            return f"This is a {'hot' if hot else 'cool'} and clean {name}."
        if hot or clean or cool:
            return f"This is a {'hot' if hot else 'clean' if clean else 'cold'} {name}."
        if game.able["light"] & self.on & 1 << held:
            return f"This {name} is on."
        if game.able["sliced"] >> held & sliced:
            return f"This is a sliced {name}."
        return f"There's nothing special about {name}."


_MIDDLE = "You are in the middle of a room. Looking quickly around you, you see {}."

_ACTIONS: dict[str, Callable[[State, str], str | None]] = {
    "look": State._look_command,
    "inventory": State._inventory,
    "help": State._help,
    "go": State._go,
    "open": State._open,
    "close": State._close,
    "take": State._take,
    "move": State._put,
    "put": State._put,
    "examine": State._examine,
    "use": State._use,
    "clean": lambda state, rest: state._process("clean", rest),
    "heat": lambda state, rest: state._process("heat", rest),
    "cool": lambda state, rest: state._process("cool", rest),
    "slice": State._slice,
}


def _travels(game: Game, place: int) -> list[str]:
    """The commands that are admissible at a place whatever has happened there, sorted."""
    known = game.travels.get(place)
    if known is None:
        go = [f"go to {name}" for r, name in enumerate(game.receptacles) if game.places[r] != place]
        examine = [f"examine {game.receptacles[r]}" for r in game.here[place]]
        known = game.travels[place] = sorted([*go, *examine, "help", "inventory", "look"])
    return known


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, upward."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _join(names: list[str]) -> str:
    """A list as upstream writes it."""
    if len(names) < 2:
        return names[0] if names else "nothing"
    return f"{', '.join(names[:-1])}, and {names[-1]}"
