"""What an agent can do with a repository, and the ways in which it can say so."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Literal

from textagent_gym.calls import ActionError, Call, Parameter, Tool, parse_block, parse_function, render_function

Tools = Literal["shell", "edit", "all"]
ActionFormat = Literal["bash", "functions", "editor"]

_LAST_LINE = 10**9  # No file has so many.
_TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "shell", "Run a command.", (Parameter("command", "bash command; the shell keeps its folder and variables"),)
        ),
        Tool(
            "view",
            "Show a file with line numbers, or list a folder.",
            (
                Parameter("path", "file or folder"),
                Parameter("first", "first line", "integer", required=False),
                Parameter("last", "last line", "integer", required=False),
            ),
        ),
        Tool(
            "replace",
            "Replace a piece of text in a file.",
            (
                Parameter("path", "file"),
                Parameter("old", "text that occurs exactly once in the file"),
                Parameter("new", "text that stands there afterwards"),
            ),
        ),
        Tool("create", "Write a file.", (Parameter("path", "file"), Parameter("content", "all of its text"))),
        Tool(
            "search",
            "Find lines that match.",
            (
                Parameter("pattern", "regular expression"),
                Parameter("path", "file or folder; everything by default", required=False),
            ),
        ),
        Tool(
            "run_tests",
            "Run the tests that are there.",
            (Parameter("path", "test file or test id; all tests by default", required=False),),
        ),
        Tool("submit", "Say that the work is done; the hidden tests decide."),
    )
}
TOOLS: dict[str, tuple[Tool, ...]] = {
    name: tuple(_TOOLS[tool] for tool in tools.split())
    for name, tools in {
        "shell": "shell submit",
        "edit": "view replace run_tests submit",
        "all": "shell view replace create search run_tests submit",
    }.items()
}
"""Sets of tools, from which the size of the action space follows."""
_EDITOR_CALLS = ("open", "goto", "scroll", "edit_lines", "find_file")  # What only the editor's commands call.


def instructions(tools: Sequence[Tool], action_format: ActionFormat) -> str:
    """How to act."""
    if action_format == "bash":
        return (
            "The repository is in $TESTBED, where the shell begins. Each turn, write one command in a block:\n\n"
            "```bash\nls\n```\n\n"
            "The shell keeps its folder and variables. The command `submit` says that the work is done."
        )
    if action_format == "functions":
        calls = "\n".join(json.dumps(tool.schema["function"]) for tool in tools)
        return (
            "Paths begin in the repository. Each turn, call one function as a JSON object with its name and arguments, "
            f'such as {{"name": "{tools[0].name}", "arguments": {{...}}}}. The functions:\n{calls}'
        )
    commands = "\n".join(f"  {line}" for line in _editor_help([tool.name for tool in tools]))
    return f"Paths begin in the repository. Each turn, write one command:\n{commands}"


def _editor_help(tools: Sequence[str]) -> list[str]:
    lines = ["open PATH [LINE]", "scroll_down", "scroll_up", "goto LINE"]
    lines += ["edit FIRST:LAST, the new lines, and a line with end_of_edit"]
    if "create" in tools:
        lines += ["create PATH, the lines, and a line with end_of_edit"]
    if "search" in tools:
        lines += ["search_dir PATTERN [PATH]", "search_file PATTERN [PATH]", "find_file NAME"]
    lines += ["run_tests [PATH]", "submit"]
    return lines + (["any other command is run by bash"] if "shell" in tools else [])


def parse(action: str, tools: Sequence[Tool], action_format: ActionFormat) -> Call:
    """What an action says to do.

    Raises:
        ActionError: it says nothing that can be done.
    """
    names = [tool.name for tool in tools]
    if action_format == "bash":
        text = parse_block(action)
        call = Call("submit") if text == "submit" else Call("shell", {"command": text})
    elif action_format == "functions":
        call = parse_function(action, tools)
    else:
        call = _parse_editor(action, names)
    if any(isinstance(value, str) and "\0" in value for value in call.arguments.values()):
        raise ActionError("The action contains a null character.")
    if call.tool not in names and not (action_format == "editor" and call.tool in _EDITOR_CALLS):
        raise ActionError(f"There is no {call.tool}; there are {', '.join(names)}.")
    return call


def _parse_editor(action: str, tools: Sequence[str]) -> Call:
    first, _, rest = action.strip().partition("\n")
    word, _, argument = first.strip().partition(" ")
    argument = argument.strip()
    if word in ("edit", "create"):
        body, end, _ = (rest + "\n").partition("end_of_edit\n")
        if not end:
            raise ActionError(f"{word} ends with a line that says end_of_edit.")
        if word == "create":
            return Call("create", {"path": _one(word, argument), "content": body})
        lines = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", argument)
        if lines is None:
            raise ActionError("edit needs two line numbers, such as edit 3:5.")
        return Call("edit_lines", {"first": int(lines[1]), "last": int(lines[2]), "text": body})
    if word in ("scroll_down", "scroll_up"):
        return Call("scroll", {"direction": 1 if word == "scroll_down" else -1})
    if word == "goto":
        return Call("goto", {"line": _number(word, argument)})
    if word == "open":
        path, _, line = argument.partition(" ")
        return Call("open", {"path": _one(word, path), "line": _number(word, line) if line else 1})
    if word in ("search_dir", "search_file"):
        try:
            pattern, *folders = shlex.split(argument)
        except ValueError as error:
            raise ActionError(f"{word} needs a pattern.") from error
        return Call("search", {"pattern": pattern, **({"path": folders[0]} if folders else {})})
    if word == "find_file":
        return Call("find_file", {"name": _one(word, argument)})
    if word == "run_tests":
        return Call("run_tests", {"path": argument} if argument else {})
    if word == "submit":
        return Call("submit")
    if "shell" in tools and action.strip():
        return Call("shell", {"command": action.strip()})
    raise ActionError("There is no such command:\n" + "\n".join(_editor_help(tools)))


def _one(word: str, argument: str) -> str:
    if not argument:
        raise ActionError(f"{word} needs a path.")
    return argument


def _number(word: str, argument: str) -> int:
    if not (argument.isascii() and argument.isdigit() and len(argument) < 10):
        raise ActionError(f"{word} needs a line number.")
    return int(argument)


def render(call: Call, action_format: ActionFormat) -> str:
    """An action that says to do this; `parse` reads it back."""
    if action_format == "functions":
        return render_function(call)
    if action_format == "bash":
        command = "submit" if call.tool == "submit" else str(call.arguments["command"])
        return f"```bash\n{command}\n```"
    arguments = call.arguments
    if call.tool == "open":
        return f"open {arguments['path']} {arguments['line']}"
    if call.tool == "edit_lines":
        return f"edit {arguments['first']}:{arguments['last']}\n{arguments['text']}end_of_edit"
    if call.tool == "create":
        return f"create {arguments['path']}\n{arguments['content']}end_of_edit"
    return str(arguments["command"]) if call.tool == "shell" else call.tool


# Runs in the sandbox, so that a path is what it is there; a link that leads out of the repository leads nowhere.
_SCRIPT = r"""
import os, re, sys
def fail(text):
    print(text); sys.exit(1)
