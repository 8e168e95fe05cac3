"""One turn: actions run one inside another, and what they say goes to the page in Inform's order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from textagent_gym.domains.textworld.inform import naming
from textagent_gym.domains.textworld.inform.fiction import FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.page import Page
from textagent_gym.domains.textworld.inform.reading import Memory
from textagent_gym.domains.textworld.inform.requirements import (
    CARRIED,
    NEEDS_NOUN,
    SECOND_CARRIED,
    SECOND_TOUCHED,
    TOUCHED,
)
from textagent_gym.domains.textworld.inform.templates import Condition, Listing, Name, Template
from textagent_gym.domains.textworld.inform.world import FIXED, World, last_thing


class Blank(NamedTuple):
    """A list of the things in a place, left out of a text."""

    holder: int
    articles: bool


class Outline:
    """What the text of a turn leaves open, so that it is the same whichever things lie where they are listed.

    Attributes:
        blanks: lists that are left out, by the letters that stand for them in the text.
        last_in: room whose last thing is what "it" stands for after the turn; or 0.
    """

    FIRST_LETTER = 0xE000
    """The letters from here on, which are nobody's, stand in a text for its blanks."""

    def __init__(self) -> None:
        self.blanks: dict[str, Blank] = {}
        self.last_in = 0

    def leave_blank(self, blank: Blank) -> str:
        """The letter that stands for a list."""
        letter = chr(self.FIRST_LETTER + len(self.blanks))
        self.blanks[letter] = blank
        return letter


Rule = Callable[["Turn", int, int], bool]
"""What an action does: of a turn and two nouns (0 where there is none), whether it succeeded."""

# How the trace of the compiled game words actions that are not worded by their names alone.
_SECOND_NOUN = {
    "removing": "from", "putting": "on", "inserting": "into", "locking": "with", "unlocking": "with",
    "slicing": "with", "dicing": "with", "chopping": "with", "cooking": "with",
}  # fmt: skip
_EVENTS = {"drinking carried": "drinking carried thing"}


