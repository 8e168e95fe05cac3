"""ScienceWorld as a Gymnasium environment."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from textagent_gym.action_format import ActionOptions
from textagent_gym.calls import ActionError, Tool, ask_for_functions, parse_function, render_function
from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.scienceworld.functions import TOOLS, call_of, command_of
from textagent_gym.domains.scienceworld.gold import gold_path
from textagent_gym.domains.scienceworld.server import NOT_UNDERSTOOD, Server, give, take
from textagent_gym.domains.scienceworld.tasks import ScienceWorldOptions, ScienceWorldTasks
from textagent_gym.knobs import OptionsClass, accepts, arguments_of, check_names
from textagent_gym.options import TextEnvKwargs
from textagent_gym.registration import SCIENCEWORLD, require
from textagent_gym.tasks import Task

_RULES = """\
You carry out a task of primary school science in a small world of rooms. Each turn, {commands}

Where a name means several things, the answer is a numbered list: {choose}. Focus only on what the task tells you to \
focus on."""
_COMMANDS = """\
write one command:

open OBJECT, close OBJECT: a door or a container
go LOCATION: to a room next to this one, through an open door
teleport LOCATION: to any room, in worlds that have it
look around, look at OBJECT, look in OBJECT: what is there
activate OBJECT, deactivate OBJECT: switch a device on or off
use OBJECT, use OBJECT on OBJECT: such as a thermometer on a liquid
read OBJECT: what is written on it
pick up OBJECT, put down OBJECT: into what you carry, and out again
move OBJECT to OBJECT: into a container
pour OBJECT into OBJECT, dunk OBJECT into OBJECT: liquids
mix OBJECT: what is in a container
connect OBJECT to OBJECT, disconnect OBJECT: parts of a circuit, such as `anode in battery`
eat OBJECT, flush OBJECT
focus on OBJECT: say that this is what the task asks for; the wrong object loses the task
inventory: what you carry
task: what is to be done
wait, wait1: let ten turns pass, or one
reset task: forget progress and focus, not what has happened in the world"""


class ScienceWorldKwargs(TextEnvKwargs, total=False):
    """Keyword arguments of `ScienceWorldEnv`, for editors."""

    action_format: Literal["commands", "functions"]
    task_types: str | Sequence[str] | None
    variations: int | None
    simplifications: str | Sequence[str] | None
    state_size: Sequence[int] | None
    action_size: Sequence[int] | None
    solution_length: Sequence[int] | None


class ScienceWorldEnv(TextEnv[Task]):
    """# ScienceWorld

    ## Description
    Carry out a task of primary school science: boil water, build a circuit, grow a plant, cross peas. The simulator is
    that of ScienceWorld (Wang et al., 2022, arXiv 2203.07540), version 1.2.3, in Java.
    `pip install "textagent-gym[scienceworld]"` brings all but Java 8 or newer, which on Debian and Ubuntu is
    `apt-get install openjdk-17-jre-headless`.

    ## Actions
    Commands in plain words, such as `go kitchen`, `pick up thermometer`, `use thermometer on water`, `focus on water`;
    `instructions` lists them all. Where a name means several things, the answer is a numbered list, and the next action
    is a number. What the simulator does not understand costs a turn and is not valid: no command, or one that names a
    thing that is not in reach, such as `use thermometer` where there is none. What it understands and cannot do counts
    as valid: it does not say which it was. With `action_format="functions"` an action is a call as a JSON object; see
    `tools`.

    ## Observations
    The simulator's own texts. The first one is the task and then the room.

        Your task is to boil water. For compounds without a boiling point, combusting the substance is also acceptable.
        First, focus on the substance. Then, take actions that will cause it to change its state of matter.

        This room is called the hallway. In it, you see:
        ...

    `observation_format="upstream"` is the same.

    ## Rewards
    The simulator's score, 0 to 100, is `info["score"]` as 0.0 to 1.0. Success is a score of 100 and nothing else.
    `reward_density` pays the changes of the score; a solved episode returns 1.0, any other one less. Focusing on the
    wrong object, for which the simulator gives -100, ends the episode: it counts as score 0, and what was paid is taken
    back. The turn budget is 200; upstream's is 100, and the longest gold path recorded has 193 actions.

    ## Difficulty
    What makes a task hard is the task. `task_types` chooses among the 30, `variations` bounds how many of each are
    played, `simplifications` make worlds simpler: "noElectricalAction" leaves about a third of the valid actions.
    A gold path, which the simulator computes, is an upper bound of the solution length (`exact` is false). `complexity`
    holds it where it comes with the package, as it does for the first variation of each task in each split, without
    simplifications.

    | knob | chooses among the measured tasks by | measured |
    | --- | --- | --- |
    | `state_size` | objects at the beginning | 396 to 471; all worlds are one house |
    | `action_size` | valid actions along the gold path, on average | 379 to 3,221; without electricity 136 to 1,196 |
    | `solution_length` | actions of the gold path | 3 to 193 |

    Such a range, as in `solution_length=(100, 193)`, makes no task and changes none: it leaves those of the tasks with
    a gold path in the package that are in it, 30 in "train", 30 in "dev" and 271 in "test". Action sizes were measured
    along the paths of up to 20 actions, without simplifications and with "noElectricalAction" where that takes nothing
    away that the path needs. All three are in `complexity` of tasks that a range has chosen, and only there.

    `expert()` follows a gold path. It knows the path beforehand: it does not show what can be found out by reading.
    After an action of somebody else it continues with the next action of the path, which may not be possible any more.

    ## Registered ids
    `textagent/ScienceWorld-v0`: all tasks. One task each, with its numbers of variations:

    | id | train | dev | test |
    | --- | --- | --- | --- |
    | `textagent/ScienceWorld-boil-v0` | 14 | 7 | 9 |
    | `textagent/ScienceWorld-melt-v0` | 14 | 7 | 9 |
    | `textagent/ScienceWorld-freeze-v0` | 14 | 7 | 9 |
    | `textagent/ScienceWorld-change-the-state-of-matter-of-v0` | 14 | 7 | 9 |
    | `textagent/ScienceWorld-use-thermometer-v0` | 270 | 135 | 135 |
    | `textagent/ScienceWorld-measure-melting-point-known-substance-v0` | 218 | 109 | 109 |
    | `textagent/ScienceWorld-measure-melting-point-unknown-substance-v0` | 150 | 75 | 75 |
    | `textagent/ScienceWorld-power-component-v0` | 10 | 5 | 5 |
    | `textagent/ScienceWorld-power-component-renewable-vs-nonrenewable-energy-v0` | 10 | 5 | 5 |
    | `textagent/ScienceWorld-test-conductivity-v0` | 450 | 225 | 225 |
    | `textagent/ScienceWorld-test-conductivity-of-unknown-substances-v0` | 300 | 150 | 150 |
    | `textagent/ScienceWorld-find-living-thing-v0` | 150 | 75 | 75 |
    | `textagent/ScienceWorld-find-non-living-thing-v0` | 150 | 75 | 75 |
    | `textagent/ScienceWorld-find-plant-v0` | 150 | 75 | 75 |
    | `textagent/ScienceWorld-find-animal-v0` | 150 | 75 | 75 |
    | `textagent/ScienceWorld-grow-plant-v0` | 62 | 31 | 33 |
    | `textagent/ScienceWorld-grow-fruit-v0` | 62 | 31 | 33 |
    | `textagent/ScienceWorld-chemistry-mix-v0` | 16 | 8 | 8 |
    | `textagent/ScienceWorld-chemistry-mix-paint-secondary-color-v0` | 18 | 9 | 9 |
    | `textagent/ScienceWorld-chemistry-mix-paint-tertiary-color-v0` | 18 | 9 | 9 |
    | `textagent/ScienceWorld-lifespan-longest-lived-v0` | 62 | 31 | 32 |
    | `textagent/ScienceWorld-lifespan-shortest-lived-v0` | 62 | 31 | 32 |
    | `textagent/ScienceWorld-lifespan-longest-lived-then-shortest-lived-v0` | 62 | 31 | 32 |
    | `textagent/ScienceWorld-identify-life-stages-1-v0` | 6 | 3 | 5 |
    | `textagent/ScienceWorld-identify-life-stages-2-v0` | 4 | 2 | 4 |
    | `textagent/ScienceWorld-inclined-plane-determine-angle-v0` | 84 | 42 | 42 |
    | `textagent/ScienceWorld-inclined-plane-friction-named-surfaces-v0` | 692 | 346 | 348 |
    | `textagent/ScienceWorld-inclined-plane-friction-unnamed-surfaces-v0` | 80 | 40 | 42 |
    | `textagent/ScienceWorld-mendelian-genetics-known-plant-v0` | 60 | 30 | 30 |
    | `textagent/ScienceWorld-mendelian-genetics-unknown-plant-v0` | 240 | 120 | 120 |

    Args:
        options: knobs of `textagent_gym.domains.scienceworld.tasks.ScienceWorldOptions` and of
            `textagent_gym.action_format.ActionOptions`, and the arguments of `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        MissingDependencyError: the extra `scienceworld` is not installed.
        MissingJavaError: there is no Java; raised at the first reset.
    """

    default_max_turns = 200
    scored = True
    pays = "score"
    idle_actions = ("look", "inventory", "task", "read")

    @accepts(ScienceWorldOptions, ActionOptions)
    def __init__(self, **options: Unpack[ScienceWorldKwargs]) -> None:
        check_names("ScienceWorld", options, ScienceWorldOptions, ActionOptions)
        source = ScienceWorldTasks(ScienceWorldOptions.of(options))
        self.action_format = ActionOptions.of(options).action_format
        require(SCIENCEWORLD)
        super().__init__(source, **arguments_of(TextEnvKwargs, options))
        self._source = source
        self._server: Server | None = None
        self._give_back: weakref.finalize[..., Any] | None = None

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return ScienceWorldOptions, ActionOptions

    @property
    def instructions(self) -> str:
        """See `TextEnv`."""
        if self.tools:
            return _RULES.format(commands=ask_for_functions(self.tools), choose="choose one")
        return _RULES.format(commands=_COMMANDS, choose="write the number, such as 0")

    @property
    def tools(self) -> tuple[Tool, ...]:
        """See `TextEnv`."""
        return TOOLS if self.action_format == "functions" else ()

    @property
    def server(self) -> Server:
        """The simulator in use; its first call starts it."""
        if self._server is None:
            self._server = take()
            self._give_back = weakref.finalize(self, give, self._server)
        return self._server

    def close(self) -> None:
        """Leave the simulator to the next environment."""
        self._abandon()
        super().close()

    def _begin(self, task: Task) -> str:
        name, variation = self._source.world(task)
        self.server.load(name, variation, self._source.options.simplified)
        return f"{self.server.description()}\n\n{self.server.step('look around')}"

    def _act(self, action: str) -> Outcome:
        try:
            command = command_of(parse_function(action, TOOLS)) if self.tools else action
        except ActionError as error:
            return Outcome(str(error), valid=False)
        observation = self.server.step(command)
        score, completed = self.server.score(), self.server.completed()
        return Outcome(
            observation,
            valid=not observation.startswith(NOT_UNDERSTOOD),
            success=score == 100,
            failure=score < 0 or completed,
            score=score / 100,
        )

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted({self._worded(command) for command in self.server.valid_actions()}))

    def _expert(self) -> _GoldPathFollower:
        name, variation = self._source.world(self.task)
        path = gold_path(name, variation, self._source.options.simplified).actions
        return _GoldPathFollower(tuple(map(self._worded, path)), self._worded("look around"))

    def _worded(self, command: str) -> str:
        """A command in the format in use."""
        return render_function(call_of(command)) if self.tools else command

    def _abandon(self) -> None:
        if self._give_back is not None:
            self._give_back()  # A process that has ended is not kept.
        self._server = self._give_back = None


class _GoldPathFollower:
    """Follows a gold path; what somebody else did in between does not count."""

    def __init__(self, path: Sequence[str], idle: str) -> None:
        self._path = path
        self._idle = idle
        self._done = 0

    def observe(self, action: str | None, observation: str) -> None:
        """See `Expert`."""
        if action == self.action():
            self._done += 1

    def action(self) -> str:
        """See `Expert`."""
        return self._path[self._done] if self._done < len(self._path) else self._idle