def read(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
def write(path, text):
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
def lines_of(text):
    return re.findall(r"[^\n]*\n|[^\n]+", text)
def without_ends(text):
    return [line.rstrip("\r\n") for line in lines_of(text)]
def show(path, first, last):
    lines = without_ends(read(path))
    first, last = max(1, first), min(len(lines), last)
    print(f"[{path}, lines {first} to {last} of {len(lines)}]")
    for number in range(first, last + 1):
        print(f"{number:6}\t{lines[number - 1]}")
def walk(path):
    if os.path.isfile(path):
        yield path
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in (".git", "__pycache__"))
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name))
os.chdir(sys.argv[1])
tool, *given = sys.argv[2:]
if tool == "view":
    path, first, last = given[0], int(given[1]), int(given[2])
    if os.path.isdir(path):
        print("\n".join(sorted(name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path))))
    else:
        show(path, first, last)
elif tool == "replace":
    path, old, new = given
    text = read(path)
    if text.count(old) != 1 or bool(old) != bool(text):
        fail(f"The text occurs {text.count(old) if old else 0} times in {path}; it must occur once.")
    write(path, text.replace(old, new))
    line = text[: text.index(old)].count("\n") + 1
    show(path, line - 3, line + new.count("\n") + 3)
elif tool == "edit_lines":
    path, first, last, new = given[0], int(given[1]), int(given[2]), given[3]
    lines = lines_of(read(path))
    if not 1 <= first <= last + 1 <= len(lines) + 1:
        fail(f"{path} has {len(lines)} lines.")
    write(path, "".join(lines[: first - 1]) + new + "".join(lines[last:]))
    show(path, first - 3, first + new.count("\n") + 3)
