"""`textagent-gym trajectories`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

import tyro

from textagent_gym.errors import InvalidOptionError


@dataclass(frozen=True)
class Trajectories:
    """Write the episodes of a result in the format of other tools.

    atif: the Agent Trajectory Interchange Format, v1.7; a file per episode, PART/NUMBER.json. inspect: logs of Inspect,
    a file per part, PART.eval. What the result says is taken as it is; `textagent-gym verify` checks it.
    """

    result: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RESULT")]
    """Folder of the result of a suite, or result file of an ID."""
    format: Literal["atif", "inspect"]
    """Format to write."""
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
    """Folder to write into: a new one, or an empty one."""

    def run(self) -> int:
        """Write the files."""
        from rich.console import Console

        from textagent_gym.files import check_writable, write_whole
        from textagent_gym.leaderboard.atif import atif
        from textagent_gym.leaderboard.conversations import read_conversations
        from textagent_gym.leaderboard.inspect_logs import write_inspect_log

        check_writable(self.out, folder=True)
        if self.out.exists() and any(self.out.iterdir()):
            raise InvalidOptionError(f"{self.out} is there already, and is not overwritten; name another folder")
        count = 0
        for part, group in groupby(read_conversations(self.result), lambda conversation: conversation.part):
            episodes = list(group)
            count += len(episodes)
            if self.format == "inspect":
                write_inspect_log(self.out / f"{part}.eval", episodes)
                continue
            for conversation in episodes:
                text = json.dumps(atif(conversation), indent=1) + "\n"
                write_whole(self.out / part / f"{conversation.number}.json", text)
        console = Console(stderr=True)
        if not count:
            console.print("Every episode broke: there is nothing to write.", style="yellow")
            return 1
        console.print(
            f"{count} {'episode' if count == 1 else 'episodes'} below {self.out}", soft_wrap=True, highlight=False
        )
        return 0
