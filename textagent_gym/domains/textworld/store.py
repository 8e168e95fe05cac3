"""Games on disk: built once, read in milliseconds, safe with many processes at once.

    <cache>/textworld/v1.1-1.7.0/<slug>/<split>/<index>/game.z8    the story, if it was asked for
                                                       /game.json  logic, text, plan, goal, complexity, checksum

An entry is written to a temporary folder and renamed into place, so it is whole or absent. The cache is
`$TEXTAGENT_CACHE`, or `textagent-gym` in the user's cache folder. Nothing outside it is ever written. It keeps the
10,000 games that were used last (about 4 GB), or as many as `$TEXTAGENT_CACHE_GAMES` says; a game that was dropped is
built again when it is asked for.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any

from textagent_gym.complexity import Complexity
from textagent_gym.domains.textworld import generation
from textagent_gym.domains.textworld.inform import Fiction
from textagent_gym.domains.textworld.logic import GameLogic
from textagent_gym.domains.textworld.planner import Planner, Solution
from textagent_gym.domains.textworld.specs import Spec
from textagent_gym.domains.textworld.story import check_story
from textagent_gym.errors import GenerationError, InvalidOptionError, UnknownTaskError
from textagent_gym.files import cache_folder, lock, whole_folder

_MOST_GAMES = 10_000  # Games that are kept: more than a training run revisits, and 4 GB at 0.4 MB each.
SWEEP = 50
"""Games that a process writes between two looks at how many there are."""
_SHARED = 2_048  # Games that a process keeps in memory.
_RECORD = ".textagent.json"  # Beside a game that was exported: what the cache keeps of it.
_LOCKS = 256  # Lock files are shared by entries with the same hash, so that they stay few.


@dataclass(frozen=True, eq=False)
class StoredGame:
    """A game ready to be played. Immutable and shared by everybody who plays it; equal to itself alone.

    Attributes:
        story: path of the `.z8` file, which is not there if nobody has asked for the compiled game.
        logic: `None` for a game of one's own without a `.json` file.
        fiction: text of the game; `None` where only the compiled game has it.
        planner: planner that knows the distance to the goal; `None` without a logic.
        solution: commands of a shortest solution, empty without a logic.
        complexity: measured difficulty.
        objective: the goal as the game words it; `None` where it is not known apart from the opening text.
        brief: the goal in one sentence; `None` where it is not known.
        content: hash of the world and the goal, equal for equal games; `None` where it is not known.
    """

    story: Path
    logic: GameLogic | None
    fiction: Fiction | None
    planner: Planner | None
    solution: tuple[str, ...]
    complexity: Complexity
    objective: str | None
    brief: str | None
    content: str | None


_written = count()


def games_folder() -> Path:
    """Where the games of this version of the generator and of TextWorld are kept.

    Without TextWorld, those that were made with its newest version that left any here.
    """
    folder, made_with = cache_folder() / "textworld", _upstream_version()
    made_by = f"v{generation.VERSION}.{generation.REVISION}"
    if made_with is None:
        made_with = max((there.name.partition("-")[2] for there in folder.glob(f"{made_by}-*")), default="")
    return folder / f"{made_by}-{made_with}"


@cache
def _upstream_version() -> str | None:
    try:
        return version("textworld")
    except PackageNotFoundError:
        return None


def load(spec: Spec, split: str, index: int, *, compiled: bool = True) -> StoredGame:
    """The game, from the cache or built now.

    Args:
        spec: what is asked for.
        split: name of the split.
        index: number of the game in the split.
        compiled: whether its story is needed; without, the game is not compiled.

    Raises:
        InfeasibleDifficultyError, GenerationError, MissingDependencyError: it cannot be built.
    """
    if compiled:
        return _read_shared(_build_if_absent(spec, split, index, compiled=True))
    return _load_uncompiled(os.environ.get("TEXTAGENT_CACHE"), spec, split, index)


@lru_cache(maxsize=_SHARED)
def _load_uncompiled(_: str | None, spec: Spec, split: str, index: int) -> StoredGame:
    """See `load`. A game that was read once is not looked for on the disk again."""
    with _garbage_kept():
        return _read_shared(_build_if_absent(spec, split, index, compiled=False))


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Without a search for garbage, which takes a seventh of the time and finds next to none in a game's making."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def export(spec: Spec, split: str, index: int, folder: Path) -> Path:
    """Write a game into a folder of one's own, for upstream and for `load_file`; the story's path.

    Raises:
        InfeasibleDifficultyError, GenerationError, MissingDependencyError: it cannot be built.
    """
    entry = _build_if_absent(spec, split, index, compiled=True)
    story = folder / f"{entry.parts[-3]}-{split}-{index:06d}.z8"
    with _complaining(folder):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(entry / "game.z8", story)
        shutil.copyfile(entry / "game.json", story.with_suffix(_RECORD))
    generation.draw(spec, split, index).save(str(story.with_suffix(".json")))
    return story


def is_stored(spec: Spec, split: str, index: int) -> bool:
    """Whether the game lies in the cache."""
    return (_entry(spec, split, index) / "game.json").is_file()


def clear() -> int:
    """Delete every game of every version and return how many there were."""
    folder = cache_folder() / "textworld"
    count = sum(1 for _ in folder.glob("*/*/*/*/game.json"))
    shutil.rmtree(folder, ignore_errors=True)
    forget()
    return count


def forget() -> None:
    """Forget what has been read from the disk, so that it is read again."""
    _read_shared.cache_clear()
    _load_uncompiled.cache_clear()
    load_file.cache_clear()


def size() -> tuple[int, int]:
    """Number of games kept, and their bytes."""
    folder = cache_folder() / "textworld"
    return sum(1 for _ in folder.glob("*/*/*/*/game.json")), sum(
        file.stat().st_size for file in folder.rglob("*") if file.is_file()
    )


def _entry(spec: Spec, split: str, index: int) -> Path:
    return games_folder() / spec.slug.replace("/", "_") / split / str(index)


def _build_if_absent(spec: Spec, split: str, index: int, *, compiled: bool) -> Path:
    entry = _entry(spec, split, index)
    if _whole(entry, compiled=compiled):
        return entry
    with _locked(entry):
        if not _whole(entry, compiled=compiled):  # Somebody else may have built it while we waited for the lock.
            game = generation.build(spec, split, index, compiled=compiled)
            numbers = {action: number for number, action in reversed([*enumerate(game.logic.actions)])}
            record = {
                "task": _name(entry),
                "content": game.content,
                "sha256": None if game.story is None else hashlib.sha256(game.story).hexdigest(),
                "solution": [numbers[action] for action in game.solution.actions],
                "complexity": game.complexity.to_dict(),
                "objective": game.objective,
                "brief": game.brief,
                "logic": game.logic.to_dict(),
                "fiction": None if game.fiction is None else game.fiction.to_dict(),
            }
            _write(entry, game.story, json.dumps(record, sort_keys=True))
    return entry


def _whole(entry: Path, *, compiled: bool) -> bool:
    """Whether an entry can be read; one that was damaged counts as absent and is built again."""
    if not (entry / "game.json").is_file():
        return False
    try:
        game = _read_shared(entry)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False
    return not compiled or game.story.is_file()


def _name(entry: Path) -> str:
    """What is asked for, split and index, as an entry's record says them too."""
    return "/".join(entry.parts[-3:])


