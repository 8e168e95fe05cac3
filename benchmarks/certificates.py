"""Certify every id of the suite, and write docs/certificates.md: python -m benchmarks.certificates

An hour of one core, most of it for ScienceWorld's Java, and half an hour for the plans of `LARGE` levels. `--ids` names
some of the ids, and `--missing` leaves out those on the page; what it says of others stays. `--out` names another file.
The slow tests certify ids anew, some with fewer random strings, and compare them with the page (`certified_on`).
"""

from __future__ import annotations

import argparse
import re
import time
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textagent_gym.errors import TextAgentError
from textagent_gym.evaluation import Certificate, certify
from textagent_gym.evaluation.certificate import BROKEN, KEPT
from textagent_gym.evaluation.promises import PROMISES
from textagent_gym.processes import kill_on_error, worker_processes
from textagent_gym.registration import REGISTRATIONS
from textagent_gym.vector import available_cores

HARDER = {
    "textagent/TextWorld-v0": {"rooms": (2, 6), "objects": (3, 9), "quest_length": (4, 8)},
    "textagent/TextWorldCoinCollector-v0": {"level": (3, 10)},
    "textagent/TextWorldCooking-v0": {"rooms": (1, 6)},
    "textagent/ALFWorld-v0": {"receptacles": (8, 30), "objects": (10, 50), "solution_length": (4, 6, 8)},
    "textagent/TextCraft-v0": {"recipes": (6, 24), "solution_length": (4, 8)},
    "textagent/BabyAI-v0": {"objects": (4, 8), "solution_length": (2, 4)},
    "textagent/ScienceWorld-v0": {
        "state_size": ((396, 408), (435, 471)),
        "action_size": ((300, 900), (901, 4_000)),
        "solution_length": ((1, 15), (20, 40), (80, 193)),
    },
    "textagent/SWE-v0": {"mutants": (1, 2)},
}
"""Settings from easy to hard of worlds that have other knobs than axes."""
TASKS = {"textagent/ScienceWorld-v0": 3, "textagent/ScienceWorld-": 1, "textagent/": 3}
"""Tasks per check, by the beginning of an id."""
STRINGS = 10_000
"""Random strings that each id survives."""
FEWER = {"textagent/ScienceWorld-v0": 1_000, "textagent/ScienceWorld-": 300, "textagent/SWE-v0": 1_000}
"""Random strings in CI, by the beginning of an id. ScienceWorld takes 7 to 9 ms per string: `STRINGS` of them take 40
minutes for its ids, longer than all the rest."""
NEEDS = {
    "textagent/SWE-Gym-v0": "the rows of SWE-Gym/SWE-Gym, which are downloaded, and their images",
    "textagent/SWE-bench-v0": "the rows of SWE-bench/SWE-bench_Verified, which are downloaded, and their images",
}
"""What some ids need that was not at hand."""
LARGE = (
    "textagent/BabyAI-BossLevel-v0",
    "textagent/BabyAI-BossLevelNoUnlock-v0",
    "textagent/BabyAI-KeyCorridorS6R3-v0",
    "textagent/BabyAI-MiniBossLevel-v0",
    "textagent/BabyAI-MoveTwoAcrossS8N9-v0",
    "textagent/BabyAI-SynthS5R2-v0",
    "textagent/BabyAI-SynthSeq-v0",
)
"""Ids whose plans take minutes of each certification: CI has no time for all of them in one run."""
SORTS = tuple(each.id for each in REGISTRATIONS if each.id.startswith("textagent/ScienceWorld-") and each.kwargs)
"""Ids of one sort of ScienceWorld's tasks each, in one and the same simulator, which takes a minute of each of them."""
_DAYS_OF_SORTS = 5  # In which CI certifies all `SORTS`.
KNOWN = tuple(registration.id for registration in REGISTRATIONS)
OUT = Path(__file__).parents[1] / "docs" / "certificates.md"
_FEWER_IN_WORDS = ", ".join(f"{strings:,} for `{beginning}`" for beginning, strings in FEWER.items())
_HEAD = f"""# Certificates

Whether registered worlds keep what every world promises, as `textagent-gym certify ID` checks it. This page is made by
`make certificates`. CI certifies the ids in the table anew, and fails where the page says otherwise, or where its time
does not suffice: all but {len(LARGE)} large ones and the {len(SORTS)} sorts of ScienceWorld's tasks, of which it
certifies others each day, one of the large ones ({", ".join(f"`{id}`" for id in LARGE)}) and a
fifth of the sorts. Where they take longest, it plays fewer random strings, by the beginning of the id:
{_FEWER_IN_WORDS}.

What is not found: a world that tells the next command in other words than its own, in less than a tenth of its turns,
or in a text that stays the same; see [what counts](adding-a-world.md#what-counts-as-telling-the-solution). And one that
a secret word solves: it cannot be seen from outside.

"""
_NOT_YET = "not checked yet"
_MARKS = {KEPT: "kept", BROKEN: "**broken**"}


@dataclass(frozen=True, slots=True)
class Row:
    """What the page says of an id.

    Attributes:
        id: id of the environment.
        cells: number of tasks per check, number of random strings, and a mark per promise; none if it was not checked.
        reasons: sentences about promises that are not kept, or why the id was not checked.
    """

    id: str
    cells: tuple[str, ...]
    reasons: tuple[str, ...]


