"""The end of a turn, and of a game: quests, points, and the last words."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.fiction import Fiction
from textagent_gym.domains.textworld.inform.page import Page
from textagent_gym.domains.textworld.inform.world import World
from textagent_gym.domains.textworld.prose import LOST, WON

FINAL_QUESTION = "Would you like to RESTART, RESTORE a saved game, QUIT or UNDO the last command?\n> "
"""What a game asks that has ended."""

FINAL_ANSWER = "Please give one of the answers above.\n\n" + FINAL_QUESTION
"""What it says to everything from then on; its questions are no part of a world, see `commands`."""

_REQUESTS = 3  # Of TextWorld's environment, for reports of turns, of points and of actions.
_CENTRE = 128  # Columns of the screen in whose middle the last words stand.
_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""


def begin(world: World) -> None:
    """Follow the quests that are fulfilled from the beginning; nothing is said of them.

    TextWorld's own environment sends requests before anybody has typed a command, and throws away what is answered.
    """
    for _ in range(_REQUESTS):
        if not world.ending:
            _win(world, _follow_quests(world)[0])


def end_turn(world: World, page: Page) -> bool:
    """Follow the quests and tell of points, as the compiled game does at the end of every turn.

    Args:
        world: world that is changed; `world.ending` says whether the game has ended with this turn.
        page: what is printed; `last_words` follow where the game has ended.

    Returns:
        whether the turn counts.
    """
    if page.said:
        page.divide()
    completed, points = _follow_quests(world)
    counts = not world.ending
    if counts:
        page.report()
        _tell_of_points(points, page)
        _win(world, completed)
    if world.ending and page.said:
        page.divide()
    return counts


def last_words(fiction: Fiction, ending: str, score: int, turns: int) -> str:
    """What is printed when a game has ended.

    Args:
        fiction: the game.
        ending: "won" or "lost".
        score: points.
        turns: number of the turn.
    """
    words = WON if ending == "won" else LOST
    points = f"{score} out of a possible {fiction.highest_score}"
    if fiction.highest_score == float("inf"):
        points = f"a total of {score} point{'' if score == 1 else 's'}"
    counted = f"{turns} turn{'' if turns == 1 else 's'}"
    return (
        f"\n{' ' * ((_CENTRE - len(words)) // 2 - 1)}{words}\n\n"
        f"You scored {points}, in {counted}.\n\n\n{FINAL_QUESTION}"
    )


def _follow_quests(world: World) -> tuple[bool, int]:
    """Complete or lose quests; whether one was completed for good, and the points that were made."""
    completed, points = False, 0
    for index, goal in enumerate(world.fiction.goals):
        if not world.is_watched(index) or world.completed >> index & 1:
            continue
        if any(all(map(world.holds, condition)) for condition in goal.fails):
            world.ending = "lost"
            break
        if any(all(map(world.holds, condition)) for condition in goal.wins):
            points += goal.reward
            if not goal.repeatable:
                world.completed |= 1 << index
                completed = True
    if points:
        world.score += points
    return completed, points


def _win(world: World, completed: bool) -> None:
    """End the game where a quest was completed and no required one is left."""
    required = world.fiction.required
    if completed and required and world.completed & required == required:
        world.ending = "won"


def _tell_of_points(change: int, page: Page) -> None:
    if change:
        how = "has just gone up" if change > 0 else "changed"
        page.say(f"Your score {how} by {_in_words(change)} {'point' if abs(change) == 1 else 'points'}.")


def _in_words(number: int) -> str:
    words = _NUMBERS.split()
    spoken = words[abs(number)] if abs(number) < len(words) else str(abs(number))
    return spoken if number >= 0 else f"minus {spoken}"