def _most_games() -> int:
    text = os.environ.get("TEXTAGENT_CACHE_GAMES") or str(_MOST_GAMES)
    if not text.isdecimal() or int(text) < 1:
        raise InvalidOptionError(f"TEXTAGENT_CACHE_GAMES must be a whole number from 1, got {text!r}")
    return int(text)


def _drop_oldest(most: int) -> None:
    """Delete the games that were used longest ago, until `most` are left."""
    used = []
    for record in (cache_folder() / "textworld").glob("*/*/*/*/game.json"):
        with suppress(OSError):  # Somebody else may drop it at this moment.
            used.append((record.stat().st_mtime, record.parent))
    used.sort()
    for _, entry in used[: max(0, len(used) - most)]:
        shutil.rmtree(entry, ignore_errors=True)


def _write(entry: Path, story: bytes | None, record: str) -> None:
    if next(_written) % SWEEP == 0:
        _drop_oldest(_most_games() - 1)
    with _complaining(entry), whole_folder(entry, replace=True) as folder:
        if story is not None:
            (folder / "game.z8").write_bytes(story)
        (folder / "game.json").write_text(record, encoding="utf-8")


@contextmanager
def _complaining(path: Path) -> Iterator[None]:
    """Say which path the system refused, and what to do."""
    try:
        yield
    except OSError as error:
        raise GenerationError(
            f"{path} cannot be written: {error.strerror}. Free some space or mend the folder, or set TEXTAGENT_CACHE "
            "to another one."
        ) from error


