"""BabyAI as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from textagent_gym.action_format import ActionOptions
from textagent_gym.calls import ActionError, Call, Parameter, Tool, ask_for_functions, parse_function, render_function
from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.babyai import agentgym_answers
from textagent_gym.domains.babyai.commands import (
    PRIMITIVE,
    WALKS,
    Command,
    admissible,
    macro_command,
    normalize,
    primitive_command,
)
from textagent_gym.domains.babyai.grid import State, World
from textagent_gym.domains.babyai.levels import GridSpec, LevelSpec
from textagent_gym.domains.babyai.planner import solve
from textagent_gym.domains.babyai.tasks import BabyAITasks, view_of
from textagent_gym.domains.babyai.texts import TextFormat, describe, goal
from textagent_gym.errors import InvalidOptionError
from textagent_gym.expert import Expert
from textagent_gym.knobs import OptionsClass, accepts, arguments_of, check_names, knob
from textagent_gym.options import TextEnvKwargs
from textagent_gym.tasks import Task

_THING = Parameter("target", "color, kind and number of what is seen, such as `red ball 1`")
_DOOR = Parameter("target", "color, state and number of a door that is seen, such as `grey closed door 1`")
PRIMITIVE_TOOLS = (
    Tool("turn_left", "Turn left on the spot."),
    Tool("turn_right", "Turn right on the spot."),
    Tool("move_forward", "Take a step."),
    Tool("pick_up", "Pick up what is right in front."),
    Tool("drop", "Drop what is carried, right in front."),
    Tool("toggle", "Open or close the door right in front, or open the box there, which destroys it."),
)
"""What an action may call with `action_format="functions"` and `actions="primitive"`."""
MACRO_TOOLS = (
    *(tool for tool in PRIMITIVE_TOOLS if tool.name != "pick_up"),
    Tool(
        "pick_up", "Walk to a key, ball or box and pick it up; without a target, pick up what is right in front.",
        (Parameter("target", _THING.description, required=False),),
    ),
    Tool("go_to", "Walk until a thing is right in front.", (_THING,)),
    Tool("go_through", "Walk into an open door.", (_DOOR,)),
    Tool("toggle_and_go_through", "Walk to a closed or locked door, open it and step into it.", (_DOOR,)),
)  # fmt: skip
"""The same with `actions="macro"`."""
_RULES = """\
You are in a world of rooms, and the first observation states a goal. You see the square of cells ahead of you, as far \
as walls and closed doors let you. Each turn, write one command:

{commands}

