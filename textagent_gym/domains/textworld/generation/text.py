"""The text of a world that was drawn, by TextWorld's grammar and with its random choices.

TextWorld writes a game's whole text at once: names and descriptions of things, then descriptions of rooms, then the
goal. Which split a game belongs to is known once things have names, and half of all draws or more are of another
split; what comes after is left out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

_BLOCK = 512  # Random numbers drawn at a time; a text of 20 rooms takes some 2,000.
_LATER = ""  # A description that TextWorld takes for one that is there.


class Texts:
    """Draws of the text of one world.

    Args:
        world: world, filled.
        quests: its quests, which take as many actions as any way to win.
    """

    def __init__(self, world: Any, quests: list[Any]) -> None:
        self._world, self._quests = world, quests

    def draw(self, grammar: Any, is_wanted: Callable[[Any], bool]) -> Any | None:
        """The game with a text, or `None` if it is not wanted.

        Args:
            grammar: a grammar of TextWorld.
            is_wanted: whether a game is wanted, of which all is known except descriptions of rooms and goals.
        """
        from textworld.generator import Game
        from textworld.generator.text_generation import (
            assign_description_to_quest,
            assign_description_to_room,
            generate_text_from_grammar,
        )

        game = Game(self._world)
        for room in self._world.rooms:
            game.infos[room.id].desc = _LATER
        generate_text_from_grammar(game, grammar)
        game.quests = tuple(self._quests)
        wanted = is_wanted(game)
        # TextWorld's quests keep the first description that they get, so later draws have fewer random choices.
        if wanted or any(quest.desc is None for quest in self._quests):
            for room in self._world.rooms:
                game.infos[room.id].desc = assign_description_to_room(room, game, grammar)
            for quest in self._quests:
                if quest.desc is None:
                    quest.desc = assign_description_to_quest(quest, game, grammar)
        if not wanted:
            return None
        game.grammar = grammar
        self._tell_goal(game)
        return game

    def _tell_goal(self, game: Any) -> None:
        """The last part of `Game.change_grammar`: commands of the quests, walkthrough, objective."""
        from textworld.generator.game import Event
        from textworld.generator.inform7 import Inform7Game
        from textworld.generator.text_generation import describe_event

        inform7 = Inform7Game(game)
        for quest in self._quests:
            for event in quest.win_events:
                event.commands = inform7.gen_commands_from_actions(event.actions)
            quest.commands = quest.win_events[0].commands
        policy = _progression()(game).winning_policy
        if policy:
            names = {identity: info.name for identity, info in game.infos.items()}
            game.metadata["walkthrough"] = [action.format_command(names) for action in policy]
            game.objective = describe_event(Event(policy), game, game.grammar)


@lru_cache(maxsize=1)
def _progression() -> Any:
    """TextWorld's `GameProgression` as far as a game's beginning needs it: without the actions that can be done."""
    from textworld.generator.game import GameProgression, QuestProgression

    class Beginning(GameProgression):  # type: ignore[misc]
        def __init__(self, game: Any) -> None:
            self.game, self.state = game, game.world.state
            self.quest_progressions = [QuestProgression(quest, game.kb) for quest in game.quests]
            # A single quest is a shortest way, so none of its actions can be left out.
            if len(game.quests) > 1:
                for progression in self.quest_progressions:
                    progression.update(action=None, state=self.state)

    return Beginning


@lru_cache(maxsize=1)
def quick_grammar() -> Any:
    """TextWorld's `Grammar`, which makes the same choices without arrays and looks every tag's texts up once.

    Its options must not ask for unique expansions.
    """
    from textworld.generator import Grammar

    class QuickGrammar(Grammar):  # type: ignore[misc]
        def __init__(self, options: Any, rng: Any) -> None:
            super().__init__(options, rng)
            self._draws = raw_draws(rng)

        def _choose(self, count: int) -> int:
            """What `rng.choice(count)` would give."""
            if count == 1:
                return 0
            mask = (1 << (count - 1).bit_length()) - 1
            while True:
                chosen = next(self._draws) & mask
                if chosen < count:
                    return chosen

        def get_random_expansion(self, tag: str, rng: None = None) -> str:
            forms = _forms(self.grammar[tag])
            return forms[self._choose(len(forms))]

        def expand(self, text: str, rng: None = None) -> str:
            while "#" in text:
                tags = text.split("#")[1::2]
                tag = f"#{tags[self._choose(len(tags))]}#"
                text = text.replace(tag, self.get_random_expansion(tag))
            return text

    return QuickGrammar


def raw_draws(rng: Any) -> Iterator[int]:
    """The numbers of 32 bits that a `numpy.random.RandomState` makes its choices from."""
    while True:
        yield from rng.randint(0, 2**32, size=_BLOCK, dtype="uint32").tolist()


@lru_cache(maxsize=4_096)
def _forms(rule: Any) -> tuple[str, ...]:
    """The texts that a rule chooses from. TextWorld parses each grammar once, so a rule is one object."""
    return tuple(alternative.full_form() for alternative in rule.alternatives)
