"""The native engine of TextWorld beside the compiled games, command by command.

    python -m benchmarks.textworld_native --out differences.jsonl

Plays both engines with the same commands in games of every kind and prints how many steps were compared and how many
agreed, for each class of commands. What is compared is the whole printed text, the number of actions that succeeded,
the facts that hold (so the admissible commands too), and whether the game is won or lost. After a difference both
engines begin the game again. Games that have been compared stand in the file; a stopped run goes on where it was.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.progress import track

from textagent_gym.domains.textworld import store
from textagent_gym.domains.textworld.commands import listed_commands, playable
from textagent_gym.domains.textworld.engines import Native, ZMachine
from textagent_gym.domains.textworld.specs import make_spec
from textagent_gym.domains.textworld.store import StoredGame


@dataclass(frozen=True)
class Config:
    """What is compared."""

    out: Path = Path("textworld-native.jsonl")
    """A line for each game that has been compared."""
    games: int = 2
    """Games of each kind."""
    first: int = 0
    """Index of the first game of each kind."""
    steps: int = 2_400
    """Commands in each game."""
    kinds: tuple[str, ...] = ()
    """Kinds of games to be played; all if none are given."""
    examples: int = 30
    """Differences that are printed."""


KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("custom", {"rooms": 2, "objects": 3, "quest_length": 4}),
    ("custom", {"rooms": 4, "objects": 6, "quest_length": 8}),
    ("custom", {"rooms": 8, "objects": 12, "quest_length": 12}),
    ("custom", {"rooms": 12, "objects": 30, "quest_length": 6, "quest_breadth": 2}),
    ("custom", {"rooms": 6, "objects": 20, "quest_length": 6, "include_adj": True, "entity_numbering": True}),
    ("custom", {"rooms": 5, "objects": 20, "quest_length": 5, "blend_descriptions": True, "parallel_quests": 2}),
    ("custom", {"rooms": 4, "objects": 10, "quest_length": 5, "theme": "basic"}),
    ("custom", {"rooms": 3, "objects": 15, "quest_length": 3, "only_last_action": True, "blend_instructions": True}),
    ("simple", {}),
    ("simple", {"rewards": "dense"}),
    ("simple", {"rewards": "balanced", "test": True}),
    ("cooking", {"recipe": 1, "take": 1}),
    ("cooking", {"recipe": 1, "take": 1, "open": True, "cook": True, "cut": True}),
    ("cooking", {"recipe": 3, "take": 2, "rooms": 6, "open": True, "cook": True, "cut": True, "drop": True}),
    ("cooking", {"recipe": 5, "take": 5, "rooms": 12, "open": True, "cook": True, "cut": True}),
    ("cooking", {"recipe": 2, "take": 2, "rooms": 9, "cook": True, "drop": True}),
    ("coin_collector", {"level": 3}),
    ("coin_collector", {"level": 110}),
    ("coin_collector", {"level": 210}),
    ("treasure_hunter", {"level": 5}),
    ("treasure_hunter", {"level": 15}),
    ("treasure_hunter", {"level": 28}),
)


def _forms(text: str) -> tuple[str, ...]:
    """Forms of commands, separated by semicolons."""
    return tuple(" ".join(form.split()) for form in text.split(";"))


GRAMMAR = _forms("""
    go {way}; look; inventory; examine {a}; take {a}; drop {a}; open {a}; close {a}; eat {a}; take {a} from {b};
    put {a} on {b}; insert {a} into {b}; lock {a} with {b}; unlock {a} with {b}
""")
COOKING_GRAMMAR = _forms("""
    cook {a} with {b}; slice {a} with {b}; dice {a} with {b}; chop {a} with {b}; prepare meal; drink {a}
""")
SYNONYMS = _forms("""
    {way}; {w}; walk {way}; run {w}; l; i; inv; x {a}; look at {a}; check the {a}; get {a}; pick up {a};
    pick the {a} up; get the {a} from the {b}; take the {a} off {b}; discard {a}; throw {a}; put down {a};
    put the {a} down; put {a} onto the {b}; put {a} in {b}; drop {a} into {b}; shut {a}; close the {a}; unwrap {a};
    open {a} with {b}; remove {a} from {b}; put {a} inside {b}; carry {a}; hold the {a}; describe {a}; read {a};
    look in {a}; search {a}; enter {a}; go through {a}; drop my {a}; take an {a}; goal; help; wait; z;
    look inside the {b}; throw {a} at {b}; insert the {a} in the {b}; uncover {a}; watch {a}; leave; exit; cross {a};
    take that {a}