A locked door opens with a key of its color that you carry. You carry one thing at a time. `then` and `after you` in \
the goal say what has to be done first; "go to" means to stand in front of a thing and face it."""
_COMMANDS = """\
turn left
turn right
move forward
pick up: pick up what is right in front of you
drop: drop what you carry, right in front of you
toggle: open or close the door right in front of you, or open the box there, which destroys it"""
_WALKS = """
go to THING: walk until it is right in front of you, such as `go to red ball 1`
pick up THING: walk to it and pick it up
go through DOOR: walk into an open door, such as `go through grey open door 1`
toggle and go through DOOR: walk to a closed or locked door, open it and step into it"""


@dataclass(frozen=True, kw_only=True)
class TextOptions(ActionOptions):
    """How actions and observations are worded."""

    text_format: TextFormat = knob("concise", 'wording of observations: "concise", or that of "agentgym" or "balrog"')


class BabyAIKwargs(TextEnvKwargs, total=False):
    """Keyword arguments of every `BabyAIEnv`, for editors."""

    text_format: TextFormat
    action_format: Literal["commands", "functions"]


class LevelKwargs(BabyAIKwargs, total=False):
    """Keyword arguments of `BabyAILevelEnv`, for editors."""

    level: str
    actions: Literal["macro", "primitive"]
    view_size: int


class GridKwargs(BabyAIKwargs, total=False):
    """Keyword arguments of `BabyAIGridEnv`, for editors."""

    actions: Literal["macro", "primitive"]
    view_size: int
    rows: int
    columns: int
    room_size: int
    objects: int
    clauses: int
    kinds: tuple[str, ...]
    locations: bool
    doors_open: bool
    locked_room: bool
    solution_length: int | None
    state_size: int


class BabyAIEnv(TextEnv[Task]):
    """# BabyAI

    ## Description
    Follow an instruction in rooms of keys, balls, boxes and doors, of which only what lies ahead is seen (Chevalier-
    Boisvert et al., 2019, "BabyAI", arXiv 1810.08272). Levels are drawn by Minigrid; the rules and the view are its
    own, in an engine that needs no arrays.

    ## Actions
    | command | effect |
    | --- | --- |
    | `turn left`, `turn right`, `move forward` | as they say |
    | `pick up`, `drop` | take or put down a thing right in front; one thing is carried at a time |
    | `toggle` | open or close the door right in front, or open the box there, which destroys it |
    | `go to THING` | walk until it is right in front |
    | `pick up THING` | walk to it and pick it up |
    | `go through DOOR` | walk into an open door |
    | `toggle and go through DOOR` | walk to a closed or locked door, open it and step into it |

    The last four exist with `actions="macro"`, the default. They walk the shortest way over cells that are seen, and
    stop as soon as the instruction has been followed. `pickup` and `go forward` are understood too. A command that
    would change nothing costs a turn and says why. With `action_format="functions"` an action is a call as a JSON
    object; see `tools`.

    ## Observations
    The goal at reset; at each turn what is seen, with steps ahead and to the side, and what is carried.

        Goal: go to the red ball.
        You see: red ball 1, 3 ahead 1 left; grey closed door 1, 4 ahead. Wall 5 ahead. You carry: nothing.

    `text_format="agentgym"` says it in AgentGym's sentences, `"balrog"` in BALROG's lines.
    `observation_format="upstream"` means AgentGym's, and refuses as AgentGym does, with `No change in state.`, `The
    action is not recognized. Please check valid actions.` and its like; `check available actions` lists actions then.

    ## Rewards
    Milestones: each clause of the instruction, such as `go to the red ball`, done in its order. `reward_density` says
    which of them pay. Some levels are lost by opening or picking up the wrong thing.

    Args:
        tasks: source of the levels.
        options: knobs of `TextOptions`, and the arguments of `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.
    """

    @accepts(TextOptions)
    def __init__(self, tasks: BabyAITasks, **options: Unpack[BabyAIKwargs]) -> None:
        check_names("BabyAI", options, TextOptions)
        super().__init__(tasks, **arguments_of(TextEnvKwargs, options))
        wording = TextOptions.of(options)
        if self.observation_format == "upstream":
            if wording.text_format == "balrog":
                raise InvalidOptionError('observation_format="upstream" means text_format="agentgym", not "balrog"')
            wording = TextOptions(text_format="agentgym", action_format=wording.action_format)
        self.text_format, self.action_format = wording.text_format, wording.action_format
        self.actions, self.view_size = tasks.spec.actions, tasks.spec.view_size
        self._levels = tasks
        self._size = view_of(tasks.spec)
        self._world: World
        self._state: State

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        commands = _COMMANDS + (_WALKS if self._size else "")
        return _RULES.format(commands=ask_for_functions(self.tools) if self.tools else commands)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """See `TextEnv`."""
        if self.action_format == "commands":
            return ()
        return MACRO_TOOLS if self._size else PRIMITIVE_TOOLS

    def _begin(self, task: Task) -> str:
        self._world = self._levels.world(task)
        self._state = State(self._world)
        return f"{goal(self._world.mission, self.text_format)}\n{self._described()}"

    def _act(self, action: str) -> Outcome:
        state = self._state
        try:
            text = self._normalized(action)
        except ActionError as error:
            return Outcome(str(error), state.reached, valid=False)
        command = self._parsed(state, text)
        if command.refusal:
            return self._refused(text, command.refusal)
        for primitive in command.actions:
            state.step(primitive)
            if state.status != "continue":
                break
        text = self._described()
        if state.status == "success":
            text += "\n The task is completed." if self.text_format == "agentgym" else "\nThe goal has been reached."
        elif state.status == "failure":
            text += "\nThat was wrong, and the goal is out of reach."
        success, failure = state.status == "success", state.status == "failure"
        return Outcome(text, state.reached, success=success, failure=failure)

    def _refused(self, text: str, reason: str) -> Outcome:
        """The answer to an action that changes nothing."""
        state = self._state
        if self.observation_format == "upstream":
            if "check" in text:
                return Outcome(agentgym_answers.available_actions(state, self._size), state.reached)
            reason = agentgym_answers.refusal(state, text, self._size) or self._described()
        return Outcome(reason, state.reached, valid=False)

    def _described(self) -> str:
        return describe(self._state, self.view_size, self.text_format)

    def _normalized(self, action: str) -> str:
        """An action as a normalized command.

        Raises:
            ActionError: it is not a call of one of the tools.
        """
        return normalize(_command(parse_function(action, self.tools)) if self.tools else action)

    def _parsed(self, state: State, text: str) -> Command:
        """What a normalized command stands for."""
        return primitive_command(state, text) if self._size is None else macro_command(state, text, self._size)

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(map(self._worded, admissible(self._state, self._size))))

    def _oracle(self) -> tuple[str, ...] | None:
        plan = solve(self._state, self._size)
        return None if plan is None else tuple(map(self._worded, plan.commands))

    def _expert(self) -> Expert:
        from textagent_gym.domains.babyai.construction import draw
        from textagent_gym.domains.babyai.expert import BotExpert

        level = draw(self._levels.spec, self._levels.seed(self.task.split, self.task.index))
        return BotExpert(level, self._understood, self._worded)

    def _understood(self, state: State, action: str) -> Command:
        """What an action stands for; nothing, where it is not an action."""
        try:
            return self._parsed(state, self._normalized(action))
        except ActionError as error:
            return Command(refusal=str(error))

    def _snapshot(self) -> object:
        return self._state.copy()

    def _restore(self, world: object) -> None:
        assert isinstance(world, State)
        self._state = world.copy()
        self._world = world.world

    def _state_key(self) -> tuple[object, ...]:
        return self._state.key()

    def _worded(self, command: str) -> str:
        """A command in the format in use."""
        if not self.tools:
            return command
        if command in PRIMITIVE:
            return render_function(Call(command.replace(" ", "_")))
        verb = next(verb for verb in WALKS if command.startswith(verb))
        return render_function(Call(verb.replace(" ", "_"), {"target": command[len(verb) + 1 :]}))


def _command(call: Call) -> str:
    """The command that a call stands for."""
    return f"{call.tool.replace('_', ' ')} {call.arguments.get('target', '')}"


class BabyAIGridEnv(BabyAIEnv):
    """## Levels of any size
    Rooms in rows and columns, with doors between them, in the manner of BabyAI's own level generator.

    ## Difficulty
    | knob | values | axis |
    | --- | --- | --- |
    | `objects` | 1 to 40 | keys, balls and boxes, which is `state_size`, exactly |
    | `solution_length` | 1 to 100 | exactly, in the action set in use |
    | `rows`, `columns`, `room_size` | rooms | more to explore |
    | `clauses`, `kinds`, `locations` | the instruction | more to do, in an order |
    | `locked_room`, `doors_open` | doors | a key to find first |

    Where no `solution_length` is asked for, a measured one may be more than the shortest: `exact` is then false.

    More objects make plans of walks a little longer, as there is more in the way: in two rooms with `room_size=8`, 2.9
    actions with two objects and 3.4 with twenty. Plans of steps do not grow with them.

    ## Registered ids
    `textagent/BabyAI-v0`: two rooms, six objects, one clause.

    Args:
        options: knobs of `textagent_gym.domains.babyai.levels.GridSpec`, and the arguments of `BabyAIEnv` and
            `TextEnv`.

    Raises:
        MissingDependencyError: the package `minigrid` is not installed; raised at the first reset.
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such level was found; raised at the first reset.
    """

    @accepts(GridSpec, TextOptions)
    def __init__(self, **options: Unpack[GridKwargs]) -> None:
        check_names("BabyAI", options, *self.declared_options(options))
        super().__init__(BabyAITasks(GridSpec.of(options)), **arguments_of(BabyAIKwargs, options))

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return GridSpec, TextOptions


class BabyAILevelEnv(BabyAIEnv):
    """## Minigrid's levels
    The levels that AgentGym plays, each drawn by its own code in Minigrid.

    ## Difficulty
    As the level has it: each task's complexity is measured.

    ## Registered ids
    `textagent/BabyAI-GoToRedBallGrey-v0`, `textagent/BabyAI-GoToRedBall-v0`,
    `textagent/BabyAI-GoToRedBallNoDists-v0`, `textagent/BabyAI-GoToObjS6-v0`, `textagent/BabyAI-GoToLocalS8N7-v0`,
    `textagent/BabyAI-GoToObjMazeS7-v0`, `textagent/BabyAI-GoToImpUnlock-v0`, `textagent/BabyAI-GoToSeqS5R2-v0`,
    `textagent/BabyAI-GoToRedBlueBall-v0`, `textagent/BabyAI-GoToDoor-v0`, `textagent/BabyAI-GoToObjDoor-v0`,
    `textagent/BabyAI-Open-v0`, `textagent/BabyAI-OpenRedDoor-v0`, `textagent/BabyAI-OpenDoorLoc-v0`,
    `textagent/BabyAI-OpenRedBlueDoorsDebug-v0`, `textagent/BabyAI-OpenDoorsOrderN4Debug-v0`,
    `textagent/BabyAI-Pickup-v0`, `textagent/BabyAI-UnblockPickup-v0`, `textagent/BabyAI-PickupLoc-v0`,
    `textagent/BabyAI-PickupDistDebug-v0`, `textagent/BabyAI-PickupAbove-v0`,
    `textagent/BabyAI-PutNextLocalS6N4-v0`, `textagent/BabyAI-PutNextS7N4Carrying-v0`, `textagent/BabyAI-Unlock-v0`,
    `textagent/BabyAI-UnlockLocalDist-v0`, `textagent/BabyAI-KeyInBox-v0`, `textagent/BabyAI-UnlockPickupDist-v0`,
    `textagent/BabyAI-BlockedUnlockPickup-v0`, `textagent/BabyAI-UnlockToUnlock-v0`,
    `textagent/BabyAI-ActionObjDoor-v0`, `textagent/BabyAI-FindObjS7-v0`, `textagent/BabyAI-KeyCorridorS6R3-v0`,
    `textagent/BabyAI-OneRoomS20-v0`, `textagent/BabyAI-MoveTwoAcrossS8N9-v0`, `textagent/BabyAI-SynthS5R2-v0`,
    `textagent/BabyAI-SynthLoc-v0`, `textagent/BabyAI-SynthSeq-v0`, `textagent/BabyAI-MiniBossLevel-v0`,
    `textagent/BabyAI-BossLevel-v0`, `textagent/BabyAI-BossLevelNoUnlock-v0`.

    Args:
        options: knobs of `textagent_gym.domains.babyai.levels.LevelSpec`, and the arguments of `BabyAIEnv` and
            `TextEnv`.

    Raises:
        MissingDependencyError: the package `minigrid` is not installed; raised at the first reset.
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: the level cannot be drawn within its bound; raised at the first reset.
    """

    @accepts(LevelSpec, TextOptions)
    def __init__(self, **options: Unpack[LevelKwargs]) -> None:
        check_names("BabyAI's levels", options, *self.declared_options(options))
        super().__init__(BabyAITasks(LevelSpec.of(options)), **arguments_of(BabyAIKwargs, options))

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return LevelSpec, TextOptions