def tasks_of(id: str) -> int:
    """Tasks per check with which an id is certified."""
    return next(tasks for beginning, tasks in TASKS.items() if id.startswith(beginning))


def strings_in_ci(id: str) -> int:
    """Random strings with which CI certifies an id."""
    return next((strings for beginning, strings in FEWER.items() if id.startswith(beginning)), STRINGS)


def certified_on(day: int) -> list[str]:
    """Ids that CI certifies on a day, the one that takes longest first.

    Args:
        day: number of the day.
    """
    large = LARGE[day % len(LARGE)]
    others = {*LARGE, *NEEDS, *(id for number, id in enumerate(SORTS) if (number - day) % _DAYS_OF_SORTS)}
    return [large, *(id for id in KNOWN if id not in others)]


def row_of(id: str, strings: int = STRINGS, **kwargs: Any) -> Row:
    """Certify an id with a number of random strings, and its world with keyword arguments."""
    try:
        # Ours end no process, and many ids are certified in one: what they import and start is there already.
        harder = HARDER.get(id)
        certificate = certify(id, kwargs=kwargs, tasks=tasks_of(id), strings=strings, harder=harder, apart=False)
    except (TextAgentError, ImportError, OSError) as error:
        # The message may name folders of this machine.
        return Row(id, (), (f"not checked, it needs {NEEDS.get(id, f'what is not here ({type(error).__name__})')}",))
    return row_from(certificate, strings)


def row_from(certificate: Certificate, strings: int) -> Row:
    """The row of a certificate that was made with a number of random strings."""
    findings = certificate.findings
    marks = [_MARKS.get(finding.status, "n/a") for finding in findings]
    reasons = tuple(sorted(f"{f.promise}: {f.status}, {f.what}" for f in findings if f.status != KEPT))
    return Row(certificate.env, (str(certificate.tasks), str(strings), *marks), reasons)


def page(rows: dict[str, Row]) -> str:
    """The page in Markdown."""
    promises = [f"{number}. {promise.__doc__}" for number, promise in enumerate(PROMISES, start=1)]
    numbers = " | ".join(str(number) for number in range(1, len(PROMISES) + 1))
    table = [f"| id | tasks per check | random strings | {numbers} |", "| --- |" + " --- |" * (len(PROMISES) + 2)]
    reasons: dict[str, list[str]] = {}
    for id, row in sorted(rows.items()):
        if row.cells:
            table.append(f"| `{id}` | {' | '.join(row.cells)} |")
        for reason in row.reasons:
            reasons.setdefault(reason, []).append(f"`{id}`")
    described = [" ".join(text.split()) for text in promises]
    listed = [f"- {reason}: {', '.join(ids)}" for reason, ids in sorted(reasons.items())]
    if missing := [f"`{id}`" for id in KNOWN if id not in rows]:
        listed.append(f"- {_NOT_YET}: {', '.join(missing)}")
    return _HEAD + "\n\n".join("\n".join(part) for part in (described, table, listed) if part) + "\n"


def read_page(path: Path) -> dict[str, Row]:
    """Rows of a page by their ids; none if there is no page."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    cells: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, list[str]] = {}
    for line in text.splitlines():
        if row := re.fullmatch(r"\| `([^`]+)` \| (.*) \|", line):
            cells[row[1]] = tuple(row[2].split(" | "))
        elif reason := re.fullmatch(rf"- (?!{_NOT_YET}:)(.*?): ((?:`[^`]+`(?:, )?)+)", line):
            for id in re.findall(r"`([^`]+)`", reason[2]):
                reasons.setdefault(id, []).append(reason[1])
    return {id: Row(id, cells.get(id, ()), tuple(reasons.get(id, ()))) for id in {*cells, *reasons}}


def _timed(id: str) -> tuple[Row, float]:
    """The row of an id, and the seconds it took."""
    started = time.perf_counter()
    return row_of(id), time.perf_counter() - started


def main() -> None:
    """Certify, and write the page after each id."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", nargs="+", default=KNOWN, choices=KNOWN, metavar="ID", help="ids to certify")
    parser.add_argument("--missing", action="store_true", help="certify only ids that the page has no row of")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the page")
    parser.add_argument("--processes", type=int, default=available_cores(), help="processes that certify")
    chosen = parser.parse_args()
    rows = {id: row for id, row in read_page(chosen.out).items() if id in KNOWN}
    ids = [id for id in chosen.ids if not (chosen.missing and id in rows)]
    with worker_processes(chosen.processes) as pool, kill_on_error(pool):
        for certified in as_completed([pool.submit(_timed, id) for id in ids]):
            row, seconds = certified.result()
            if row.cells or not rows.get(row.id, row).cells:  # What needs data that is not here stays as it was.
                rows[row.id] = row
            chosen.out.write_text(page(rows), encoding="utf-8")
            print(f"{row.id}: {seconds:.0f} s", flush=True)
    chosen.out.write_text(page(rows), encoding="utf-8")  # Its words may have changed where no row is missing.


if __name__ == "__main__":
    main()
