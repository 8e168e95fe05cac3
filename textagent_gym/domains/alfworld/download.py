"""Fetch ALFWorld's official games from its release."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.error import URLError
from urllib.request import urlopen

from textagent_gym.domains.alfworld.data import COUNTS, DIGESTS, FOLDER, SPLITS, find_games
from textagent_gym.errors import MissingDataError

RELEASE = "https://github.com/alfworld/alfworld/releases/download/0.4.0/json_2.1.2_tw-pddl.zip"
_CHUNK = 1 << 20


def download(
    folder: Path | None = None, url: str | None = None, progress: Callable[[int, int], None] | None = None
) -> list[str]:
    """Fetch the games into a folder, which then does for `data=` and `ALFWORLD_DATA`.

    Nothing is written into the folder before the whole archive is there; what lies there stays.

    Args:
        folder: folder to write into, made if it is not there; by default the one that upstream downloads to, which
            environments look into by themselves.
        url: address of the release's archive; upstream's own by default.
        progress: called with the number of bytes fetched so far and that of all bytes, or 0 if that is not known.

    Returns:
        a line for each split: the number of games, and whether they are those that the engine was compared on; and
        where they are.

    Raises:
        MissingDataError: there is no network, or the archive holds no games.
    """
    folder, url = folder or Path(FOLDER).expanduser(), url or RELEASE
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
        archive = Path(temporary, "games.zip")
        try:
            with urlopen(url, timeout=60) as response, open(archive, "wb") as file:
                total = int(response.headers.get("Content-Length") or 0)
                while chunk := response.read(_CHUNK):
                    file.write(chunk)
                    if progress is not None:
                        progress(file.tell(), total)
        except (URLError, TimeoutError, ValueError) as error:
            raise MissingDataError(
                f"{url} cannot be fetched ({error}). Fetch it elsewhere, unpack it, and name its folder with data=..."
            ) from error
        try:
            unpacked = _unpack(archive, Path(temporary, "unpacked"))
        except zipfile.BadZipFile as error:
            raise MissingDataError(f"{url} is no archive of games: {error}") from error
        for path in sorted(unpacked.iterdir()):
            if not (folder / path.name).exists():
                path.rename(folder / path.name)
            else:
                shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
    games = find_games(str(folder))
    lines = []
    for split in SPLITS:
        count = len(games.ids(split))
        if not count:
            continue
        comparison = "as in the release" if count == COUNTS[split] else f"the release has {COUNTS[split]}"
        if split in DIGESTS:
            same = games.content_hash(split) == DIGESTS[split]
            comparison += ", the games compared" if same else ", not the games compared (another release?)"
        lines.append(f"{split}: {count} games, {comparison}")
    return [*lines, f"They are in {folder}."]


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack the games of an archive, and nothing that would lie outside of the folder."""
    with zipfile.ZipFile(archive) as files:
        stories = [name for name in files.namelist() if PurePosixPath(name).name == "game.tw-pddl"]
        if not stories:
            raise zipfile.BadZipFile("no game.tw-pddl in it")
        for name in stories:
            files.extract(name, folder)  # It drops ".." and leading slashes.
    return folder