""")
OTHER_VERBS = _forms("""
    attack {a}; break the {a}; push {a}; pull {a}; turn {a}; touch {a}; smell; smell {a}; listen; listen to {a};
    taste {a}; cut {a}; burn {a}; rub {a}; clean {a}; climb {a}; buy {a}; squeeze {a}; swing {a}; wave; wave {a};
    tie {a} to {b}; set {a} to {b}; switch on {a}; switch {a} off; turn on {a}; sleep; think; wake up; jump; sorry; yes;
    no; kiss me; kiss {a}; ask {a} about {b}; show {a} to me; give {a} to {b}; give {a} to me; tell me about {a};
    push {a} {way}; push {a} to {b}; look under {a}; look up {a} in {b}; consult {a} about {b}; wear {a}; put on {a};
    take off {a}; remove {a}; stand on {a}; sit on {a}; get in {a}; get off {a}; get up; drink {a}; answer {a} to me;
    wake {a}; examine {way}; take {way}; drop {way}; open {way}; take me; drop me; eat me; put me on {b}; put {a} on me;
    insert {a} into {a}; put {a} on {a}; take me from {b}; ask me for {a}; throw {a} at me; go; enter;
    insert {a} into {way}; put {a} on down; lock {a} with {way}; slice {a}; chop {a} with {b}; cook {a}
""")
PARSER = _forms("""
    take all; drop all; get everything; take all from {b}; put all on {b}; insert all into {b}; take it; x it; drop it;
    open it; examine them; take {a} and {b}; drop {a} and {b}; drop all but {a}; take both; take {a1}; x {a1};
    open {a1}; unlock {a1} with {b1}; lock {a} with {b1}; take {a1} from {b1}; take; drop; open; unlock; lock {a};
    unlock {a}; insert {a}; put {a}; take from {b}; examine; eat; put; insert; close; go to {b}; take two {a};
    take the other {a}; take my {a}; take a; drop the; {a}; {a1}; {b}; put it in {b}; put {a} in it; take some {a};
    examine all; open all; take all except {a} from {b}; put {a1} on {b1}; insert {a1} into {b1}; eat {a1}; drop {a1};
    close {a1}; give {a}; show; turn; take his {a}; take one {a}; pick up all; pick up; remove all from {b}; throw all;
    put all in {a}; take each {a}; ask; tell; x me; examine my {a}; take it from {b}; read about {a} in {b}; look up;
    take {a} {b}; and; the {a}; all
""")
FREE = _forms("""
    I want to take the {a}; Let me check the {a} first; go to the {room}; please open the {a}; take a look at the {a};
    use {a}; use the {a} on the {b}; open {a} using {b}; move {way} to the {room}; where am i; what is in the {b}?;
    The next step is to go {way}; > take {a}; walk towards the {b}; put the {a} back; place {a} on {b}; grab {a};
    pick {a} from the {b}; put {a} into the {b} carefully; examine the contents of the {b}; look around the {room};
    take {a} with {b}; return to {room}; go back; find {a}; search for the {a}; check inventory; head {way};
    look for {a} in the {b}; open the door to the {way}; go {way} through the door; unlock the door with the {b};
    cook the {a}; first take the {a} and go {way}; do nothing; action: open {a}; step 1; ok; done; win the game;
    try to eat the {a} now; drop everything except the {a}; take the {a} and the {b}; take {a} from inside the {b};
    collect all the ingredients; make the meal; the answer is {a}; hello; tell me about the {a}; continue; finish;
    examine {a} closely; open the {a} slowly and look inside; turn the {a} on; give the {a} to the player; approach {b};
    i will now take the {a} that is on the {b}; close the {a} behind me; put both {a} and {b} in the {a};
    get me the {a}; take the {a}, then go {way}; take {a} then open {b}; go {way} and then look; "take {a}"; 'open {a}';
    say "{a}"; could you please take the {a} for me?; thank you; take all of the {a}; take it and put it on the {b}; g;
    again; do that again; open it and look inside; take 2 {a}; 1. take the {a}; take three {a}; drop all {a}; repeat;
    ouvre le {a}; nimm die {a}!; take the {a} \N{WHITE HEAVY CHECK MARK}; go \N{RIGHTWARDS ARROW} {way}; eat it;
    put them all on {b}; I'd like to examine the {b}, please; let's go {way}; take {a} & {b}; look at both;
    take every {a}; examine it again
