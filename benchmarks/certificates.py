"""Certify every id of the suite, and write docs/certificates.md: python -m benchmarks.certificates

About a minute per id of TextWorld, whose games are made first. `--ids` names some of them, and `--out` another file.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from textagent_gym.errors import TextAgentError
from textagent_gym.evaluation import Certificate, certify
from textagent_gym.evaluation.certificate import BROKEN, KEPT
from textagent_gym.evaluation.promises import PROMISES
from textagent_gym.registration import REGISTRATIONS

HARDER = {
    "textagent/TextWorld-v0": {"rooms": (2, 6), "objects": (3, 9), "quest_length": (4, 8)},
    "textagent/TextWorldCoinCollector-v0": {"level": (3, 10)},
    "textagent/TextWorldCooking-v0": {"rooms": (1, 6)},
    "textagent/ALFWorld-v0": {"receptacles": (8, 30), "objects": (10, 50), "solution_length": (4, 6, 8)},
}
"""Settings from easy to hard of worlds that have other knobs than axes."""
OUT = Path(__file__).parents[1] / "docs" / "certificates.md"
_HEAD = """# Certificates

Whether registered worlds keep what every world promises, as `textagent-gym certify ID` checks it. This page is made by
`python -m benchmarks.certificates --ids ...`, for the ids in the table.

"""


def certificate_of(id: str, tasks: int, strings: int) -> Certificate | str:
    """The certificate of an id, or why there is none here."""
    try:
        return certify(id, tasks=tasks, strings=strings, harder=HARDER.get(id))
    except (TextAgentError, ImportError, OSError) as error:
        return type(error).__name__  # Its message may name folders of this machine.


def page(certificates: dict[str, Certificate | str], tasks: int, strings: int) -> str:
    """The page in Markdown."""
    numbers = " | ".join(str(number) for number in range(1, len(PROMISES) + 1))
    rows = [f"| id | {numbers} |", "| --- |" + " --- |" * len(PROMISES)]
    reasons = []
    for id, each in certificates.items():
        if isinstance(each, str):
            reasons.append(f"- `{id}` was not checked: {each}")
            continue
        marks = ["kept" if f.status == KEPT else "**broken**" if f.status == BROKEN else "n/a" for f in each.findings]
        rows.append(f"| `{id}` | {' | '.join(marks)} |")
        reasons += [f"- `{id}`, {f.promise}: {f.status}, {f.what}" for f in each.findings if f.status != KEPT]
    promises = [f"{number}. {promise.__doc__}" for number, promise in enumerate(PROMISES, start=1)]
    described = [" ".join(text.split()) for text in promises]
    how = f"{tasks} tasks per check, {strings} random strings."
    parts = ["\n".join(described), how, "\n".join(rows), "\n".join(reasons)]
    return _HEAD + "\n\n".join(part for part in parts if part) + "\n"


def main() -> None:
    """Certify, and write the page after each id."""
    known = [registration.id for registration in REGISTRATIONS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="+", default=known, choices=known, metavar="ID", help="ids to certify")
    parser.add_argument("--tasks", type=int, default=3, help="tasks per check")
    parser.add_argument("--strings", type=int, default=10_000, help="random strings")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the page")
    chosen = parser.parse_args()
    certificates: dict[str, Certificate | str] = {}
    for id in chosen.ids:
        started = time.perf_counter()
        certificates[id] = certificate_of(id, chosen.tasks, chosen.strings)
        chosen.out.write_text(page(certificates, chosen.tasks, chosen.strings), encoding="utf-8")
        print(f"{id}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
