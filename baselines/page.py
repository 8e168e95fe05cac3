"""The page of a run folder, for a run that is older than its page or that has been moved.

python -m baselines.page runs/grpo
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from baselines.settings.run_folder import RunFolderError
from baselines.settings.run_page import write_page


def main(folder: Annotated[Path, tyro.conf.Positional]) -> None:
    """Write index.html into the folder of a run and print its path.

    Args:
        folder: Folder of the run.
    """
    try:
        print(write_page(folder))
    except RunFolderError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    tyro.cli(main)
