"""How long a browser takes to show a large leaderboard: a thousand results, ten thousand episodes to step through.

    python -m benchmarks.leaderboard_site

Results of the suite's own agents stand for many: each is shown under a thousandth of the names. Times are those of the
browser itself (first contentful paint), for pages opened as files; the first open of a browser that has just started.
"""

from __future__ import annotations

import shutil
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.reference_entries import ENTRIES
from textagent_gym.leaderboard import Entry, check_entry, find_results
from textagent_gym.leaderboard.site import write_pages, write_trajectories

_PAINTS = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"  # Milliseconds.
LONGEST_WAIT = 120_000
"""Milliseconds after which a browser is taken to hang: a busy machine needs some thirty seconds to start one."""
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@dataclass(frozen=True)
class Settings:
    """Build a large site, and open its pages in Chromium."""

    entries: Path = ENTRIES
    """Folder of the results that stand for many."""
    results: int = 1000
    """Number of results."""
    episodes: int = 10_000
    """Number of episodes that can be stepped through."""
    chromium: str = shutil.which("chromium") or "chromium"
    """Path of the browser."""
    repeats: int = 5
    """Number of times that each page is opened, in a new browser."""


def write_large_site(site: Path, entries: list[Entry], results: int, episodes: int) -> None:
    """A site that shows some results again and again under other names, and their episodes as often as is asked for."""
    many = []
    for number in range(results):
        entry = entries[number % len(entries)]
        result = replace(entry.result, agent=f"agent {number} ({entry.result.agent})")
        many.append(replace(entry, slug=f"{entry.slug}-{number}", result=result))
    for entry in entries:
        write_trajectories(site, entry, 10)
    written = 0
    for number, entry in enumerate(many):
        folder = site / "data" / "episodes" / entries[number % len(entries)].slug
        for path in sorted(folder.rglob("*.js")):
            if written < episodes:
                copy = site / "data" / "episodes" / entry.slug / path.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(path.read_text().replace(folder.name, entry.slug, 1))
                written += 1
    write_pages(site, many, [], "A large leaderboard")


def first_paint(address: str, settings: Settings) -> list[float]:
    """Seconds until the first contentful paint, each in a new browser."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as engine:
        for _ in range(settings.repeats):
            browser = engine.chromium.launch(
                executable_path=settings.chromium, args=list(ARGUMENTS), timeout=LONGEST_WAIT
            )
            page = browser.new_page()
            page.goto(address, timeout=LONGEST_WAIT)
            while not (paints := page.evaluate(_PAINTS)):
                time.sleep(0.05)
            times.append(paints[0] / 1000)
            browser.close()
    return times


def seconds_to_sort(address: str, settings: Settings) -> float:
    """Seconds from a click on a column until the table of results is drawn in another order."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=settings.chromium, args=[*ARGUMENTS], timeout=LONGEST_WAIT)
        page = browser.new_page()
        page.goto(address, timeout=LONGEST_WAIT)
        milliseconds = page.evaluate(
            """async () => { const start = performance.now(); document.querySelectorAll(".sort")[1].click();
            await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)));
            return performance.now() - start; }"""
        )
        browser.close()
    return float(milliseconds) / 1000


def main(settings: Settings) -> None:
    """Build, open and print."""
    console = Console()
    with TemporaryDirectory() as folder:
        site = Path(folder)
        entries = [check_entry(path) for path in find_results(settings.entries)]
        started = time.perf_counter()
        write_large_site(site, entries, settings.results, settings.episodes)
        files = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
        console.print(
            f"{settings.results} results and {settings.episodes} episodes: {len(files)} files, "
            f"{sum(files) / 1e6:.0f} MB, written in {time.perf_counter() - started:.0f} s"
        )
        episode = sorted((site / "data" / "episodes").rglob("*.js"))[0].relative_to(site / "data" / "episodes")
        names = {
            "table": "index.html",
            "an agent": f"agents/{sorted((site / 'agents').iterdir())[0].name}",
            "two agents": "compare.html",
            "an episode": f"episode.html?e={episode.with_suffix('').as_posix()}",
        }
        table = Table("page", "first paint: median of s", "slowest", title=f"{settings.repeats} fresh browsers each")
        for label, name in names.items():
            times = first_paint(f"{site.as_uri()}/{name}", settings)
            table.add_row(label, f"{statistics.median(times):.2f}", f"{max(times):.2f}")
        console.print(table)
        sorting = seconds_to_sort(f"{site.as_uri()}/index.html", settings)
        console.print(f"Sorting the table by a column: {sorting:.2f} s")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
