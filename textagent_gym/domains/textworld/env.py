"""TextWorld as a Gymnasium environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, cast

from textagent_gym.core import Outcome, TextEnv, TextEnvKwargs
from textagent_gym.domains.textworld.specs import make_spec
from textagent_gym.domains.textworld.tasks import TextWorldTask, TextWorldTasks
from textagent_gym.domains.textworld.zmachine import ZMachine, plain, plain_opening, playable, upstream_feedback
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError

_Part = TypeVar("_Part")
_NOT_PLAYED = "xyzzy"  # Sent in place of what must not reach the story: a verb that no story knows.


@dataclass(frozen=True, slots=True)
class _World:
    """A saved moment: the interpreter's state, the facts that hold, and the milestones reached."""

    machine: Any
    facts: Any
    milestones: int


class TextWorldEnv(TextEnv[TextWorldTask]):
    """# TextWorld

    ## Description
    A text adventure in a generated house: rooms joined by doors, containers that may be locked, things to carry. The
    agent is told a goal, such as putting the milk on the stove, and types commands until it is reached. Every game is
    generated and compiled by Microsoft's TextWorld (Côté et al., 2018, arXiv 1806.11532); its text is the original's.
    What an agent is asked for is what it gets: the shortest solution of every game is found by search, and a custom
    game whose solution is not as long as asked for is never served.

    ## Actions
    | command | effect |
    | --- | --- |
    | `go north` (south, east, west) | walk through an exit or an open door |
    | `look`, `inventory`, `examine THING` | describe the room, what is carried, a thing |
    | `open THING`, `close THING` | a door or a container |
    | `unlock THING with KEY`, `lock THING with KEY` | a door or a container |
    | `take THING`, `take THING from HOLDER`, `drop THING` | pick up, put down |
    | `put THING on SUPPORTER`, `insert THING into CONTAINER` | place what is carried |
    | `eat THING` | food disappears; eating what the goal needs loses the game |

    Cooking games add `cook`, `slice`, `chop`, `dice` and `prepare meal`. Synonyms that the game's parser knows work as
    well. Any other string costs a turn and gets the game's own reply; commands about the program, such as *restart*,
    *quit* or *save*, are strings like any other.

    ## Observations
    The goal and the first room at reset, then the game's reply to each command, as a person would read it.

        You take the type J keycard from the mantle.

    ## Rewards
    Each action of the shortest solution is a milestone: the k-th is reached when the goal is k actions nearer than at
    the start, by whatever path. `reward_density` says which of them pay.

    ## Difficulty
    | axis | knob | range |
    | --- | --- | --- |
    | `state_size` | `rooms` | 1 to 20 |
    | `action_size` | `objects` | 1 to 40 |
    | `solution_length` | `quest_length` | 1 to 20, exact |

    Args:
        game: "custom", "simple", "cooking", "coin_collector", "treasure_hunter" or "files".
        goal: how much the goal tells: "detailed" (each step), "brief" (what shall hold in the end) or "none".
        options: the knobs of the game (see `textagent_gym.domains.textworld.specs`), the generic axes, and the
            arguments of `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such game exists.
    """

    idle_actions: ClassVar[tuple[str, ...]] = ("examine ", "look", "inventory")
    default_max_turns: ClassVar[int | str] = "4x"

    def __init__(
        self,
        game: str = "custom",
        *,
        goal: Literal["detailed", "brief", "none"] = "detailed",
        **options: Any,
    ) -> None:
        of_every_env = {key: options.pop(key) for key in list(options) if key in TextEnvKwargs.__annotations__}
        self.spec_of_games = make_spec(game, **options)
        super().__init__(TextWorldTasks(self.spec_of_games), **cast(TextEnvKwargs, of_every_env))
        if goal not in ("detailed", "brief", "none"):
            raise InvalidOptionError(f'goal must be "detailed", "brief" or "none", got {goal!r}')
        self.goal = goal
        self._machine = ZMachine()
        self._facts: Any = None
        self._milestones = 0

    def _begin(self, task: TextWorldTask) -> str:
        self._game = task.game
        raw = self._machine.start(str(self._game.story), trace=self._game.logic is not None)
        self._facts = self._game.logic.initial if self._game.logic else None
        self._milestones = 0
        return self._word_goal(upstream_feedback(raw) if self.observation_format == "upstream" else plain_opening(raw))

    def _word_goal(self, text: str) -> str:
        """`text` with the goal told as much as was asked for."""
        told = self._game.objective
        if self.goal == "detailed" or not told:
            return text
        wanted = self._game.brief or "" if self.goal == "brief" else ""
        # Inform prints a line break for each of the goal's own.
        return text.replace(told.strip(), wanted).strip("\n" if self.observation_format == "plain" else "")

    def _act(self, action: str) -> Outcome:
        command = playable(action)
        before = self._machine.save()
        reply = self._machine.send(_NOT_PLAYED if command is None else command)
        if reply.meddled:
            self._machine.restore(before)
            reply = self._machine.send(_NOT_PLAYED)
        self._follow(reply.events)
        text = upstream_feedback(reply.raw) if self.observation_format == "upstream" else plain(reply.raw)
        return Outcome(
            self._word_goal(text),
            self._milestones,
            valid=bool(reply.events),
            success=reply.won,
            failure=reply.lost and not reply.won,
        )

    def _follow(self, events: tuple[str, ...]) -> None:
        """Keep the facts in step with the story, and count the milestones."""
        logic = self._game.logic
        if logic is None:
            return
        for event in events:
            done = logic.detect(self._facts, event)
            self._facts = logic.end_turn(self._facts) if done is None else logic.apply(self._facts, done)
        distance = self._distance()
        if distance is not None:
            self._milestones = max(self._milestones, self.task.milestones - distance)

    def _admissible_actions(self) -> tuple[str, ...]:
        return self._known(self._game.logic).commands(self._facts)

    def _oracle(self) -> tuple[str, ...] | None:
        return self._known(self._game.planner).plan(self._facts)

    def _distance(self) -> int | None:
        return self._known(self._game.planner).distance(self._facts)

    def _snapshot(self) -> _World:
        return _World(self._machine.save(), self._facts, self._milestones)

    def _restore(self, world: object) -> None:
        assert isinstance(world, _World)
        self._machine.restore(world.machine)
        self._facts = world.facts
        self._milestones = world.milestones

    def _known(self, part: _Part | None) -> _Part:
        if part is None:
            raise UnsupportedOperationError(
                f"{self.task.id} has no .json file beside it that describes its logic, so neither admissible actions "
                "nor an oracle are known for it."
            )
        return part

    def close(self) -> None:
        """Give the interpreter's memory back."""
        self._machine.close()