""")
LINES = tuple(  # Several commands, commas, quotation marks, letters beyond ASCII; one form per line.
    line.strip()
    for line in r"""
take {a}, {b}
take {a}, {b} and {a}
take {a}, then go {way}
drop {a}. {way}
go {way}. look. inventory
{way}. {w}
open {a}. take {b}. look
x {a}. take it. x it
take all. drop all
take all from {b}, {way}
drop all then look
put all in {b}. g
take {a}. g
look. again
g
again
g. look
me, {way}
me, take {a}
{a}, {way}
{b}, hello
bob, go {way}
okay, open {a}
me, g
, {way}
take {a}
"take {a}"
say "{a}, {b}"
look.
look...
take.
take. {a}
i. look
examine {a}; take it
take {a} (the {b})
take {a}: now
take {a} — then {way}
café
take the “{a}”
{a}.
put {a} on {b}, {a1}
put {a}, {b} in {b1}
insert {a1}. {b}
unlock {a} with {b}, {way}
{a}{a}{b}{a} {a} {b} {a} {b} {a} {b} {a} {b} {a} {b} {a} {b} {a} {b}
take {a} and {b} and {a} and {b} and {a} and {b} and {a} and {b} and {a} and {b}. look

12
ask {b} about {a}, {b}
answer {a}. look
drop two. look
take two, {a}
all, {way}
x it, {a}
take it, drop it
turn {a} on. look
pick {a} up, {way}
i, {way}
I am at {room}, so I will go {way}.
Open the {a}, please!
First, take the {a}. Then put it on the {b}.
Action: take {a}
```take {a}```
**take {a}**
take {a}	and {b}
""".strip().split("\n")
)
QUESTIONS = _forms("""
    examine; take; drop; open; close; eat; lock; unlock; insert; take {a1}; x {a1}; open {a1}; lock {a}; unlock {a};
    unlock {a1}; insert {a}; drop {a1}; put {a} on; take from {b1}; examine the {a1}
