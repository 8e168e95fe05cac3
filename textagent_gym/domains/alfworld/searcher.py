"""An expert that searches: it knows what is usual in such rooms and what it has read, not where things are.

It reads what any agent reads, and plays by that alone. Its knowledge of rooms is the table `rooms.json`, fitted to the
training games: where things of a kind lie, and which receptacles can be opened. It looks next where finding is most
likely for the turns that looking costs; for one thing hidden in one of several boxes that order is the one with the
least expected cost (Blackwell, in Matula, 1964, "A Periodic Optimal Search", The American Mathematical Monthly 71).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

from textagent_gym.domains.alfworld.engine import PROCESSES, PUT
from textagent_gym.domains.alfworld.game import Dialect
from textagent_gym.domains.alfworld.rooms import PROCESSORS, kind, room_table

_NUMBERS = {"two": 2, "three": 3, "four": 4}
_COUNT = "|".join(_NUMBERS)
_TASK = re.compile(
    r"(?:look at|examine the) (?P<looked_at>\w+) (?:under|with) the (?P<lamp>\w+)"
    rf"|(?P<verb>clean|heat|cool) (?:some|(?P<many>{_COUNT})) (?P<processed>\w+) and put (?:it|them) in (?P<into>\w+)"
    r"|put an? (?P<condition>clean|hot|cool) (?P<ready>\w+) in (?P<home>\w+)"
    rf"|(?:put|find) (?P<number>{_COUNT}) (?P<things>\w+) (?:and put them )?(?:in|on) (?P<place>\w+)"
    r"|put (?:an?|some) (?P<thing>\w+) (?:in|on) (?P<target>\w+)"
)
_ROOM = re.compile(r"Looking quickly around you, you see (.*?)\.")
_ARRIVED = re.compile(r"You arrive at ([a-z]+ \d+)\.")
_INSIDE = re.compile(r"(?:On the|The) ([a-z]+ \d+)(?: is open\. In it)?, you see (.*?)\.$", re.MULTILINE)
_CLOSED = re.compile(r"(?:The |You close the )([a-z]+ \d+)(?: is closed)?\.")
_OPENED = re.compile(r"You open the ([a-z]+ \d+)\.")
_TAKEN = re.compile(r"You pick up the ([a-z]+ \d+) from the ([a-z]+ \d+)\.")
_PUT = re.compile(r"You (?:move|put) the ([a-z]+ \d+) (?:to|in/on) the ([a-z]+ \d+)\.")
_PROCESSED = re.compile(r"You (clean|heat|cool) the ([a-z]+ \d+) using the")
_LIT = re.compile(r"You turn on the ([a-z]+ \d+)\.")
_THING = re.compile(r"\ban? ([a-z]+ \d+)")
_RARE = 1e-3  # Share of what was never seen in the training games.


@dataclass(frozen=True, slots=True)
class Wish:
    """What the task asks for: `count` things of a kind at one receptacle of a kind, or one under a lamp."""

    thing: str
    where: str
    count: int = 1
    condition: str = ""
    lamp: bool = False


def wishes(task: str) -> tuple[Wish, ...]:
    """What a task asks for in words.

    >>> wishes("clean some mug and put it in desk and look at book under the desklamp.")[0]
    Wish(thing='mug', where='desk', count=1, condition='clean', lamp=False)
    """
    asked = []
    for match in _TASK.finditer(task):
        word = match.groupdict()
        if word["lamp"]:
            asked.append(Wish(word["looked_at"], word["lamp"], lamp=True))
        elif word["verb"]:
            count = _NUMBERS.get(word["many"], 1)
            asked.append(Wish(word["processed"], word["into"], count, PROCESSES[word["verb"]]))
        elif word["condition"]:
            asked.append(Wish(word["ready"], word["home"], 1, word["condition"]))
        elif word["number"]:
            asked.append(Wish(word["things"], word["place"], _NUMBERS[word["number"]]))
        else:
            asked.append(Wish(word["thing"], word["target"]))
    return tuple(asked)


@dataclass(slots=True)
class Searcher:
    """Plays one episode; see the module. It may also watch somebody else play, and be asked at any time.

    Args:
        dialect: "move" or "put", as the game speaks.
    """

    dialect: Dialect = "move"
    wishes: tuple[Wish, ...] = ()
    receptacles: tuple[str, ...] = ()
    where: dict[str, str] = field(default_factory=dict)
    """Receptacle in which a thing was seen last."""
    held: str = ""
    here: set[str] = field(default_factory=set)
    """Receptacles known to be within reach."""
    inspected: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    become: dict[str, set[str]] = field(default_factory=dict)
    """What things have become: clean, hot, cool."""
    lit: set[str] = field(default_factory=set)
    vain: set[str] = field(default_factory=set)
    """Commands that did nothing."""
    shares: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind of thing, the share of them that lies in receptacles of a kind."""

    def observe(self, action: str | None, observation: str) -> None:
        """Read what was said: after an action, or at the beginning (`None`)."""
        if action is None:
            self._begin(observation)
        elif not self._read(observation):
            self._failed(action.strip())

    def action(self) -> str:
        """What to do next."""
        for command in self._ideas():
            if command not in self.vain:
                return command
        # Everything has been looked at and nothing is left to try: somebody must have moved something.
        self.inspected.clear()
        self.vain.clear()
        return next(iter(self._search({wish.thing for wish in self.wishes})), "look")

    def _begin(self, observation: str) -> None:
        task = observation.rpartition("Your task is to: ")[2]
        room = _ROOM.search(observation)
        self.wishes = wishes(task)
        self.receptacles = tuple(_THING.findall(room[1])) if room else ()
        self.shares = _shares(Counter(map(kind, self.receptacles)))

    def _read(self, observation: str) -> bool:
        """Take in an observation; `False` if it says nothing of interest."""
        understood = False
        if match := _ARRIVED.search(observation):
            self.here = {match[1]}
            understood = True
        if match := _OPENED.search(observation):
            self._open(match[1])
            understood = True
        if match := _TAKEN.search(observation):
            self.held = match[1]
            self.where.pop(match[1], None)
            return True
        if match := _PUT.search(observation):
            self.held = ""
            self.where[match[1]] = match[2]
            return True
        if match := _PROCESSED.search(observation):
            now = PROCESSES[match[1]]
            gone = {"hot": {"cool"}, "cool": {"hot"}}.get(now, set())
            self.become[match[2]] = (self.become.get(match[2], set()) - gone) | {now}
            return True
        if match := _LIT.search(observation):
            self.lit.add(match[1])
            return True
        for name, things in _INSIDE.findall(observation):
            if name in self.receptacles:
                self._inspect(name, _THING.findall(things))
                if "is open" in observation:
                    self._open(name)
                understood = True
        for name in _CLOSED.findall(observation):
            if name in self.receptacles:
                self.closed.add(name)
                self.opened.discard(name)
                understood = True
        return understood

    def _open(self, name: str) -> None:
        self.opened.add(name)
        self.closed.discard(name)

    def _inspect(self, name: str, things: Iterable[str]) -> None:
        self.inspected.add(name)
        for thing in [thing for thing, place in self.where.items() if place == name]:
            del self.where[thing]
        for thing in things:
            self.where[thing] = name

    def _failed(self, action: str) -> None:
        """Learn from an action that did nothing: going somewhere fails where one stands already."""
        name = action.removeprefix("go to ")
        if action.startswith("go to ") and name in self.receptacles and name not in self.here:
            self.here.add(name)
        else:
            self.vain.add(action)

    def _ideas(self) -> Iterator[str]:
        """Commands worth trying, best first."""
        # What is looked at under a lamp stays in the hand, so that comes last.
        open_wishes = [wish for wish in self.wishes if not wish.lamp and not self._granted(wish)] or self.wishes
        if self.held:
            for wish in open_wishes:
                if kind(self.held) == wish.thing:
                    yield from self._use(wish)
            yield from self._put_down()
        for wish in open_wishes:
            yield from self._fetch(wish)
        yield from self._search({wish.thing for wish in open_wishes})
        yield from self._search(set())

    def _granted(self, wish: Wish) -> bool:
        """Enough things are where they are wanted."""
        settled = Counter(place for thing, place in self.where.items() if self._settled(wish, thing))
        return max(settled.values(), default=0) >= wish.count

    def _settled(self, wish: Wish, thing: str) -> bool:
        """This thing is where the wish wants it, in the condition it wants."""
        fits = kind(thing) == wish.thing and kind(self.where.get(thing, "")) == wish.where
        return fits and (not wish.condition or wish.condition in self.become.get(thing, ()))

    def _use(self, wish: Wish) -> Iterator[str]:
        """Do with what is held what the wish wants."""
        if wish.lamp:
            lamps = [thing for thing in self.where if kind(thing) == wish.where]
            for lamp in sorted(lamps, key=lambda lamp: (self.where[lamp] not in self.here, lamp)):
                yield from self._at(self.where[lamp], f"use {lamp}")
            yield from self._search({wish.where})
        elif wish.condition and wish.condition not in self.become.get(self.held, ()):
            for verb, condition in PROCESSES.items():
                if condition == wish.condition:
                    for name in self._of_kind(PROCESSORS[verb]):
                        yield from self._at(name, f"{verb} {self.held} with {name}")
        else:
            put, to = PUT[self.dialect]
            for name in self._targets(wish):
                yield from self._at(name, f"{put} {self.held}{to}{name}", opened=True)

    def _targets(self, wish: Wish) -> list[str]:
        """Receptacles for the wish; first those where most is settled, then those at hand, then the open ones."""
        settled = Counter(self.where[thing] for thing in self.where if self._settled(wish, thing))
        names = self._of_kind(wish.where)
        return sorted(names, key=lambda name: (-settled[name], name not in self.here, name in self.closed))

    def _fetch(self, wish: Wish) -> Iterator[str]:
        """Take a thing that has been seen."""
        target = self._targets(wish)[:1]
        spots = [(thing, place) for thing, place in self.where.items() if kind(thing) == wish.thing]
        for thing, place in sorted(spots, key=lambda spot: (spot[1] not in self.here, spot[1] in self.closed)):
            if self._settled(wish, thing) and (wish.count == 1 or [place] == target):
                continue  # Several must come together in one receptacle.
            yield from self._at(place, f"take {thing} from {place}", opened=True)

    def _put_down(self) -> Iterator[str]:
        """Get rid of what is held and of no use."""
        put, to = PUT[self.dialect]
        for name in sorted(self.receptacles, key=lambda name: (name not in self.here, name in self.closed)):
            command = f"{put} {self.held}{to}{name}"
            if command not in self.vain:
                yield from self._at(name, command, opened=True)

    def _search(self, things: set[str]) -> Iterator[str]:
        """Look where it is most likely to pay."""
        amounts = Counter(map(kind, self.receptacles))

        def worth(name: str) -> float:
            share = sum(self.shares.get(thing, Counter())[kind(name)] for thing in things) / amounts[kind(name)]
            return (share + _RARE) / self._turns(name)

        unknown = [name for name in self.receptacles if name not in self.inspected]
        for name in sorted(unknown, key=worth, reverse=True):
            yield from self._at(name, f"open {name}" if name in self.closed else f"examine {name}")

    def _turns(self, name: str) -> int:
        """Turns that it takes to look into a receptacle."""
        closed = name in self.closed or (_openable(name) and name not in self.opened)
        return max(1, (name not in self.here) + closed)

    def _at(self, place: str, command: str, *, opened: bool = False) -> Iterator[str]:
        """Get to a receptacle (and open it), then do something there."""
        if command in self.vain:
            return
        if place not in self.here:
            yield f"go to {place}"
        elif opened and place in self.closed:
            yield f"open {place}"
        elif opened and place not in self.inspected and _openable(place):
            yield f"examine {place}"  # It may be closed.
        else:
            yield command

    def _of_kind(self, name: str) -> list[str]:
        return [receptacle for receptacle in self.receptacles if kind(receptacle) == name]


def _openable(name: str) -> bool:
    """Receptacles of this kind can be opened, as far as is known."""
    return bool(room_table()["receptacles"].get(kind(name), {}).get("openable"))


def _shares(receptacles: Counter[str]) -> dict[str, Counter[str]]:
    """Where things of a kind lie in a room with these receptacles: kinds of rooms weighted by how well they fit."""
    rooms = room_table()["rooms"].values()
    fits = []
    for room in rooms:
        total = sum(room["receptacles"].values())
        fits.append(prod((room["receptacles"].get(name, 0) / total) or _RARE for name in receptacles))
    shares: dict[str, Counter[str]] = {}
    for room, fit in zip(rooms, fits, strict=True):
        for thing, places in room["placements"].items():
            there = {place: share for place, share in places.items() if place in receptacles}
            all_shares = sum(there.values())
            for place, share in there.items():
                shares.setdefault(thing, Counter())[place] += share / all_shares * fit / sum(fits)
    return shares
