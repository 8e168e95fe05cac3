"""Where ALFWorld's official games are, and which there are.

Two forms are read: a folder of a release, `json_2.1.1/<split>/<task>/<trial>/game.tw-pddl`, and a packed form of two
files: `games.jsonl.xz` (a game a line: "id", "task", "pddl_problem", "walkthrough", "solvable", "sha256") and
`logic.json` ("pddl_domain" and "grammar", in which `@@TASK@@` stands for the task).
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from textagent_gym.domains.alfworld.game import TASK_TYPES
from textagent_gym.errors import MissingDataError

SPLITS = ("train", "valid_seen", "valid_unseen", "valid_train")
COUNTS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}
"""Official numbers of games."""
DIGESTS = {
    "train": "83a6e791af0f3dde407198154f59b2e52306328ce8574cd103b9f6ce1ff7118c",
    "valid_seen": "1243f5d953c752e755028cbec04e94ce55e8723a70663047cdd5a4913b59cfa6",
    "valid_train": "f32f8b26ddb42fd32b9fbc32c22f6a5cba77ef558243338d62c7d39c9b98902b",
}
"""`OfficialGames.content_hash` of the splits that the native engine was compared with upstream on."""

FOLDER = "~/.cache/alfworld"
"""Where upstream downloads the games to."""
ENVIRONMENT_VARIABLE = "ALFWORLD_DATA"
_RELEASE = "json_2.1.1"
STORY = "game.tw-pddl"


class OfficialGames(ABC):
    """The official games in one of their two forms."""

    @abstractmethod
    def ids(self, split: str) -> tuple[str, ...]:
        """`split/task/trial` of all games of a split, sorted."""

    @abstractmethod
    def read(self, game_id: str) -> dict[str, Any]:
        """The content of a game's `game.tw-pddl`."""

    @abstractmethod
    def digest(self, game_id: str) -> str:
        """SHA-256 of the bytes of a game's `game.tw-pddl`."""

    def content_hash(self, split: str) -> str:
        """SHA-256 of the ids and the digests of all games of a split, a line each."""
        lines = "".join(f"{game_id} {self.digest(game_id)}\n" for game_id in self.ids(split))
        return hashlib.sha256(lines.encode()).hexdigest()


def find_games(data: str | None = None) -> OfficialGames:
    """The official games of a folder, or of the one that `ALFWORLD_DATA` names, or where upstream downloads them to.

    Raises:
        MissingDataError: nothing is there.
    """
    named = data or os.environ.get(ENVIRONMENT_VARIABLE)
    return _games(os.path.abspath(os.path.expanduser(named or FOLDER)))


@lru_cache(maxsize=8)
def _games(folder: str) -> OfficialGames:
    path = Path(folder)
    if (path / "games.jsonl.xz").is_file() and (path / "logic.json").is_file():
        return _Packed(path)
    for root in (path, path / _RELEASE):
        if any((root / split).is_dir() for split in SPLITS):
            return _Folder(root)
    raise MissingDataError(
        f"ALFWorld's official games are not in {folder}. Download them with `textagent-gym data alfworld`, or name the "
        f'folder that holds {_RELEASE}/ with data="..." or the environment variable {ENVIRONMENT_VARIABLE}. '
        "textagent/ALFWorld-v0 needs no download."
    )


def is_played(game_id: str) -> bool:
    """Upstream plays a game: its type is one of the six, and nothing is sliced or moved within something else."""
    task = game_id.split("/")[1]
    return task.split("-")[0] in TASK_TYPES and "movable" not in task and "Sliced" not in task


class _Folder(OfficialGames):
    """A folder with a folder for each split."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[str, ...]] = {}

    def ids(self, split: str) -> tuple[str, ...]:
        if split not in self._known:
            games = (f"{split}/{path.parent.parent.name}/{path.parent.name}" for path in self._stories(split))
            self._known[split] = tuple(sorted(filter(self._is_solvable, filter(is_played, games))))
        return self._known[split]

    def read(self, game_id: str) -> dict[str, Any]:
        return json.loads(self._path(game_id).read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    def digest(self, game_id: str) -> str:
        return hashlib.sha256(self._path(game_id).read_bytes()).hexdigest()

    def _stories(self, split: str) -> list[Path]:
        return list((self.root / split).glob(f"*/*/{STORY}"))

    def _is_solvable(self, game_id: str) -> bool:
        # The mark stands near the end of a long file; only games that have it are played, as upstream does.
        with open(self._path(game_id), "rb") as file:
            return b'"solvable": false' not in file.read()

    def _path(self, game_id: str) -> Path:
        return self.root / game_id / STORY


class _Packed(OfficialGames):
    """All games in one compressed file. They are kept compressed one by one, about 5 KiB each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _logic(self) -> Mapping[str, str]:
        return json.loads((self.folder / "logic.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    @cached_property
    def _rows(self) -> dict[str, bytes]:
        rows = {}
        with lzma.open(self.folder / "games.jsonl.xz", "rb") as lines:
            for line in lines:
                start = line.index(b'"id"') + 4
                game_id = line[line.index(b'"', start) + 1 :].partition(b'"')[0].decode()
                rows[game_id] = zlib.compress(line, 1)
        return rows

    def ids(self, split: str) -> tuple[str, ...]:
        return tuple(sorted(name for name in self._rows if name.startswith(f"{split}/") and is_played(name)))

    def read(self, game_id: str) -> dict[str, Any]:
        row = json.loads(zlib.decompress(self._rows[game_id]))
        return {
            "pddl_domain": self._logic["pddl_domain"],
            "grammar": self._logic["grammar"].replace("@@TASK@@", row["task"]),
            "pddl_problem": row["pddl_problem"],
            "solvable": row["solvable"],
            "walkthrough": row["walkthrough"],
        }

    def digest(self, game_id: str) -> str:
        return str(json.loads(zlib.decompress(self._rows[game_id]))["sha256"])
