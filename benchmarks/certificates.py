"""Certify every id of the suite, and write docs/certificates.md: python -m benchmarks.certificates

About a minute per id of TextWorld, whose games are made first. `--ids` names some of them; what the page says of others
stays. `--out` names another file.
"""

from __future__ import annotations

import argparse
import re
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
    "textagent/TextCraft-v0": {"recipes": (6, 24), "solution_length": (4, 8)},
    "textagent/BabyAI-v0": {"objects": (4, 8), "solution_length": (2, 4)},
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


def lines_of(id: str, certificate: Certificate | str) -> list[str]:
    """Lines of the page about an id: its row of the table, and a line for each promise that is not kept."""
    if isinstance(certificate, str):
        return [f"- `{id}` was not checked: {certificate}"]
    findings = certificate.findings
    marks = ["kept" if f.status == KEPT else "**broken**" if f.status == BROKEN else "n/a" for f in findings]
    reasons = [f"- `{id}`, {f.promise}: {f.status}, {f.what}" for f in findings if f.status != KEPT]
    return [f"| `{id}` | {' | '.join(marks)} |", *reasons]


def page(lines: dict[str, list[str]], how: str) -> str:
    """The page in Markdown."""
    numbers = " | ".join(str(number) for number in range(1, len(PROMISES) + 1))
    head = [f"| id | {numbers} |", "| --- |" + " --- |" * len(PROMISES)]
    written = [line for id in sorted(lines) for line in lines[id]]
    rows = [line for line in written if line.startswith("|")]
    reasons = [line for line in written if line.startswith("-")]
    promises = [f"{number}. {promise.__doc__}" for number, promise in enumerate(PROMISES, start=1)]
    described = [" ".join(text.split()) for text in promises]
    parts = ["\n".join(described), how, "\n".join([*head, *rows]), "\n".join(reasons)]
    return _HEAD + "\n\n".join(part for part in parts if part) + "\n"


def read_page(path: Path, how: str) -> dict[str, list[str]]:
    """Lines of a page by their id; none if there is no page, or its checks were others."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines() if how in text else ():
        about = re.match(r"(?:\||-) `([^`]+)`", line)
        if about:
            lines.setdefault(about[1], []).append(line)
    return lines


def main() -> None:
    """Certify, and write the page after each id."""
    known = [registration.id for registration in REGISTRATIONS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="+", default=known, choices=known, metavar="ID", help="ids to certify")
    parser.add_argument("--tasks", type=int, default=3, help="tasks per check")
    parser.add_argument("--strings", type=int, default=10_000, help="random strings")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the page")
    chosen = parser.parse_args()
    how = f"{chosen.tasks} tasks per check, {chosen.strings} random strings."
    lines = {id: some for id, some in read_page(chosen.out, how).items() if id in known}
    for id in chosen.ids:
        started = time.perf_counter()
        lines[id] = lines_of(id, certificate_of(id, chosen.tasks, chosen.strings))
        chosen.out.write_text(page(lines, how), encoding="utf-8")
        print(f"{id}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
