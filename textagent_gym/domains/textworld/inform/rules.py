"""What actions do and say: Inform's standard rules, and those that TextWorld adds to them.

Actions have the names that Inform gives them. Most are refused with a sentence; `_REFUSED` and `_REPORTED` have those
that need no more than that. The others are methods, in which checks come first, as in Inform's rulebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textagent_gym.domains.textworld.inform.fiction import DIRECTIONS, FIRST_DIRECTION, PLAYER
from textagent_gym.domains.textworld.inform.naming import definite, indefinite, joined, name
from textagent_gym.domains.textworld.inform.page import Page
from textagent_gym.domains.textworld.inform.parser import Command, Memory
from textagent_gym.domains.textworld.inform.templates import Choice, Listing, Name, Template
from textagent_gym.domains.textworld.inform.world import NOWHERE, RAW, UNCUT, World

_UP, _DOWN = (FIRST_DIRECTION + DIRECTIONS.index(way) for way in ("up", "down"))
_INSIDE, _OUTSIDE = (FIRST_DIRECTION + DIRECTIONS.index(way) for way in ("inside", "outside"))
_FIXED = frozenset(("door", "container", "supporter"))

# Requirements of actions, as in Inform's table of them: what must be within touch, needed, carried.
_TOUCHED = {
    "taking", "removing", "dropping", "putting", "inserting", "eating", "entering", "getting off", "searching",
    "consulting", "locking", "unlocking", "switching on", "switching off", "opening", "closing", "wearing",
    "taking off", "giving", "showing", "waking", "throwing", "attacking", "kissing", "answering", "telling", "asking",
    "asking for", "touching", "waving", "pulling", "pushing", "turning", "pushing to", "squeezing", "burning",
    "smelling", "listening", "tasting", "cutting", "tying", "drinking", "swinging", "rubbing", "setting", "buying",
    "climbing", "drinking carried", "dicing", "slicing", "chopping", "cooking",
}  # fmt: skip
_SECOND_TOUCHED = {
    "removing", "putting", "inserting", "locking", "unlocking", "giving", "asking for", "tying", "dicing", "slicing",
    "chopping", "cooking",
}  # fmt: skip
_CARRIED = {
    "wearing", "giving", "showing", "throwing", "drinking carried", "dicing", "slicing", "chopping", "cooking",
}  # fmt: skip
_SECOND_CARRIED = {"locking", "unlocking", "dicing", "slicing", "chopping"}
_NOUN_NEEDED = (_TOUCHED | {"going", "examining", "looking under"}) - {"answering", "telling", "asking"}

_REFUSED = {
    "attacking": "Violence isn't the answer to this one.",
    "saying yes": "That was a rhetorical question.",
    "saying no": "That was a rhetorical question.",
    "burning": "This dangerous act would achieve little.",
    "waking up": "The dreadful truth is, this is not a dream.",
    "waking": "That seems unnecessary.",
    "thinking": "What a good idea.",
    "saying sorry": "Oh, don't apologise.",
    "swinging": "There's nothing sensible to swing here.",
    "drinking": "There's nothing suitable to drink here.",
    "tying": "You would achieve nothing by this.",
    "buying": "Nothing is on sale.",
    "climbing": "Little is to be achieved by that.",
    "sleeping": "You aren't feeling especially drowsy.",
    "taking all": "You have to be more specific!",
}
"""What is said to actions that are never done."""

_REPORTED = {
    "waiting": "Time passes.",
    "smelling": "You smell nothing unexpected.",
    "listening": "You hear nothing unexpected.",
    "tasting": "You taste nothing unexpected.",
    "jumping": "You jump on the spot.",
    "waving hands": "You wave.",
}
"""What is said to actions that are done and change nothing."""

_HELP = (
    ("look", "describe the current room"),
    ("goal", "print the goal of this game"),
    ("inventory", "print player's inventory"),
    ("go <dir>", "move the player north, east, south or west"),
    ("examine ...", "examine something more closely"),
    ("eat ...", "eat edible food"),
    ("open ...", "open a door or a container"),
    ("close ...", "close a door or a container"),
    ("drop ...", "drop an object on the floor"),
    ("take ...", "take an object that is on the floor"),
    ("put ... on ...", "place an object on a supporter"),
    ("take ... from ...", "take an object from a container or a supporter"),
    ("insert ... into ...", "place an object into a container"),
    ("lock ... with ...", "lock a door or a container with a key"),
    ("unlock ... with ...", "unlock a door or a container with a key"),
)

# How the trace of the compiled game words actions: before the noun, before the second noun.
_WORDED = {
    "removing": ("removing", "from"),
    "putting": ("putting", "on"),
    "inserting": ("inserting", "into"),
    "locking": ("locking", "with"),
    "unlocking": ("unlocking", "with"),
    "slicing": ("slicing", "with"),
    "dicing": ("dicing", "with"),
    "chopping": ("chopping", "with"),
    "cooking": ("cooking", "with"),
    "drinking carried": ("drinking carried thing", ""),
}


class Rules:
    """Runs the actions of one turn.

    Args:
        world: world that they change.
        memory: what the parser remembers; "it" is what was named last.
        page: what they print on.
        traced: whether the compiled game reports its actions, which has an effect on paragraphs.

    Attributes:
        events: actions that succeeded, as the compiled game's trace words them.
    """

    def __init__(self, world: World, memory: Memory, page: Page, *, traced: bool = True) -> None:
        self.world = world
        self.memory = memory
        self.page = page
        self.events: list[str] = []
        self._fiction = world.fiction
        self._traced = traced
        self._depth = 0
        self._several = False
        self._action = ""
        self._taken_from = NOWHERE
        self._command: Command | None = None
        self._text = ""

    def run(self, command: Command, text: str) -> None:
        """Run what a command asks for.

        Args:
            command: what the parser has understood.
            text: words of the command.
        """
        self._command, self._text = command, text
        nouns = command.nouns
        if 0 in nouns and not command.several:
            self.page.say("Nothing to do!")
            return
        if 0 not in nouns:
            self.try_action(command.action, *(noun for noun in nouns))
            return
        if not command.several:
            return
        self._several = True
        room = self.world.room
        for thing in command.several:
            self.page.run_on()
            self.try_action(command.action, *(noun or thing for noun in nouns), announced=thing)
            if self.world.ending or self.world.room != room:
                break
        self._several = False

    def try_action(self, action: str, noun: int = 0, second: int = 0, *, announced: int = 0) -> bool:
        """Run an action; whether it succeeded.

        Args:
            action: its name.
            noun: first noun, or 0.
            second: second noun, or 0.
            announced: thing to be named first, where the command meant several.
        """
        page = self.page
        if not self._several:
            page.divide()
        outer, outer_source = self._action, self._taken_from
        self._action = action
        supplied = self._supply(action, noun, second)
        if supplied is None:
            self._action = outer
            return False
        noun, second = supplied
        self._taken_from = self.world.holder[noun] if noun >= FIRST_DIRECTION else NOWHERE
        if page.said:
            page.divide()
        event = self._event(action, noun, second)
        if self._traced:
            page.clear()
        self._depth += 1
        done = self._process(action, noun, second, announced)
        self._depth -= 1
        page.said |= self._traced
        if done and self._depth == 0:
            self.events.append(event)
        if not self._several:
            page.divide()
        self._action, self._taken_from = outer, outer_source
        return done

    def _supply(self, action: str, noun: int, second: int) -> tuple[int, int] | None:
        """The nouns, with those that are missing; `None` if the action cannot run without."""
        if action in _NOUN_NEEDED and noun == 0:
            if action == "going":
                self.page.say("You'll have to say which compass direction to go in.")
                return None
            if action in ("smelling", "listening"):
                return self.world.room, second
            self.page.say("You must supply a noun.")
            return None
        if action == "removing" and second == 0:
            holder = self.world.holder[noun] if noun >= FIRST_DIRECTION else NOWHERE
            if self._fiction.kinds[holder] in ("supporter", "container"):
                return noun, holder
            self.try_action("taking", noun)
            self.page.say_part("")
            return None
        return noun, second

    def _event(self, action: str, noun: int, second: int) -> str:
        """An action in the words of the compiled game's trace, in lower case."""
        verb, preposition = _WORDED.get(action, (action, ""))
        words = [verb]
        for entity, before in ((noun, ""), (second, preposition)):
            if entity >= FIRST_DIRECTION:
                direction = self._fiction.kinds[entity] == "direction"
                words += [before, self._fiction.names[entity] if direction else self._the(entity)]
        return " ".join(word for word in words if word).lower()

    def _process(self, action: str, noun: int, second: int, announced: int) -> bool:
        """Run the rules of an action; whether it succeeded."""
        page = self.page
        if announced:
            page.say_part(f"{self._name(announced)}: ")
            page.run_on()
            self.memory.it = announced
        refusal = self._before(action, noun, second)
        if refusal is not None:
            page.say(refusal)
            return False
        if not self._can_reach(action, noun, second):
            return False
        for thing, carried in ((noun, _CARRIED), (second, _SECOND_CARRIED)):
            if action in carried and thing >= FIRST_DIRECTION and self.world.holder[thing] != PLAYER:
                self._demand(thing)
                return False
        if action in _REFUSED:
            page.say(_REFUSED[action])
            return False
        if action in _REPORTED:
            page.say(_REPORTED[action])
            return True
        rule: Callable[[int, int], bool] = getattr(self, "_do_" + action.replace(" ", "_"))
        return rule(noun, second)

    # What TextWorld's games check before anything else.

    def _before(self, action: str, noun: int, second: int) -> str | None:
        world = self.world
        if action == "going":
            door = self._way(noun)[1]
            if door and not world.is_open(door):
                return f"You have to open the {self._name(door)} first."
        elif action == "opening" and self._fiction.kinds[noun] in ("door", "container") and world.is_locked(noun):
            key = self._fiction.key_of.get(noun, 0)
            if not key:
                return f"The {self._name(noun)} is welded shut."
            return f"You have to unlock the {self._name(noun)} with the {self._name(key)} first."
        elif action in ("slicing", "dicing", "chopping"):
            if world.has_trait(noun, "cuttable") and world.cutting.get(noun, UNCUT) != UNCUT:
                return f"{self._the(noun, capital=True)} is already {world.cutting[noun]}."
            if not world.has_trait(noun, "cuttable"):
                return "Can only cut cuttable food."
            if not world.has_trait(second, "sharp"):
                return "Cutting something requires a knife."
        elif action == "preparing meal":
            return self._before_preparing()
        return None

    def _before_preparing(self) -> str | None:
        world = self.world
        if world.room != self._fiction.kitchen:
            return f"Can only prepare meal in the {self._name(self._fiction.kitchen)}."
        for ingredient in self._fiction.recipe:
            if world.holder[ingredient.food] != PLAYER:
                return "You still miss something."
            if world.cooking.get(ingredient.food, RAW) != ingredient.cooking:
                return "Something still needs to be cooked."
            if world.cutting.get(ingredient.food, UNCUT) != ingredient.cutting:
                return "Something still needs to be cut."
        return None

    def _can_reach(self, action: str, noun: int, second: int) -> bool:
        for entity, touched in ((noun, _TOUCHED), (second, _SECOND_TOUCHED)):
            if action in touched and self._fiction.kinds[entity] == "direction":
                self.page.say("You must name something more substantial.")
                return False
        return True

    def _demand(self, thing: int) -> None:
        """Say that something must be taken first; TextWorld's games never take it by themselves."""
        if self._fiction.kinds[thing] in _FIXED:
            self.page.say(f"The {self._name(thing)} is fixed in place.")
        else:
            self.page.say(f"You need to take the {self._name(thing)} first.")
            if thing != PLAYER:
                self.memory.it = thing

    # Words for things.

    def _name(self, entity: int) -> str:
        return name(self.world, entity, self._action)

    def _the(self, entity: int, *, capital: bool = False) -> str:
        return definite(self.world, entity, self._action, capital=capital)

    def _list(self, things: Sequence[int]) -> str:
        return joined([indefinite(self.world, thing, self._action, listed=True) for thing in things])

    def _that(self, entity: int, *, capital: bool = True) -> str:
        word = "you" if entity == PLAYER else "that"
        return word.capitalize() if capital else word

    def _that_is(self, entity: int) -> str:
        return "You're" if entity == PLAYER else "That's"

    def _be(self, entity: int, *, negated: bool = False) -> str:
        verb = "are" if entity == PLAYER else "is"
        return f"{verb}n't" if negated else verb

    def _refuse(self, text: str) -> bool:
        self.page.say(text)
        return False

    def _report(self, text: str) -> bool:
        self.page.say(text)
        return True

    def _carry_out(self, text: str) -> bool:
        """Say something while an action is done, which is a paragraph of its own."""
        self.page.say(text)
        self.page.divide()
        return True

    def print_template(self, template: Template, described: int) -> str:
        """A description as it reads now."""
        printed: list[str] = []
        for node in template:
            if isinstance(node, str):
                printed.append(node)
            elif isinstance(node, Name):
                printed.append(self._name(described))
            elif isinstance(node, Listing):
                things = self.world.contents[node.holder]
                if node.articles:
                    text = self._list(things)
                else:
                    text = joined([name(self.world, thing, self._action, listed=True) for thing in things])
                verb = f"{'is' if len(things) <= 1 else 'are'} " if node.verb else ""
                printed.append(verb + text)
            else:
                assert isinstance(node, Choice)
                for condition, part in node.parts:
                    if all(self._test(test, entity or described) for test, entity in condition):
                        printed.append(self.print_template(part, described))
                        break
        return "".join(printed)

    def _test(self, test: str, entity: int) -> bool:
        world = self.world
        if test in ("filled", "empty"):
            return bool(world.contents[entity]) == (test == "filled")
        if test == "closed":
            return not world.is_open(entity)
        return (test, entity) in world.flags

    # Looking.

    def describe_room(self) -> None:
        """The room's name, description, and what lies on its floor."""
        world, page = self.world, self.page
        page.say_part(self._fiction.names[world.room])
        page.put("\n")
        page.run_on_after_heading()
        page.say_part(self.print_template(self._fiction.descriptions[world.room - PLAYER - 1], world.room))
        page.put("\n")
        page.divide()
        for thing in world.contents[world.room]:
            if thing != PLAYER:
                self.memory.it = thing
        lying = [t for t in world.contents[world.room] if t != PLAYER and self._fiction.kinds[t] not in _FIXED]
        if lying:
            names = joined([indefinite(world, thing, self._action) for thing in lying])
            page.say(f"There is {names} on the floor.")

    def _do_looking(self, noun: int, second: int) -> bool:
        self.describe_room()
        return True

    def _do_examining(self, noun: int, second: int) -> bool:
        page, world = self.page, self.world
        kind = self._fiction.kinds[noun]
        said = False

        def tell(text: str) -> None:
            if page.said:
                page.divide()
            page.say(text)

        if kind == "direction":
            page.say("You see nothing unexpected in that direction.")
            said = True
        elif kind == "player":
            page.say_part("As good-looking as ever.")
            page.put("\n")
            said = True
        elif self._fiction[noun].description:
            page.say_part(self.print_template(self._fiction.descriptions[noun - PLAYER - 1], noun))
            page.put("\n")
            said = True
        things = world.contents[noun]
        verb = "is" if len(things) == 1 else "are"
        if kind == "container" and world.is_open(noun):
            if things:
                tell(f"In {self._the(noun)} {verb} {self._list(things)}.")
                said = True
            elif not said:
                tell(f"{self._the(noun, capital=True)} is empty.")
                said = True
        elif kind == "supporter" and things:
            tell(f"On {self._the(noun)} {verb} {self._list(things)}.")
            said = True
        if not said:
            tell(f"You see nothing special about {self._the(noun)}.")
        page.divide()
        return True

    def _do_looking_under(self, noun: int, second: int) -> bool:
        return self._carry_out("You find nothing of interest.")

    def _do_searching(self, noun: int, second: int) -> bool:
        kind, things = self._fiction.kinds[noun], self.world.contents[noun]
        if kind not in ("container", "supporter"):
            return self._refuse("You find nothing of interest.")
        if kind == "container" and not self.world.is_open(noun):
            return self._refuse(f"You can't see inside, since {self._the(noun)} is closed.")
        verb = "is" if len(things) == 1 else "are"
        if things:
            where = "In" if kind == "container" else "On"
            return self._carry_out(f"{where} {self._the(noun)} {verb} {self._list(things)}.")
        if kind == "container":
            return self._carry_out(f"{self._the(noun, capital=True)} is empty.")
        return self._carry_out(f"There is nothing on {self._the(noun)}.")

    def _do_taking_inventory(self, noun: int, second: int) -> bool:
        things = self.world.contents[PLAYER]
        if not things:
            return self._carry_out("You are carrying nothing.")
        return self._carry_out(f"You are carrying: {self._list(things)}.")

    def _do_consulting(self, noun: int, second: int) -> bool:
        return self._report(f"You discover nothing of interest in {self._the(noun)}.")

    def _do_telling_the_goal(self, noun: int, second: int) -> bool:
        self.page.say_part(self._fiction.objective)
        self.page.divide()
        return True

    def _do_helping(self, noun: int, second: int) -> bool:
        self.page.say_part("Available commands:\n")
        for command, meaning in _HELP:
            self.page.say_part(f"  {command + ':':<21}{meaning}\n")
        self.page.divide()
        return True

    # Going.

    def _way(self, noun: int) -> tuple[int, int]:
        kind = self._fiction.kinds[noun]
        if kind == "direction":
            return self.world.way(noun)
        return self.world.way_through(noun) if kind == "door" else (NOWHERE, 0)

    def _do_going(self, noun: int, second: int) -> bool:
        room, _ = self._way(noun)
        if room == NOWHERE:
            return self._refuse("You can't go that way.")
        self.world.enter(room)
        self.page.break_before_room()
        outer, self._action = self._action, "looking"
        self.describe_room()
        self._action = outer
        return True

    def _do_entering(self, noun: int, second: int) -> bool:
        kind = self._fiction.kinds[noun]
        if kind in ("door", "direction"):
            return self._convert("going", noun)
        if self.world.is_within(PLAYER, noun) and noun != PLAYER:
            return self._refuse(f"But you're already in {self._the(noun)}.")
        words = self._text.split()
        place = next((f"{verb}{rest}" for verb, rest in (("stand", " on"), ("sit", " down on"), ("lie", " down on")) if verb in words), "enter")
        return self._refuse(f"{self._that_is(noun)} not something you can {place}.")

    def _do_exiting(self, noun: int, second: int) -> bool:
        if (self.world.room, _OUTSIDE) in self._fiction.ways:
            return self._convert("going", _OUTSIDE)
        return self._refuse("But you aren't in anything at the moment.")

    def _do_getting_off(self, noun: int, second: int) -> bool:
        return self._refuse(f"But you aren't on {self._the(noun)} at the moment.")

    def _convert(self, action: str, noun: int) -> bool:
        """Run another action in place of this one."""
        return self.try_action(action, noun)

    # Taking and putting.

    def _do_taking(self, noun: int, second: int) -> bool:
        world = self.world
        if noun == PLAYER:
            return self._refuse("You are always self-possessed.")
        if world.holder[noun] == PLAYER:
            return self._refuse("You already have that.")
        if self._fiction.kinds[noun] in _FIXED:
            return self._refuse("That's fixed in place.")
        if len(world.contents[PLAYER]) >= self._fiction.capacity:
            return self._refuse("You're carrying too many things already.")
        source = world.holder[noun]
        world.move(noun, PLAYER)
        if source == world.room:
            return self._report(f"You pick up {self._the(noun)} from the ground.")
        return self._report(f"You take {self._the(noun)} from {self._the(source)}.")

    def _do_removing(self, noun: int, second: int) -> bool:
        holder = self.world.holder[noun]
        if holder != second:
            return self._refuse(f"But {'you' if noun == PLAYER else 'it'} {self._be(noun, negated=True)} there now.")
        if holder == PLAYER:
            return self._convert("taking off", noun)
        return self._convert("taking", noun)

    def _do_taking_off(self, noun: int, second: int) -> bool:
        return self._refuse(f"You aren't wearing {self._the(noun)}.")

    def _do_wearing(self, noun: int, second: int) -> bool:
        return self._refuse(f"You can't wear {self._that(noun, capital=False)}!")

    def _do_dropping(self, noun: int, second: int) -> bool:
        world = self.world
        if noun == PLAYER:
            return self._refuse("You lack the dexterity.")
        if world.holder[noun] == world.room:
            return self._refuse(f"{self._the(noun, capital=True)} is already here.")
        if world.holder[noun] != PLAYER:
            return self._refuse("You haven't got that.")
        world.move(noun, world.room)
        return self._report(f"You drop {self._the(noun)} on the ground.")

    def _do_putting(self, noun: int, second: int) -> bool:
        return self._place(noun, second, "supporter")

    def _do_inserting(self, noun: int, second: int) -> bool:
        return self._place(noun, second, "container")

    def _place(self, noun: int, second: int, kind: str) -> bool:
        world, on = self.world, kind == "supporter"
        if second == _DOWN or second == world.holder[PLAYER]:
            return self._convert("dropping", noun)
        if world.holder[noun] != PLAYER:
            self._demand(noun)
            return False
        if noun == second:
            return self._refuse(f"You can't put something {'on top of' if on else 'inside'} itself.")
        is_kind = self._fiction.kinds[second] == kind
        if not on and self._fiction.kinds[second] == "container" and not world.is_open(second):
            return self._refuse(f"{self._the(second, capital=True)} is closed.")
        if not is_kind and on:
            return self._refuse(f"Putting things on {self._the(second)} would achieve nothing.")
        if not is_kind:
            return self._refuse(f"{self._that(second)} can't contain things.")
        if len(world.contents[second]) >= 100:
            return self._refuse(f"There is no more room {'on' if on else 'in'} {self._the(second)}.")
        world.move(noun, second)
        if self._several:
            return self._report("Done.")
        return self._report(f"You put {self._the(noun)} {'on' if on else 'into'} {self._the(second)}.")

    # Doors and containers.

    def _do_opening(self, noun: int, second: int) -> bool:
        world = self.world
        kind = self._fiction.kinds[noun]
        if kind not in ("door", "container"):
            return self._refuse(f"{'You' if noun == PLAYER else 'It'} {self._be(noun, negated=True)} something you can open.")
        if world.is_open(noun):
            return self._refuse("That's already open.")
        world.set("open", noun)
        things = world.contents[noun]
        if kind == "container" and things:
            return self._report(f"You open {self._the(noun)}, revealing {self._list(things)}.")
        return self._report(f"You open {self._the(noun)}.")

    def _do_closing(self, noun: int, second: int) -> bool:
        if self._fiction.kinds[noun] not in ("door", "container"):
            return self._refuse(f"{'You' if noun == PLAYER else 'It'} {self._be(noun, negated=True)} something you can close.")
        if not self.world.is_open(noun):
            return self._refuse("That's already closed.")
        self.world.set("open", noun, False)
        return self._report(f"You close {self._the(noun)}.")

    def _do_locking(self, noun: int, second: int) -> bool:
        world = self.world
        if self._fiction.kinds[noun] not in ("door", "container"):
            return self._refuse(f"{self._that(noun)} {'don' if noun == PLAYER else 'doesn'}'t seem to be something you can lock.")
        if world.is_locked(noun):
            return self._refuse("That's locked at the moment.")
        if world.is_open(noun):
            return self._refuse(f"First you would have to close {self._the(noun)}.")
        if self._fiction.key_of.get(noun, 0) != second:
            return self._refuse("That doesn't seem to fit the lock.")
        world.set("locked", noun)
        return self._report(f"You lock {self._the(noun)}.")

    def _do_unlocking(self, noun: int, second: int) -> bool:
        world = self.world
        if self._fiction.kinds[noun] not in ("door", "container"):
            return self._refuse(f"{self._that(noun)} {'don' if noun == PLAYER else 'doesn'}'t seem to be something you can unlock.")
        if not world.is_locked(noun):
            return self._refuse("That's unlocked at the moment.")
        if self._fiction.key_of.get(noun, 0) != second:
            return self._refuse("That doesn't seem to fit the lock.")
        world.set("locked", noun, False)
        return self._report(f"You unlock {self._the(noun)}.")

    def _do_switching_on(self, noun: int, second: int) -> bool:
        return self._refuse(f"{'You' if noun == PLAYER else 'It'} {self._be(noun, negated=True)} something you can switch.")

    _do_switching_off = _do_switching_on

    # Food.

    def _do_eating(self, noun: int, second: int) -> bool:
        world = self.world
        if self._fiction.kinds[noun] == "food" and ("needs_cooking", noun) in world.flags and not self._is_edible(noun):
            return self._refuse(f"You should cook {self._the(noun)} first.")
        if not self._is_edible(noun):
            return self._refuse(f"{self._that_is(noun)} plainly inedible.")
        if world.holder[noun] != PLAYER:
            self._demand(noun)
            return False
        world.move(noun, NOWHERE)
        if self._fiction.cooking:
            world.set("consumed", noun)
        return self._report(f"You eat {self._the(noun)}. Not bad.")

    def _is_edible(self, noun: int) -> bool:
        return ("edible", noun) in self.world.flags

    def _do_drinking_carried(self, noun: int, second: int) -> bool:
        if not self.world.has_trait(noun, "drinkable"):
            return self._refuse(f"You cannot drink {self._the(noun)}.")
        self.world.move(noun, NOWHERE)
        self.world.set("consumed", noun)
        return self._report(f"You drink {self._the(noun)}. Not bad.")

    def _do_cutting(self, noun: int, second: int) -> bool:
        if self._fiction.cooking:
            the = self._the(noun)
            return self._refuse(f"You need to specify how you want to cut {the}. Either slice, dice, or chop it.")
        return self._refuse(f"Cutting {self._that(noun, capital=False)} up would achieve little.")

    def _do_slicing(self, noun: int, second: int) -> bool:
        return self._cut(noun, "slice", "sliced")

    def _do_dicing(self, noun: int, second: int) -> bool:
        return self._cut(noun, "dice", "diced")

    def _do_chopping(self, noun: int, second: int) -> bool:
        return self._cut(noun, "chop", "chopped")

    def _cut(self, noun: int, verb: str, result: str) -> bool:
        self.world.cutting[noun] = result
        return self._carry_out(f"You {verb} the {self._name(noun)}.")

    def _do_cooking(self, noun: int, second: int) -> bool:
        world = self.world
        if not world.has_trait(noun, "cookable"):
            return self._refuse("Can only cook food.")
        heat = self._fiction[second].heat if second > PLAYER else ""
        if not heat:
            return self._refuse("Cooking requires a source of heat.")
        if ("cooked", noun) in world.flags:
            world.set("burned", noun)
            world.set("edible", noun, False)
            return self._carry_out(f"You burned the {self._name(noun)}!")
        world.set("cooked", noun)
        if ("needs_cooking", noun) in world.flags:
            world.set("edible", noun)
            world.set("needs_cooking", noun, False)
        world.cooking[noun] = heat
        return self._carry_out(f"You {heat} the {self._name(noun)}.")

    def _do_preparing_meal(self, noun: int, second: int) -> bool:
        self.page.say("Adding the meal to your inventory.")
        for ingredient in self._fiction.recipe:
            self.world.move(ingredient.food, NOWHERE)
        self.world.move(self._fiction.meal, PLAYER)
        self.memory.it = self._fiction.meal
        self.page.divide()
        return True

    # People, of whom there is only the player.

    def _do_giving(self, noun: int, second: int) -> bool:
        return self._refuse(f"You can't give {self._the(noun)} to yourself.")

    def _do_showing(self, noun: int, second: int) -> bool:
        return self._convert("examining", noun)

    def _do_kissing(self, noun: int, second: int) -> bool:
        return self._refuse("You don't get much from that.")

    def _do_answering(self, noun: int, second: int) -> bool:
        return self._refuse("There is no reply.")

    _do_asking = _do_answering

    def _do_telling(self, noun: int, second: int) -> bool:
        return self._refuse("You talk to yourself a while.")

    def _do_asking_for(self, noun: int, second: int) -> bool:
        return self.try_action("taking inventory")

    def _do_throwing(self, noun: int, second: int) -> bool:
        if second != PLAYER:
            return self._refuse("Futile.")
        return self._refuse("You lack the nerve when it comes to the crucial moment.")

    # Handling things.

    def _do_touching(self, noun: int, second: int) -> bool:
        return self._report("You achieve nothing by this." if noun == PLAYER else "You feel nothing unexpected.")

    def _do_waving(self, noun: int, second: int) -> bool:
        if self.world.holder[noun] != PLAYER:
            return self._refuse(f"But you aren't holding {self._that(noun, capital=False)}.")
        return self._report(f"You wave {self._the(noun)}.")

    def _do_pulling(self, noun: int, second: int) -> bool:
        if self._fiction.kinds[noun] in _FIXED:
            return self._refuse("It is fixed in place.")
        if noun == PLAYER:
            return self._refuse("You might not like that.")
        return self._report("Nothing obvious happens.")

    _do_pushing = _do_turning = _do_pulling

    def _do_pushing_to(self, noun: int, second: int) -> bool:
        return self._refuse(f"{self._the(noun, capital=True)} cannot be pushed from place to place.")

    def _do_squeezing(self, noun: int, second: int) -> bool:
        if noun == PLAYER:
            return self._refuse("You might not like that.")
        return self._report("You achieve nothing by this.")

    def _do_rubbing(self, noun: int, second: int) -> bool:
        return self._report(f"You rub {self._the(noun)}.")

    def _do_setting(self, noun: int, second: int) -> bool:
        return self._refuse(f"No, you can't set {self._that(noun, capital=False)} to anything.")
