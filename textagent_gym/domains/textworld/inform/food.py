"""Eating, and cooking: the rules that TextWorld adds to Inform's."""

from __future__ import annotations

from textagent_gym.domains.textworld.inform.fiction import PLAYER
from textagent_gym.domains.textworld.inform.naming import that_is
from textagent_gym.domains.textworld.inform.turn import Rule, Turn
from textagent_gym.domains.textworld.inform.world import NOWHERE, UNCUT


def before_cutting_up(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if not world.has_trait(noun, "cuttable"):
        return turn.refuse("Can only cut cuttable food.")
    if world.cutting(noun) != UNCUT:
        return turn.refuse(f"{turn.capital_the(noun)} is already {world.cutting(noun)}.")
    if not world.has_trait(second, "sharp"):
        return turn.refuse("Cutting something requires a knife.")
    return True


def before_preparing_meal(turn: Turn, noun: int, second: int) -> bool:
    world, fiction = turn.world, turn.fiction
    if world.room != fiction.kitchen:
        return turn.refuse(f"Can only prepare meal in the {turn.name(fiction.kitchen)}.")
    for ingredient in fiction.recipe:
        if world.holder(ingredient.food) != PLAYER:
            return turn.refuse("You still miss something.")
        if world.cooking(ingredient.food) != ingredient.cooking:
            return turn.refuse("Something still needs to be cooked.")
        if world.cutting(ingredient.food) != ingredient.cutting:
            return turn.refuse("Something still needs to be cut.")
    return True


def eating(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if turn.fiction.kinds[noun] == "food" and world.has("needs_cooking", noun) and not _is_edible(turn, noun):
        return turn.refuse(f"You should cook {turn.the(noun)} first.")
    if not _is_edible(turn, noun):
        return turn.refuse(f"{that_is(noun)} plainly inedible.")
    if world.holder(noun) != PLAYER:
        return turn.demand(noun)
    world.move(noun, NOWHERE)
    if turn.fiction.cooking:
        world.set("consumed", noun)
    return turn.report(f"You eat {turn.the(noun)}. Not bad.")


def _is_edible(turn: Turn, noun: int) -> bool:
    return turn.world.has("edible", noun)


def drinking_carried(turn: Turn, noun: int, second: int) -> bool:
    if not turn.world.has_trait(noun, "drinkable"):
        return turn.refuse(f"You cannot drink {turn.the(noun)}.")
    turn.world.move(noun, NOWHERE)
    turn.world.set("consumed", noun)
    return turn.report(f"You drink {turn.the(noun)}. Not bad.")


def cutting(turn: Turn, noun: int, second: int) -> bool:
    if turn.fiction.cooking:
        the = turn.the(noun)
        return turn.refuse(f"You need to specify how you want to cut {the}. Either slice, dice, or chop it.")
    return turn.refuse(f"Cutting {'you' if noun == PLAYER else 'it'} up would achieve little.")


def slicing(turn: Turn, noun: int, second: int) -> bool:
    return _cut(turn, noun, "slice", "sliced")


def dicing(turn: Turn, noun: int, second: int) -> bool:
    return _cut(turn, noun, "dice", "diced")


def chopping(turn: Turn, noun: int, second: int) -> bool:
    return _cut(turn, noun, "chop", "chopped")


def _cut(turn: Turn, noun: int, verb: str, result: str) -> bool:
    turn.world.prepare(noun, result)
    return turn.carry_out(f"You {verb} the {turn.name(noun)}.")


def cooking(turn: Turn, noun: int, second: int) -> bool:
    world = turn.world
    if not world.has_trait(noun, "cookable"):
        return turn.refuse("Can only cook food.")
    heat = turn.fiction[second].heat if second > PLAYER else ""
    if not heat:
        return turn.refuse("Cooking requires a source of heat.")
    if world.has("cooked", noun):
        world.set("burned", noun)
        world.set("edible", noun, False)
        return turn.carry_out(f"You burned the {turn.name(noun)}!")
    world.set("cooked", noun)
    if world.has("needs_cooking", noun):
        world.set("edible", noun)
        world.set("needs_cooking", noun, False)
    world.prepare(noun, heat)
    return turn.carry_out(f"You {heat} the {turn.name(noun)}.")


def preparing_meal(turn: Turn, noun: int, second: int) -> bool:
    turn.page.say("Adding the meal to your inventory.")
    for ingredient in turn.fiction.recipe:
        turn.world.move(ingredient.food, NOWHERE)
    turn.world.move(turn.fiction.meal, PLAYER)
    turn.memory.it = turn.fiction.meal
    turn.page.divide()
    return True


FOOD: dict[str, Rule] = {
    "eating": eating,
    "drinking carried": drinking_carried,
    "cutting": cutting,
    "before slicing": before_cutting_up,
    "slicing": slicing,
    "before dicing": before_cutting_up,
    "dicing": dicing,
    "before chopping": before_cutting_up,
    "chopping": chopping,
    "cooking": cooking,
    "before preparing meal": before_preparing_meal,
    "preparing meal": preparing_meal,
}
"""Rules of food by the names of their actions."""