elif tool == "create":
    write(given[0], given[1])
    print(f"{given[0]} has been written.")
elif tool == "search":
    try:
        pattern = re.compile(given[0])
    except re.error as error:
        fail(f"This is no regular expression: {error}")
    found = 0
    for path in walk(given[1]):
        try:
            lines = without_ends(open(path, encoding="utf-8").read())
        except (OSError, UnicodeDecodeError):
            continue
        for number, line in enumerate(lines, start=1):
            if pattern.search(line):
                found += 1
                if found <= 200:
                    print(f"{path}:{number}: {line[:300]}")
    print(f"{found} lines match.")
elif tool == "find_file":
    print("\n".join(path for path in walk(".") if given[0] in os.path.basename(path)) or "There is no such file.")
"""
WINDOW = 100
"""Lines that the editor shows, as in SWE-agent."""


def command(call: Call) -> str:
    """The shell command that does what a call says."""
    arguments = call.arguments
    if call.tool == "shell":
        return str(arguments["command"])
    if call.tool == "run_tests":
        path = shlex.quote(str(arguments["path"])) if arguments.get("path") else ""
        return f"(cd {ROOT_VARIABLE} && python -m pytest -q -p no:cacheprovider -o addopts= {path})"
    given = {
        "view": lambda: [arguments["path"], arguments.get("first", 1), arguments.get("last", _LAST_LINE)],
        "open": lambda: [arguments["path"], arguments["line"], arguments["line"] + WINDOW - 1],
        "replace": lambda: [arguments["path"], arguments["old"], arguments["new"]],
        "edit_lines": lambda: [arguments["path"], arguments["first"], arguments["last"], arguments["text"]],
        "create": lambda: [arguments["path"], arguments["content"]],
        "search": lambda: [arguments["pattern"], arguments.get("path", ".")],
        "find_file": lambda: [arguments["name"]],
    }[call.tool]()
    tool = "view" if call.tool == "open" else call.tool
    words = " ".join(shlex.quote(str(word)) for word in given)
    return f"command python -I -S -c {shlex.quote(_SCRIPT)} {ROOT_VARIABLE} {tool} {words}"


ROOT_VARIABLE = '"$TESTBED"'
"""The root of the repository in a command; where it lies depends on the sandbox."""


def writing_script(path: str, text: str) -> str:
    """A shell command that writes a file."""
    return (
        "python - <<'END_OF_SCRIPT'\n"
        "import os\n"
        f"path = os.path.join(os.environ['TESTBED'], {path!r})\n"
        "os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        f"open(path, 'w', encoding='utf-8', newline='').write({text!r})\n"
        "END_OF_SCRIPT"
    )


def repair_script(path: str, wrong: str, right: str) -> str:
    """A shell command that replaces a text in a file."""
    return (
        "python - <<'END_OF_SCRIPT'\n"
        "import os\n"
        f"path = os.path.join(os.environ['TESTBED'], {path!r})\n"
        "text = open(path, encoding='utf-8', newline='').read()\n"
        f"old = {wrong!r}\nnew = {right!r}\n"
        "open(path, 'w', encoding='utf-8', newline='').write(text.replace(old, new, 1))\n"
        "END_OF_SCRIPT"
    )
