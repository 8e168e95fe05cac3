"""Nothing that an agent does makes a step raise, and nothing that breaks is held against the wrong one."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection
from typing import Any

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.domains.swe.conftest import bash
from textagent_gym.calls import ActionError
from textagent_gym.domains.swe.env import SWEEnv, not_counted
from textagent_gym.domains.swe.grading.grader import Grade
from textagent_gym.domains.swe.mutants.env import SWERepairEnv
from textagent_gym.domains.swe.tools import TOOLS, command, parse
from textagent_gym.sandbox import BY_NAME, Changes, ReadingOrder, Result, Sandbox, SandboxError, TreeChanges

Make = Callable[..., gymnasium.Env[str, str]]

HUGE = "9" * 5000
ODD = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    [
        "",
        "\0",
        "\ud800",
        "\x1b[2J",
        "'",
        '"',
        "$(",
        "`",
        "-",
        "--",
        "..",
        "/",
        "\\",
        "\r\n",
        "~",
        "*",
        HUGE,
        "-1",
        "٣",
        "1e9",
        "x" * 5000,
    ]
)
VALUES = st.recursive(
    ODD | st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=4,
)
PARAMETERS = st.sampled_from(["path", "first", "last", "old", "new", "content", "pattern", "command"])
EDITOR = st.sampled_from(
    [
        "open",
        "goto",
        "edit",
        "create",
        "scroll_up",
        "scroll_down",
        "search_dir",
        "search_file",
        "find_file",
        "run_tests",
    ]
)


def function_call(name: str, arguments: object, style: int) -> str:
    """A call as models write it: plain, with its arguments as text, or as in an OpenAI message."""
    if style == 1:
        arguments = json.dumps(arguments)
    call = {"name": name, "arguments": arguments}
    return json.dumps(call if style < 2 else {"id": "x", "function": call})


FUNCTIONS = st.builds(
    function_call,
    st.sampled_from([tool.name for tool in TOOLS["all"][:-1]]) | ODD,
    st.dictionaries(PARAMETERS | ODD, VALUES, max_size=4) | VALUES,
    st.integers(0, 2),
)
EDITS = st.builds(
    lambda word, argument, body: f"{word} {argument}\n{body}\nend_of_edit",
    EDITOR,
    ODD | st.builds(lambda a, b: f"{a}:{b}", ODD | st.integers(), ODD | st.integers()) | st.just(f"measures {HUGE}"),
    ODD,
)
BLOCKS = st.builds(lambda text, end: f"```bash\n{text}\n{end}", ODD, st.sampled_from(["```", "", "```\n```"]))
ACTIONS = ODD | FUNCTIONS | EDITS | BLOCKS
FORMATS = st.sampled_from(
    [("shell", "bash"), ("all", "functions"), ("edit", "functions"), ("all", "editor"), ("edit", "editor")]
)
DEEP = [
    "[" * 100_000,
    '{"name": ' * 100_000,
    '{"name": "view", "arguments": ' + "[" * 100_000 + "]" * 100_000 + "}",
    json.dumps({"name": "view", "arguments": "[" * 100_000}),
    json.dumps({"name": "view", "arguments": {"path": "measures", "first": 1}}).replace("1}", HUGE + "}"),
    json.dumps({"name": "view", "arguments": {"path": "measures", "first": False}}),
    json.dumps({"name": "view", "arguments": {"path": "a\0b"}}),
    json.dumps({"name": "\x1b[2J" * 10_000, "arguments": {}}),
    f"edit {HUGE}:1\nx\nend_of_edit",
    f"edit 1:{HUGE}\nx\nend_of_edit",
    f"goto {HUGE}",
    f"open measures/sizes.py {HUGE}",
    "open measures/sizes.py 999999999",
    "search_dir " + "'" * 9_999,
    "```bash\n" * 50_000,
]


@given(ACTIONS | st.sampled_from(DEEP), FORMATS)
@settings(max_examples=400)
def test_every_action_is_a_command_or_a_reason(action: str, form: tuple[str, Any]) -> None:
    tools, action_format = form
    try:
        call = parse(action, TOOLS[tools], action_format)
    except ActionError:
        return
    if call.tool not in ("goto", "scroll", "edit_lines", "submit"):
        assert "\0" not in command(call)


@pytest.fixture(scope="module")
def played() -> Any:
    """An environment for each way to act, in a sandbox that keeps everything in; skipped where there is none."""
    made: dict[tuple[str, str], Any] = {}

    def env(tools: str, action_format: str) -> gymnasium.Env[str, str]:
        if (tools, action_format) not in made:
            options = {"tools": tools, "action_format": action_format, "command_timeout": 2.0, "max_turns": 100_000}
            made[tools, action_format] = gymnasium.make("textagent/SWE-v0", **options)
            made[tools, action_format].reset(options={"task_index": 0})
        return made[tools, action_format]

    yield env
    for one in made.values():
        one.close()


def check_text(text: str) -> None:
    """Fail if a text would do anything to a terminal."""
    odd = {character for character in text if unicodedata.category(character) in ("Cc", "Cs")} - {"\n", "\t"}
    assert not odd
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.usefixtures("_a_sandbox_can_be_had")
@given(action=ACTIONS, form=FORMATS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_every_action_is_answered(played: Any, action: str, form: tuple[str, str]) -> None:
    env = played(*form)
    said, reward, terminated, truncated, _ = env.step(action)
    assert said
    check_text(said)
    assert (reward, truncated) == (0.0, False)
    if terminated:
        env.reset(options={"task_index": 0})


@pytest.mark.usefixtures("_a_sandbox_can_be_had")
@pytest.mark.parametrize("action", DEEP, ids=lambda action: repr(action[:30]))
@pytest.mark.parametrize("form", [("all", "functions"), ("all", "editor")], ids=lambda form: form[1])
def test_depth_and_size_are_answered(played: Any, action: str, form: tuple[str, str]) -> None:
    env = played(*form)
    if form[1] == "editor":
        env.step("open measures/sizes.py")
    said, *_ = env.step(action)
    assert said
    assert len(said) < 11_000
    check_text(said)


def test_terminals_are_not_sent_what_agents_print(make: Make) -> None:
    env = make(render_mode="ansi")
    env.reset(options={"task_index": 0})
    said, *_ = env.step(bash(r"printf 'a\tb\e]0;title\a\x9b1m\r\n\xe2\x80\xae\0'"))
    check_text(said)
    assert said.startswith("a\tb␛]0;title␇")
    assert env.render() == said


TREES = {
    "nested folders": "for i in $(seq 1200); do mkdir d && cd d; done; cd $TESTBED",
    "a path that is too long": (
        "for i in $(seq 30); do d=$(printf 'd%.0s' $(seq 200)); mkdir $d && cd $d; done; echo > x.py; cd $TESTBED"
    ),
    "a file in the place of the code": "rm -rf measures; echo x > measures",
    "a folder in the place of settings": "rm pyproject.toml; mkdir pyproject.toml; echo > pyproject.toml/x.py",
    "a folder in the place of a test": "cd tests; rm test_sizes.py; mkdir test_sizes.py; echo > test_sizes.py/x.py",
    "a file in the place of the tests": "rm -rf tests; echo > tests",
    "large empty files": "for i in $(seq 300); do truncate -s 1M s$i.py; done",
    "files that come and go": "(while :; do for i in 1 2 3; do echo > x$i; rm x$i; done; done) 2>/dev/null & sleep 0.2",
    "nothing to be read": "chmod 000 measures/*.py measures tests .",
    "special files": "mkfifo measures/pipe; ln -sf pipe measures/sizes.py; ln -s / root; ln -s loop loop",
    "names": "touch $'\\xff.py' $'a\\nb.py' $'\\e[2J.py' ' ' '-rf' '*' 'measures/\u202e.py'",
    "no tree": "rm -rf .git * .[a-z]*",
    "another tree": "rm -rf *; git init -q x; mkdir -p measures/__init__.py/tests; touch measures/*/tests/test_a.py",
}


@pytest.mark.parametrize("sandbox", ["auto", pytest.param("process", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_every_tree_is_graded_and_worth_nothing(
    make: Make, tree: str, sandbox: str, caplog: pytest.LogCaptureFixture
) -> None:
    env = make(sandbox=sandbox, command_timeout=30.0)
    env.reset(options={"task_index": 0})
    env.step(bash(tree))
    env.unwrapped.oracle()
    said, reward, terminated, _, info = env.step(bash("submit"))
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    check_text(said)
    env.reset(options={"task_index": 0})
    for action in env.unwrapped.oracle():
        *_, info = env.step(action)
    assert info["success"]
    assert "takes its place" not in caplog.text


def test_a_flood_of_processes_is_graded(make: Make) -> None:
    env = make(command_timeout=5.0)
    env.reset(options={"task_index": 0})
    repair, submit = env.unwrapped.oracle()
    env.step(repair)
    env.step(bash("f() { f | f & }; f; sleep 1"))
    *_, info = env.step(submit)
    assert info["success"]


class Scripted(Sandbox):
    """A sandbox that fails when it is told to, and otherwise does nothing.

    Attributes:
        broken: what fails in the sandboxes that are made: "run", "changes", "grade".
        for_ever: new sandboxes fail too.
    """

    name = "scripted"
    broken: Collection[str] = ()
    for_ever = False
    made = 0
    files: Changes = {}  # noqa: RUF012 (set by a test)

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1

    def fails(self, what: str) -> bool:
        return what in self.broken and (self.for_ever or self.made == 1)

    def begin(self, layers: Any, environment: Any, *, image: str = "") -> None: ...

    def run(self, command: str, timeout: float) -> Result:
        if self.fails("run"):
            raise BrokenPipeError("gone")
        return Result("done", 0)

    def changes(self, skip: Collection[str] = (), order: ReadingOrder = BY_NAME) -> TreeChanges:
        if self.fails("changes"):
            raise SandboxError("gone")
        return TreeChanges(dict(self.files), tuple(f"big{number}.py is too large." for number in range(14)))

    def ask(self, layers: Any, files: Any, **_: Any) -> Any:
        raise AssertionError

    def close(self) -> None: ...


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, task: Any) -> Callable[..., tuple[Any, type[Scripted]]]:
    """An environment whose sandboxes are scripted, and their class."""

    def one(grades: Callable[[Changes], Grade] = lambda _: Grade(), **options: Any) -> tuple[Any, type[Scripted]]:
        kind = type("Own", (Scripted,), {})
        env: Any = gymnasium.make("textagent/SWE-v0", sandbox="process", **options)
        monkeypatch.setattr(env.unwrapped, "_make_sandbox", lambda limits: kind())

        def graded(changes: Changes) -> Grade:
            if env.unwrapped.sandbox.fails("grade"):
                raise SandboxError("gone")
            return grades(changes)

        monkeypatch.setattr(env.unwrapped, "_run_tests", graded)
        env.reset(options={"task": task.id})
        return env, kind

    return one


def test_a_sandbox_that_is_lost_in_a_command_is_replaced_once(scripted: Any, caplog: Any) -> None:
    env, kind = scripted()
    kind.broken = ("run",)
    said, reward, terminated, truncated, _ = env.step(bash("ls"))
    assert "The sandbox has ended, and with it all that was changed" in said
    assert (reward, terminated, truncated, kind.made) == (0.0, False, False, 2)
    assert "a new one takes its place: gone" in caplog.text
    assert env.step(bash("ls"))[0] == "done"


@pytest.mark.parametrize("broken", ["changes", "grade"])
def test_a_grading_that_fails_is_made_once_more_and_then_the_machine_is_to_blame(scripted: Any, broken: str) -> None:
    env, kind = scripted()
    kind.files = {"measures/sizes.py": b""}
    kind.broken = (broken,)
    *_, terminated, _, info = env.step(bash("submit"))
    assert (terminated, info["success"]) == (True, False)
    assert kind.made == 2

    env, kind = scripted()
    kind.files = {"measures/sizes.py": b""}
    kind.broken, kind.for_ever = (broken,), True
    _, reward, terminated, truncated, info = env.step(bash("submit"))
    assert (reward, terminated, truncated, info["broken"]) == (0.0, False, True, "gone")


def test_changes_that_no_sandbox_survives_are_worth_nothing(scripted: Any) -> None:
    def grades(changes: Changes) -> Grade:
        if "measures/sizes.py" in changes:
            raise SandboxError("gone")
        return Grade(missing=("x",))

    env, kind = scripted(grades)
    kind.files = {"measures/sizes.py": b""}
    said, reward, terminated, _, info = env.step(bash("submit"))
    assert said.startswith("Submitted. 0 of")
    assert (reward, terminated, info["success"]) == (0.0, True, False)


def test_a_forged_report_ends_the_episode(scripted: Any) -> None:
    env, kind = scripted(lambda _: Grade(missing=("x",), forged="somebody lies"), reward_at="turn")
    assert not env.step(bash("ls"))[2]
    kind.files = {"measures/sizes.py": b""}
    said, reward, terminated, truncated, info = env.step(bash("ls"))
    assert (said, reward, terminated, truncated, info["success"]) == ("done", 0.0, True, False, False)


def test_the_third_report_that_does_not_come_ends_the_episode(scripted: Any) -> None:
    env, kind = scripted(lambda _: Grade(missing=("x",), timed_out=True), reward_at="turn")
    ended = []
    for number in (1, 1, 2, 3):
        kind.files = {"measures/sizes.py": bytes([number])}
        said, reward, terminated, *_ = env.step(bash("ls"))
        assert (said, reward) == ("done", 0.0)
        ended.append(terminated)
    assert ended == [False, False, False, True]


@pytest.mark.parametrize("reward_at", ["submit", "turn"])
@pytest.mark.parametrize("density", ["sparse", "dense"])
def test_what_does_not_count_is_said_at_the_end_and_only_there(scripted: Any, reward_at: str, density: str) -> None:
    env, kind = scripted(lambda _: Grade(missing=("x",)), reward_at=reward_at, reward_density=density)
    kind.files = {"tests/test_x.py": b""}
    assert env.step(bash("ls"))[0] == "done"
    said = env.step(bash("submit"))[0].splitlines()
    assert said[:3] == [
        "Submitted. Nothing that counts has been changed.",
        "Not taken into account:",
        "- big0.py is too large.",
    ]
    assert said[-1] == "- 6 more."
    assert len(said) == 12


def test_nothing_is_said_of_nothing() -> None:
    assert not_counted([]) == ""
    assert not_counted(["a."] * 10).count("\n") == 11
    assert issubclass(SWERepairEnv, SWEEnv)