@contextmanager
def _locked(entry: Path) -> Iterator[None]:
    """Only one process builds an entry; the others wait here."""
    folder = cache_folder() / "locks"
    with _complaining(folder):
        folder.mkdir(parents=True, exist_ok=True)
    number = int.from_bytes(hashlib.sha256(str(entry).encode()).digest()[:4], "big") % _LOCKS
    with _complaining(folder):
        file = open(folder / f"{number}.lock", "w")  # noqa: SIM115 (closed below)
    with file:
        lock(file)
        yield


@lru_cache(maxsize=_SHARED)
def _read_shared(entry: Path) -> StoredGame:
    record: dict[str, Any] = json.loads((entry / "game.json").read_text(encoding="utf-8"))
    if record["task"] != _name(entry):
        raise ValueError(f"{entry} holds another game")
    game = _stored_game(record, entry / "game.z8")
    with suppress(OSError):  # In a read-only cache nothing is dropped either.
        os.utime(entry / "game.json")
    return game


def _stored_game(record: dict[str, Any], story: Path) -> StoredGame:
    """The game that a record describes.

    Raises:
        ValueError: the story is not the record's.
    """
    checksum = hashlib.sha256(story.read_bytes()).hexdigest() if record["sha256"] is not None else None
    if checksum != record["sha256"]:
        raise ValueError(f"{story} is damaged")
    logic = GameLogic.from_dict(record["logic"])
    complexity = Complexity(**record["complexity"])
    solution = Solution(tuple(logic.actions[number] for number in record["solution"]), complexity.exact)
    return StoredGame(
        story=story,
        logic=logic,
        fiction=None if record["fiction"] is None else Fiction.from_dict(record["fiction"]),
        planner=Planner(logic, solution=solution),
        solution=solution.commands,
        complexity=complexity,
        objective=record["objective"],
        brief=record["brief"],
        content=record["content"],
    )


@lru_cache(maxsize=256)
def load_file(story: Path) -> StoredGame:
    """A `.z8` game of one's own, with what the file that `export` or TextWorld has written beside it says.

    Raises:
        UnknownTaskError: the file is not there.
        GenerationError: the file beside it is of another game or of none, or the story is damaged.
        MissingDependencyError: only TextWorld reads the file, and is not installed.
    """
    if not story.is_file():
        raise UnknownTaskError(f"{story} does not exist")
    check_story(story)
    exported, description = story.with_suffix(_RECORD), story.with_suffix(".json")
    if exported.is_file():
        try:
            return _stored_game(json.loads(exported.read_text(encoding="utf-8")), story)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise GenerationError(f"{exported} does not describe {story.name}: {error!r}") from error
    if not description.is_file():
        return StoredGame(
            story=story,
            logic=None,
            fiction=None,
            planner=None,
            solution=(),
            complexity=Complexity(),
            objective=None,
            brief=None,
            content=None,
        )
    generation.textworld_package()
    from textworld.generator.game import Game

    try:
        game = Game.load(str(description))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GenerationError(f"{description} does not describe a TextWorld game: {error!r}") from error
    measured = generation.measure(game)
    return StoredGame(
        story=story,
        logic=measured.logic,
        fiction=generation.tell_if_known(game),
        planner=Planner(measured.logic, solution=measured.solution),
        solution=measured.solution.commands if measured.solution else (),
        complexity=measured.complexity,
        objective=game.objective,
        brief=generation.brief_goal(game),
        content=None,
    )
