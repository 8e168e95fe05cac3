"""ALFWorld as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, Unpack

from textagent_gym.core import Outcome, TextEnv, TextEnvKwargs
from textagent_gym.domains.alfworld.engine import NOTHING_HAPPENS, State
from textagent_gym.domains.alfworld.game import Dialect
from textagent_gym.domains.alfworld.generator import RoomSpec
from textagent_gym.domains.alfworld.planner import solve
from textagent_gym.domains.alfworld.reasons import reason
from textagent_gym.domains.alfworld.reference import ReferenceState
from textagent_gym.domains.alfworld.searcher import Searcher
from textagent_gym.domains.alfworld.tasks import ALFWorldTask, GeneratedTasks, OfficialTasks
from textagent_gym.errors import InvalidOptionError, UnsupportedOperationError
from textagent_gym.tasks import TaskSource

_BANNER = "-= Welcome to TextWorld, ALFRED! =-\n\n"


class ALFWorldEnv(TextEnv[ALFWorldTask]):
    """# ALFWorld

    ## Description
    A household robot in one room, told to bring, clean, heat, cool or look at something. Text and rules are those of
    ALFWorld (Shridhar et al., 2021, arXiv 2010.03768), played by an engine of our own that says the same, admits the
    same and wins at the same moment; see `engine`.

    ## Actions
    | command | effect |
    | --- | --- |
    | `go to RECEPTACLE` | walk there and look at it |
    | `open RECEPTACLE`, `close RECEPTACLE` | what stands before the agent |
    | `take OBJECT from RECEPTACLE`, `move OBJECT to RECEPTACLE` | the hand holds one object |
    | `clean OBJECT with SINKBASIN`, `heat ... with MICROWAVE`, `cool ... with FRIDGE` | what is held |
    | `use OBJECT` | switch a lamp on |
    | `slice OBJECT with KNIFE`, `examine THING`, `look`, `inventory`, `help` | |

    With `dialect="put"`, `put OBJECT in/on RECEPTACLE` takes the place of `move`. Any other string costs a turn and is
    answered by "Nothing happens.", or with `feedback="informative"` by the reason why.

    ## Observations
    What stands in the room and the task at reset, then what is seen at each receptacle.

        You arrive at dresser 1. On the dresser 1, you see a alarmclock 2, and a desklamp 1.

    ## Rewards
    Milestones: each object that the task needs is found, taken, cleaned or heated or cooled, and placed; a lamp is
    found and switched on. `reward_density` says which of them pay.

    Args:
        tasks: where the games come from.
        engine: "native", or "reference" for upstream itself (slow; needs the extra `reference`).
        feedback: "upstream", or "informative" to say why nothing happened.
        kwargs: the arguments of `TextEnv`; the turn budget is 50 unless set, as in the literature.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.
    """

    idle_actions: ClassVar[tuple[str, ...]] = ("examine ", "look", "inventory")
    default_max_turns: ClassVar[int | str] = 50

    def __init__(
        self,
        tasks: TaskSource[ALFWorldTask],
        *,
        engine: Literal["native", "reference"] = "native",
        feedback: Literal["upstream", "informative"] = "upstream",
        **kwargs: Unpack[TextEnvKwargs],
    ) -> None:
        super().__init__(tasks, **kwargs)
        if engine not in ("native", "reference"):
            raise InvalidOptionError(f'engine must be "native" or "reference", got {engine!r}')
        if feedback not in ("upstream", "informative"):
            raise InvalidOptionError(f'feedback must be "upstream" or "informative", got {feedback!r}')
        self.engine = engine
        self.feedback = feedback
        self._state: State
        self._reference: ReferenceState | None = None

    def _begin(self, task: ALFWorldTask) -> str:
        self._state = State(task.game)
        self._reference = ReferenceState(self._original(task)) if self.engine == "reference" else None
        text = (self._reference or self._state).introduction()
        return text if self.observation_format == "upstream" else text.removeprefix(_BANNER)

    def _original(self, task: ALFWorldTask) -> dict[str, Any]:
        """The content of the task's `game.tw-pddl`."""
        raise UnsupportedOperationError(f"{task.id} has no file for the reference engine.")

    def _act(self, action: str) -> Outcome:
        command = action.strip()
        said = self._state.step(command)
        won = self._state.won
        if self._reference is not None:  # The native state follows, and knows milestones and plans.
            said = self._reference.step(command)
            won = self._reference.won
        valid = said is not None
        if said is None:
            said = reason(self._state, command) if self.feedback == "informative" else NOTHING_HAPPENS
        return Outcome(said, self._state.milestones(), valid=valid, success=won)

    def _admissible_actions(self) -> tuple[str, ...]:
        return (self._reference or self._state).commands()

    def _oracle(self) -> tuple[str, ...] | None:
        plan = solve(self._state)
        return None if plan is None else plan.commands

    def _expert(self) -> Searcher:
        return Searcher(self.task.game.dialect)

    def _snapshot(self) -> State:
        if self._reference is not None:
            raise UnsupportedOperationError("The reference engine cannot save a state; engine='native' can.")
        return self._state.copy()

    def _restore(self, world: object) -> None:
        assert isinstance(world, State)
        self._state = world.copy()