""")
WAYS = ("north", "south", "east", "west")
CLASSES = (
    "admissible",
    "solution",
    "grammar",
    "synonyms",
    "other verbs",
    "parser",
    "perturbed",
    "free text",
    "punctuation",
    "questions",
    "answers",
)

_DRAWN = (*(kind for kind in CLASSES if kind not in ("solution", "answers")), "questions")  # Half are answered.


class Typist:
    """Types commands of every class.

    Args:
        game: game that is played.
        draw: source of chance.
    """

    def __init__(self, game: StoredGame, draw: random.Random) -> None:
        self._draw = draw
        assert game.fiction is not None
        entities = game.fiction.entities
        self._things = [e.name for e in entities if e.kind not in ("room", "idea") and e.name]
        self._rooms = [e.name for e in entities if e.kind == "room"]
        self._grammar = GRAMMAR + (COOKING_GRAMMAR if game.fiction.cooking else ())

    def type(self, kind: str, listed: tuple[str, ...], seen: str) -> str:
        """A command of a class.

        Args:
            kind: the class.
            listed: commands that TextWorld lists now.
            seen: text that was printed last; things that it names are typed more often.
        """
        if kind == "admissible":
            return self._draw.choice(listed)
        if kind == "perturbed":
            return self._perturb(self._draw.choice((*listed, self._fill(self._draw.choice(self._grammar), seen))))
        if kind == "answers":
            return self._draw.choice((self._thing(seen), self._word(seen), "all", "the " + self._thing(seen), "none"))
        forms = {
            "synonyms": SYNONYMS, "other verbs": OTHER_VERBS, "parser": PARSER, "free text": FREE,
            "punctuation": LINES, "questions": QUESTIONS,
        }  # fmt: skip
        return self._fill(self._draw.choice(forms.get(kind, self._grammar)), seen)

    def _thing(self, seen: str) -> str:
        near = [thing for thing in self._things if thing in seen]
        return self._draw.choice(near) if near and self._draw.random() < 0.7 else self._draw.choice(self._things)

    def _word(self, seen: str) -> str:
        return self._draw.choice(self._thing(seen).split())

    def _fill(self, form: str, seen: str) -> str:
        way = self._draw.choice(WAYS)
        return form.format(
            a=self._thing(seen), b=self._thing(seen), a1=self._word(seen), b1=self._word(seen), way=way, w=way[0],
            room=self._draw.choice(self._rooms),
        )  # fmt: skip

    def _perturb(self, command: str) -> str:
        words = command.split()
        at = self._draw.randrange(len(words))
        kind = self._draw.randrange(7)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(
                at, self._draw.choice(("the", "a", "my", "please", "big", "all", "with", "from", "on", "it", "of"))
            )
        elif kind == 2:
            self._draw.shuffle(words)
        elif kind == 3:
            words.insert(at, words[at])
        elif kind == 4:
            letter = self._draw.randrange(len(words[at]))
            words[at] = words[at][:letter] + self._draw.choice("aeiou ") + words[at][letter + 1 :]
        elif kind == 5:
            words[0] = self._draw.choice(
                ("take", "open", "put", "go", "eat", "examine", "insert", "unlock", "drop", "push")
            )
        else:
            words[at] = self._draw.choice(self._things)
        return " ".join(words) or "look"


def compare(name: str, game: StoredGame, steps: int) -> dict[str, Any]:
    """Play one game in both engines.

    Args:
        name: name of the game, from which the commands are drawn.
        game: the game.
        steps: number of commands.

    Returns:
        the game's name, steps and differences by class, and the first differences.
    """
    draw = random.Random(name)
    played: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    examples: list[list[str]] = []
    for kind, command, there, here in _play(game, draw, steps):
        played[kind] += 1
        if there != here:
            differing[kind] += 1
            if len(examples) < 40:
                examples.append([kind, command, *_apart(there, here)])
    return {"game": name, "played": played, "differing": differing, "examples": examples}


def _play(
    game: StoredGame, draw: random.Random, steps: int
) -> Iterator[tuple[str, str, tuple[Any, ...], tuple[Any, ...]]]:
    """Commands with their classes, and what each engine says and knows after them."""
    logic, reference, native, typist = game.logic, ZMachine(), Native(), Typist(game, draw)
    assert logic is not None
    solution: list[str] = []
    seen = ""
    begun = False
    for step in range(steps):
        if not begun:
            there, here = reference.start(game), native.start(game)
            yield "openings", "", (there,), (here,)
            begun, seen = True, there
            solution = list(game.solution) if step < steps // len(CLASSES) else []
        state = reference.state
        assert state is not None
        question = seen.partition("\n>")[0].rstrip().endswith("?") and " do you " in seen
        if solution:
            kind, typed = "solution", solution.pop(0)
        else:
            kind = "answers" if question and draw.random() < 0.8 else draw.choice(_DRAWN)
            typed = typist.type(kind, listed_commands(logic, state), seen)
        command = playable(typed)
        said, told = reference.step(command), native.step(command)
        first = (said.text, said.actions, said.won, said.lost, reference.state)
        second = (told.text, told.actions, told.won, told.lost, native.state)
        yield kind, command, first, second
        seen = said.text
        begun = not (said.won or said.lost or first != second)


def _apart(there: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[str, str]:
    """Where two answers differ, in a form to be read."""
    if there[0] == here[0]:
        return repr(there[1:4]), repr(here[1:4])
    return repr(there[0].rstrip()[-700:]), repr(here[0].rstrip()[-700:])


def main() -> None:
    """Compare what has not been compared yet, and print the sums."""
    config = tyro.cli(Config)
    records = {}
    if config.out.is_file():
        for line in config.out.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):
                record = json.loads(line)
                records[record["game"]] = record
    jobs = [
        (spec, index)
        for index in range(config.first, config.first + config.games)
        for kind, knobs in KINDS
        if not config.kinds or kind in config.kinds
        for spec in [make_spec(kind, **knobs)]
        if f"{spec.slug}/{index}" not in records
    ]
    with open(config.out, "a", encoding="utf-8") as file:
        for spec, index in track(jobs, "Comparing"):
            record = compare(f"{spec.slug}/{index}", store.load(spec, "train", index), config.steps)
            records[record["game"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
    report(list(records.values()), config.examples)


def report(records: list[dict[str, Any]], examples: int) -> None:
    """Print sums and first differences."""
    played: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for record in records:
        played.update(record["played"])
        differing.update(record["differing"])
    print(f"{len(records)} games, {sum(played.values())} steps, {sum(differing.values())} different")
    for kind in ("openings", *CLASSES):
        agreed = 100 * (1 - differing[kind] / max(1, played[kind]))
        print(f"{kind:12} {played[kind]:8,} steps {differing[kind]:6,} different {agreed:8.2f} % agree")
    shown = [(record["game"], *example) for record in records for example in record["examples"]]
    for game, kind, command, there, here in shown[:examples]:
        print(f"\n{game} ({kind}) > {command}\n  reference {there}\n  native    {here}")


if __name__ == "__main__":
    main()