class Turn:
    """The actions of one turn.

    Args:
        world: world that they change.
        memory: what the parser remembers; "it" stands for what was named last.
        page: what they print on.
        rules: what each action does.
        text: line that was typed.
        outline: what the text leaves open; `None` where it is written out.
        traced: whether the compiled game reports its actions, which has an effect on paragraphs.

    Attributes:
        events: actions that succeeded, as the compiled game's trace words them.
        action: action that runs now.
        several: whether the command means several things.
    """

    def __init__(
        self,
        world: World,
        memory: Memory,
        page: Page,
        rules: Mapping[str, Rule],
        text: str = "",
        *,
        outline: Outline | None = None,
        traced: bool = True,
    ) -> None:
        self.world = world
        self.fiction = world.fiction
        self.memory = memory
        self.page = page
        self.text = text
        self.events: list[str] = []
        self.action = ""
        self.several = False
        self._outline = outline
        self._rules = rules
        self._traced = traced
        self._depth = 0

    def try_action(self, action: str, noun: int = 0, second: int = 0, *, announced: int = 0) -> bool:
        """Run an action; whether it succeeded.

        Args:
            action: its name.
            noun: first noun, or 0.
            second: second noun, or 0.
            announced: thing to be named first, where the command means several; or 0.
        """
        page, outer = self.page, self.action
        if not self.several:
            page.divide()
        self.action = action
        nouns = self._supply(action, noun, second)
        if nouns is None:
            self.action = outer
            return False
        if page.said:
            page.divide()
        event = self._event(action, *nouns)
        if self._traced:
            page.clear()
        self._depth += 1
        done = self._run(action, *nouns, announced)
        self._depth -= 1
        page.said |= self._traced
        if done and self._depth == 0:
            self.events.append(event)
        if not self.several:
            page.divide()
        self.action = outer
        return done

    def _supply(self, action: str, noun: int, second: int) -> tuple[int, int] | None:
        """The nouns, with those that are missing; `None` if the action cannot run without."""
        if noun == 0 and action in NEEDS_NOUN:
            if action in ("smelling", "listening"):
                return self.world.room, second
            missing = "You'll have to say which compass direction to go in."
            self.page.say(missing if action == "going" else "You must supply a noun.")
            return None
        if action == "removing" and second == 0:
            holder = self.world.holder(noun)
            if self.fiction.kinds[holder] in ("supporter", "container"):
                return noun, holder
            self.try_action("taking", noun)
            self.page.say_part("")
            return None
        return noun, second

    def _event(self, action: str, noun: int, second: int) -> str:
        """An action in the words of the compiled game's trace, in lower case."""
        words = [_EVENTS.get(action, action)]
        if noun >= FIRST_DIRECTION:
            words.append(self._name_in_event(noun))
        if second >= FIRST_DIRECTION:
            if action in _SECOND_NOUN:
                words.append(_SECOND_NOUN[action])
            words.append(self._name_in_event(second))
        return " ".join(words).lower()

    def _name_in_event(self, entity: int) -> str:
        return self.fiction.names[entity] if entity < PLAYER else self.the(entity)

    def _run(self, action: str, noun: int, second: int, announced: int) -> bool:
        """Run the rules of an action; whether it succeeded."""
        if announced:
            self.page.say_part(f"{self.name(announced)}: ")
            self.page.run_on()
            if announced != PLAYER:
                self.memory.it = announced
        if (FIRST_DIRECTION <= noun < PLAYER and action in TOUCHED) or (
            FIRST_DIRECTION <= second < PLAYER and action in SECOND_TOUCHED
        ):
            return self.refuse("You must name something more substantial.")
        before = self._rules.get(f"before {action}")
        if before is not None and not before(self, noun, second):
            return False
        for entity, carried in ((noun, CARRIED), (second, SECOND_CARRIED)):
            if action in carried and entity >= FIRST_DIRECTION and self.world.holder(entity) != PLAYER:
                return self.demand(entity)
        return self._rules[action](self, noun, second)

    def refuse(self, text: str) -> bool:
        """Say why an action is not done."""
        self.page.say(text)
        return False

    def report(self, text: str) -> bool:
        """Say what was done."""
        self.page.say(text)
        return True

    def carry_out(self, text: str) -> bool:
        """Say something while an action is done, which is a paragraph of its own."""
        self.page.say(text)
        self.page.divide()
        return True

    def demand(self, thing: int) -> bool:
        """Say that a thing must be taken first: TextWorld's games do not take it by themselves."""
        if self.fiction.kinds[thing] in FIXED:
            return self.refuse(f"The {self.name(thing)} is fixed in place.")
        if thing != PLAYER:
            self.memory.it = thing
        return self.refuse(f"You need to take the {self.name(thing)} first.")

    def name(self, entity: int) -> str:
        """The name without an article."""
        return naming.name(self.world, entity, self.action)

    def the(self, entity: int) -> str:
        """The name with "the"."""
        return naming.definite(self.world, entity, self.action)

    def capital_the(self, entity: int) -> str:
        """The name with "The"."""
        return naming.definite(self.world, entity, self.action, capital=True)

    def listed(self, holder: int, *, articles: bool = True) -> str:
        """The things that are in or on something, in a row; or lie on the floor of a room."""
        if self._outline is not None and naming.is_told_closely(self.fiction, holder, self.action):
            return self._outline.leave_blank(Blank(holder, articles))
        return naming.listed(self.world, holder, self.action, articles=articles)

    def notice_last(self) -> None:
        """Let "it" stand for the last thing in the room, if there is one."""
        if self._outline is not None:
            self._outline.last_in = self.world.room
            return
        last = last_thing(self.world.contents(self.world.room))
        if last:
            self.memory.it = last

    def is_or_are(self, count: int) -> str:
        """The verb before a list of so many things; before an empty one it is that of the list before."""
        if count:
            self.memory.listed_many = count > 1
        return "are" if self.memory.listed_many else "is"

    def print_template(self, template: Template, described: int) -> str:
        """A description as it reads now.

        Args:
            template: description.
            described: entity that it describes.
        """
        printed: list[str] = []
        for node in template:
            if isinstance(node, str):
                printed.append(node)
            elif isinstance(node, Name):
                printed.append(self.name(described))
            elif isinstance(node, Listing):
                printed.append(self._print_listing(node))
            else:
                for condition, part in node.parts:
                    if self._hold(condition, described):
                        printed.append(self.print_template(part, described))
                        break
        return "".join(printed)

    def _print_listing(self, listing: Listing) -> str:
        verb = f"{self.is_or_are(self.world.count(listing.holder))} " if listing.verb else ""
        return verb + self.listed(listing.holder, articles=listing.articles)

    def _hold(self, condition: Condition, described: int) -> bool:
        """Whether all tests of a condition hold."""
        world = self.world
        for test, tested in condition:
            entity = tested or described
            if test in ("filled", "empty"):
                holds = bool(world.count(entity)) == (test == "filled")
            elif test == "closed":
                holds = not world.is_open(entity)
            else:
                holds = world.has(test, entity)
            if not holds:
                return False
        return True