class ALFWorldRoomEnv(ALFWorldEnv):
    """## Generated rooms
    Rooms without end, furnished like the official ones: what stands there, what lies where and what is asked for follow
    the statistics of the official training games.

    | axis | knob | range |
    | --- | --- | --- |
    | `state_size` | `receptacles` | 3 to 100 |
    | `action_size` | `objects` | 1 to 300 |
    | `solution_length` | `solution_length` | exact; set by the task types, `place` and `goals` otherwise |
    | | `exploration` | expected turns of a systematic searcher, (least, most) |

    Args:
        dialect: "move" or "put".
        state_size: another name of `receptacles`.
        action_size: another name of `objects`.
        options: the knobs of `textagent_gym.domains.alfworld.generator.RoomSpec`, and the arguments of `ALFWorldEnv`
            and `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such room exists.
    """

    def __init__(
        self,
        *,
        dialect: Dialect = "move",
        state_size: int | None = None,
        action_size: int | None = None,
        **options: Any,
    ) -> None:
        for axis, value, knob in (("state_size", state_size, "receptacles"), ("action_size", action_size, "objects")):
            if value is not None:
                if knob in options:
                    raise InvalidOptionError(f"{axis} and {knob} are the same; give one of them")
                options[knob] = value
        names = {knob.name for knob in fields(RoomSpec)}
        knobs = {name: options.pop(name) for name in list(options) if name in names}
        for name in ("task_types", "exploration"):
            if knobs.get(name) is not None:
                knobs[name] = (knobs[name],) if isinstance(knobs[name], str) else tuple(knobs[name])
        unknown = set(options) - set(TextEnvKwargs.__annotations__) - {"engine", "feedback"}
        if unknown:
            raise InvalidOptionError(
                f"{', '.join(sorted(unknown))}: no such option; there are {', '.join(sorted(names))}"
            )
        if options.get("engine") == "reference" and dialect != "move":
            raise InvalidOptionError("engine='reference' speaks the dialect 'move' in generated rooms")
        self._rooms = GeneratedTasks(RoomSpec(**knobs), dialect)
        super().__init__(self._rooms, **options)

    def _original(self, task: ALFWorldTask) -> dict[str, Any]:
        return self._rooms.original(task)


class ALFWorldOfficialEnv(ALFWorldEnv):
    """## Official games
    The games of ALFWorld's release.

    Args:
        data: folder that holds them; by default what `ALFWORLD_DATA` names, or where upstream downloads them to.
        task_types: which of "pick", "look", "clean", "heat", "cool" and "two"; all by default.
        dialect: "move" or "put"; by default what the release says.
        shuffle: a seed: number the things of a kind in another order, as `AlfredDemangler(shuffle=True)` does.
        kwargs: the arguments of `ALFWorldEnv` and `TextEnv`. `split` is "train", "valid_seen", "valid_unseen" or
            "valid_train".

    Raises:
        MissingDataError: the games are not there; the message says how to get them.
        InvalidOptionError: an argument has a value that does not exist.
    """

    def __init__(
        self,
        *,
        data: str | None = None,
        task_types: Sequence[str] | None = None,
        dialect: Dialect | None = None,
        shuffle: int | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("engine") == "reference" and (dialect is not None or shuffle is not None):
            raise InvalidOptionError("engine='reference' plays a game as its file says: leave out dialect and shuffle")
        self._official = OfficialTasks(data, task_types, dialect, shuffle)
        super().__init__(self._official, **kwargs)

    def _original(self, task: ALFWorldTask) -> dict[str, Any]:
        return self._official.games.read(task.game.id)
