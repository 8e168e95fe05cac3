"""Why nothing happened: what `feedback="informative"` says in the place of "Nothing happens."."""

from __future__ import annotations

from textagent_gym.domains.alfworld.engine import PROCESSES, PUT, State

_WITH_RECEPTACLE = {"go": "to", "open": "", "close": ""}


def reason(state: State, command: str) -> str:
    """Why a command that is not admissible does nothing. What the agent has not seen stays untold."""
    game = state.game
    verb, _, rest = command.partition(" ")
    put, to = PUT[game.dialect]
    if verb in _WITH_RECEPTACLE:
        name = rest.removeprefix(_WITH_RECEPTACLE[verb]).strip()
        receptacle = game.receptacle_of.get(name)
        if receptacle is None:
            return f"There is no {name}." if name else f"What to {verb}{' to' if verb == 'go' else ''}?"
        if verb == "go":
            return f"You are already at the {name}."
        if game.places[receptacle] != state.place:
            return f"You are not at the {name}."
        if not game.openable >> receptacle & 1:
            return f"The {name} cannot be {'opened' if verb == 'open' else 'closed'}."
        return f"The {name} is already {'open' if verb == 'open' else 'closed'}."
    if verb in ("take", put, *PROCESSES):
        between = {"take": " from ", put: to}.get(verb, " with ")
        thing, _, name = rest.partition(between)
        return _with_object(state, verb, thing, name, f"{verb} (object){between}(receptacle)")
    if verb == "use":
        number = game.object_of.get(rest)
        seen = number is not None and any(state.contents[r] >> number & 1 for r in game.here[state.place])
        return f"The {rest} cannot be switched on." if seen else f"There is no {rest} here." if rest else "Use what?"
    if verb == "examine":
        return f"You are neither at a {rest} nor holding one." if rest else "Examine what?"
    if verb == "slice":
        return "To slice, hold a knife and name something here that can be sliced: slice (object) with (object)."
    return "That is no command; `help` lists them."


def _with_object(state: State, verb: str, thing: str, name: str, form: str) -> str:
    game = state.game
    receptacle, number = game.receptacle_of.get(name), game.object_of.get(thing)
    if receptacle is None or not thing:
        return f"There is no {name}." if name else f"Say it as: {form}."
    if game.places[receptacle] != state.place:
        return f"You are not at the {name}."
    closed = not state.reachable(receptacle)
    if verb == "take":
        if state.held >= 0:
            return f"Your hand is full: you are carrying the {game.objects[state.held]}."
        if closed:
            return f"The {name} is closed."
        if number is None or not state.contents[receptacle] >> number & 1:
            return f"There is no {thing} in or on the {name}."
        return f"The {thing} cannot be picked up."
    if number is None or state.held != number:
        return f"You are not carrying a {thing}."
    if verb in PROCESSES:
        if not game.uses[PROCESSES[verb]] >> receptacle & 1:
            return f"The {name} is no place to {verb} things."
        return f"The {thing} is nothing to {verb}."
    return f"The {name} is closed." if closed else f"The {thing} cannot be put in or on the {name}."
