"""A leaderboard as a folder of static pages: no server, and nothing from a network.

index.html                             table of all results
agents/AGENT.html                      an agent's success over the axes of difficulty, and returns over reward density
results/RESULT.html                    parts and episodes of a result
compare.html, episode.html             two agents task by task, and an episode turn by turn; both load data on demand
data/results/RESULT.js                 outcome of each episode
data/episodes/RESULT/PART/NUMBER.js    an episode
data/comparisons/SUITE.js              paired tests
site.json                              says that the folder is a leaderboard, which may be built anew

Whatever comes from a result is text of a stranger: pages escape it, scripts of data hold it as a string of JSON, and
`visible` shows what would command a terminal or turn the direction of writing.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import as_file, files
from itertools import combinations
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from textagent_gym.agents import differing, identifying
from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation import EpisodeRecord, Interval, Summary, compare, summarize
from textagent_gym.evaluation.trust import CHALLENGE, RECOMPUTED
from textagent_gym.files import check_writable, whole_folder, write_whole
from textagent_gym.leaderboard.charts import AXES, MAPS, Point, curve, density_curve, heat_map
from textagent_gym.leaderboard.entries import Entry, LeftOut, at_most, check_entry, find_results
from textagent_gym.leaderboard.literature import literature
from textagent_gym.leaderboard.trajectories import bounded, ending, trajectories
from textagent_gym.leaderboard.trust import LEVELS, draws_noted, level_of, read_ledger
from textagent_gym.terminal import one_line

MARKER = "site.json"
MOST_COMPARED = 15
"""Results of a suite, the best ones, of which each pair is tested: 105 pairs of 100 tasks take about two seconds."""
MOST_LISTED = 2000
"""Episodes that the page of a result lists; more rows make a page slow."""
FLAGGED = "flagged"
"""What stands beside the levels of trust of a result whose actions are the oracle's or the expert's."""
_LONGEST_DETAIL = 2000  # Characters of one fact about an agent.
_MOST_DETAILS = 50  # Facts about an agent.
_LONGEST_SETTINGS = 60  # Characters beside a name.
_SETTINGS = re.compile(r"[A-Za-z0-9_., +-]*")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of results.

    Attributes:
        name: name of the agent; where agents with other settings have the same name, with these, or with the end of
            its address.
        entry: result.
        summary: numbers of all its episodes.
        run: what tells several results of the agent in one suite apart, such as ", run 2"; else "".
    """

    name: str
    entry: Entry
    summary: Summary
    run: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """Signs that another one has played; none where tokens were computed again, for then nobody has (`worded`)."""
        return () if RECOMPUTED in self.entry.trust else self.entry.flags

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of trust, and `FLAGGED` where there is a sign to the contrary."""
        return (*self.entry.trust, FLAGGED) if self.flags else self.entry.trust

    @property
    def at_least(self) -> float:
        """Success if all episodes that broke are lost: nobody can check that they did."""
        episodes = self.entry.result.episodes
        return sum(episode.success and not episode.broken for episode in episodes) / len(episodes)


def build(
    results: Path,
    out: Path,
    *,
    title: str = "textagent-gym leaderboard",
    episodes: int = 50,
    seconds: float = 3600.0,
    workers: int = 1,
    progress: Callable[[int, str], None] | None = None,
) -> tuple[list[Entry], list[LeftOut]]:
    """Verify every result below a folder, and write a site that shows those which are right.

    Args:
        results: folder of the results.
        out: folder of the site; one that an earlier build has made is replaced, once the new one is complete.
        title: title of the site.
        episodes: number of episodes per part of a suite that can be stepped through.
        seconds: time after which checking one result stops.
        workers: number of processes that play what is checked; see `verify_result`.
        progress: called with the number of results that are done, and the name of the next one.

    Returns:
        the results that are shown, and those that are left out.

    Raises:
        InvalidOptionError: there is no result, `out` is something else than a site, or it is a site and no result is
            right that could replace it.
    """
    check_target(out)
    folders = find_results(results)
    if not folders:
        raise InvalidOptionError(f"{results} holds no result of a suite; textagent-gym eval --suite makes one")
    ledger = read_ledger(results)
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    with whole_folder(out, replace=True) as site:
        for number, folder in enumerate(folders):
            name = one_line(folder.relative_to(results).as_posix()) if folder != results else folder.name
            if progress is not None:
                progress(number, name)
            try:
                entry = check_entry(folder, seconds, workers=workers)
                if all(episode.broken for episode in entry.result.episodes):
                    raise InvalidOptionError("every episode broke")
                twins = [other.folder for other in entries if other.slug == entry.slug]
                if twins:
                    raise InvalidOptionError(one_line(f"it is the same as {twins[0]}"))
            except InvalidOptionError as error:
                left_out.append(LeftOut(name, (str(error),)))
                continue
            noted = ledger.get(entry.digest, ())
            proofs = [f"{each}." for each in noted if each not in LEVELS]
            levels = tuple(dict.fromkeys((*entry.trust, *map(level_of, noted))))
            entry = replace(entry, trust=levels, notes=(*entry.notes, *proofs))
            if CHALLENGE in entry.trust:
                entry = replace(entry, notes=(*entry.notes, draws_noted(results, entry.result.suite.name)))
            try:
                with at_most(seconds):
                    write_trajectories(site, entry, episodes)
            except InvalidOptionError:  # The oracle may need longer than all else.
                note = f"Episodes that take more than {seconds:g} seconds to play with the oracle are not shown."
                entry = replace(entry, notes=(*entry.notes, note))
            entries.append(entry)
        if not entries and (out / MARKER).is_file():
            reasons = " ".join(left_out[0].reasons)
            raise InvalidOptionError(
                f"no result below {results} can be shown, and the site in {out} stays as it is: {reasons}"
            )
        if progress is not None:
            progress(len(folders), "writing pages")
        write_pages(site, entries, left_out, title)
    return entries, left_out


def check_target(out: Path) -> None:
    """Raise `InvalidOptionError` unless a folder may be replaced by a site: it is missing, empty or a site."""
    check_writable(out, folder=True)
    if out.is_symlink():
        raise InvalidOptionError(f"{out} is a link; name a folder for the site")
    if out.is_dir() and any(out.iterdir()) and not (out / MARKER).is_file():
        raise InvalidOptionError(f"{out} holds something else than a leaderboard; name another folder")


def write_trajectories(site: Path, entry: Entry, most: int) -> None:
    """Write the first episodes of each part, each as a file of its own."""
    for part, number, values in trajectories(entry, most):
        write_data(site, f"episodes/{entry.slug}/{part.name}/{number}", values)


def write_pages(site: Path, entries: Sequence[Entry], left_out: Sequence[LeftOut], title: str) -> None:
    """Write everything but the episodes; which of these can be stepped through is seen from their files."""
    pages = _Pages(site, title)
    names, runs = _names(entries), _runs(entries)
    rows = [
        Row(names[entry.agent_slug], entry, _summary(entry, entry.result.episodes), runs[entry.slug])
        for entry in entries
    ]
    rows.sort(key=lambda row: (row.entry.result.suite.name, -row.at_least, row.entry.agent))
    by_suite: dict[str, list[Row]] = {}
    by_agent: dict[str, list[Row]] = {}
    for row in rows:
        by_suite.setdefault(row.entry.result.suite.name, []).append(row)
        by_agent.setdefault(row.entry.agent_slug, []).append(row)
    filters = (
        ("suite", list(by_suite)),
        ("world", sorted({world for entry in entries for world in entry.worlds})),
        ("trust", sorted({level for row in rows for level in row.levels})),
    )
    shown_rows: dict[str, Any] = {"rows": rows, "agents": len(by_agent), "filters": filters}
    pages.write("index.html", "index.html", "index", **shown_rows, left_out=left_out, literature=literature())
    pages.write("about.html", "about.html", "about", left_out=left_out, levels=LEVELS, version=version("textagent-gym"))
    pages.write("compare.html", "compare.html", "compare", suites=list(by_suite.items()), most=MOST_COMPARED)
    pages.write("episode.html", "episode.html", "episode")
    for slug, of_agent in by_agent.items():
        pages.write("agent.html", f"agents/{slug}.html", "agent", **_agent_page(of_agent))
    for row in rows:
        pages.write("result.html", f"results/{row.entry.slug}.html", "result", **_result_page(site, row))
        write_data(site, f"results/{row.entry.slug}", _outcomes(site, row))
    for of_suite in by_suite.values():
        compared = [row.entry for row in of_suite[:MOST_COMPARED]]
        write_data(site, f"comparisons/{compared[0].suite_slug}", comparisons(compared))
    with as_file(files(__package__) / "static") as static:
        shutil.copytree(static, site, dirs_exist_ok=True)
    write_whole(
        site / MARKER, json.dumps({"made by": "textagent-gym leaderboard build", "results": len(entries)}) + "\n"
    )


def write_data(site: Path, key: str, values: dict[str, Any]) -> None:
    """Write values as a script that hands them to the page.

    They are a string of JSON within a string, all ASCII and without "<", so that nothing in them is code, whatever they
    hold and wherever the script is put.
    """
    text = json.dumps(json.dumps(values, separators=(",", ":"))).replace("<", "\\u003c")
    write_whole(site / "data" / f"{key}.js", f"textagent.receive({json.dumps(key)}, {text});\n")


def comparisons(entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    """Paired tests of each pair of results of one suite, by both of their names."""
    parts = [
        (entry.slug, {name: evaluation.episodes for name, evaluation in entry.result.evaluations.items()})
        for entry in entries
    ]
    pairs = {}
    for (first, ours), (second, theirs) in combinations(parts, 2):
        try:
            result = compare(ours, theirs)
        except InvalidOptionError:  # They have no task in common that did not break.
            continue
        pairs[f"{first} {second}"] = {
            **{name: getattr(result, name) for name in ("tasks", "left_out", "better", "worse")},
            **{name: _rounded(getattr(result, name)) for name in ("first", "second", "difference")},
            "p_value": round(result.p_value, 6),
        }
    return pairs


class _Pages:
    """Writes pages from templates, in which everything is escaped.

    Args:
        site: folder of the site.
        title: title of the site.
    """

    def __init__(self, site: Path, title: str) -> None:
        self._site = site
        self._environment = Environment(
            loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._environment.globals["title"] = one_line(title)
        self._environment.filters.update(number=_number, bounds=_bounds, percent=_percent, percents=_percents)

    def write(self, template: str, path: str, page: str, **values: Any) -> None:
        """Write a page.

        Args:
            template: name of the template.
            path: path of the page below the site.
            page: name of the page, by which its script knows what to do.
            values: what the template shows.
        """
        root = "../" * path.count("/")
        write_whole(self._site / path, self._environment.get_template(template).render(values, root=root, page=page))


def _names(entries: Sequence[Entry]) -> dict[str, str]:
    """How agents are called, by their addresses; see `Row`."""
    namesakes: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        namesakes.setdefault(entry.agent, {})[entry.agent_slug] = entry
    names = {}
    for name, known in namesakes.items():
        details = [
            {**identifying(entry.result.details), "not recomputed": entry.only_claimed} for entry in known.values()
        ]
        settings = [_settings(each, differing(details)) for each in details]
        for slug, text in zip(known, settings, strict=True):
            fits = len(text) <= _LONGEST_SETTINGS and _SETTINGS.fullmatch(text)
            label = text if fits and settings.count(text) == 1 else slug[-8:]
            names[slug] = f"{name} ({label})" if label else name
    return names


def _settings(details: Mapping[str, Any], names: Sequence[str]) -> str:
    """Some settings of an agent, such as "hints, temperature 0.2", without those that it does not have."""
    values = [(name, details.get(name)) for name in names]
    had = [(name, value) for name, value in values if value is not False and value not in (None, "")]
    return ", ".join(name if value is True else f"{name} {value}" for name, value in had)


def _runs(entries: Sequence[Entry]) -> dict[str, str]:
    """Numbers of the results of one agent in one suite, by their addresses; see `Row`."""
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        alike.setdefault((entry.result.suite.name, entry.agent_slug), []).append(entry.slug)
    return {
        slug: f", run {number}" if len(slugs) > 1 else ""
        for slugs in alike.values()
        for number, slug in enumerate(slugs, 1)
    }


def _summary(entry: Entry, episodes: Sequence[EpisodeRecord]) -> Summary:
    unit_returns = all(evaluation.unit_returns for evaluation in entry.result.evaluations.values())
    return summarize(episodes, unit_returns=unit_returns)


def _agent_page(rows: Sequence[Row]) -> dict[str, Any]:
    by_world: dict[str, list[EpisodeRecord]] = {}
    densities: dict[str, list[tuple[str, list[Point]]]] = {}
    for entry in (row.entry for row in rows):
        for name, evaluation in entry.result.evaluations.items():
            played = [episode for episode in evaluation.episodes if not episode.broken]
            if played:
                by_world.setdefault(entry.worlds_of_parts[name], []).extend(played)
        points = density_curve(entry.result, entry.densities)
        if points and len(entry.worlds) == 1:
            densities.setdefault(entry.worlds[0], []).append((entry.result.suite.name, points))
    worlds = []
    for world, episodes in sorted(by_world.items()):
        curves = [(label, curve(episodes, axis)) for axis, label in AXES.items()]
        maps = [heat_map(episodes, across, down) for across, down in MAPS]
        worlds.append(
            {
                "name": world,
                "episodes": len(episodes),
                "curves": [(label, points) for label, points in curves if points],
                "maps": [each for each in maps if each is not None],
                "densities": densities.get(world, ()),
            }
        )
    entry = rows[0].entry
    learning = dict.fromkeys(row.entry.result.learning for row in rows if row.entry.result.learning is not None)
    return {"agent": rows[0].name, "details": _details(entry), "rows": rows, "worlds": worlds, "learning": [*learning]}


def _result_page(site: Path, row: Row) -> dict[str, Any]:
    entry = row.entry
    part_summaries, episodes = [], []
    for name, evaluation in entry.result.evaluations.items():
        whole = any(not episode.broken for episode in evaluation.episodes)
        part_summaries.append((name, _summary(entry, evaluation.episodes) if whole else None))
        for number, episode in enumerate(evaluation.episodes):
            episodes.append(
                {
                    "task": bounded(episode.task),
                    "part": name,
                    "link": f"{entry.slug}/{name}/{number}" if _is_shown(site, entry, name, number) else "",
                    "ending": ending(episode),
                    "success": episode.success,
                    "total": None if episode.broken else episode.total_reward,  # Its last turn is not played again.
                    "turns": episode.turns,
                    "optimum": (episode.complexity or {}).get("solution_length"),
                    "invalid": episode.invalid_actions,
                }
            )
    return {
        "row": row,
        "details": _details(entry),
        "notes": [f"Flag: {one_line(note)}" if note in row.flags else one_line(note) for note in entry.remarks],
        "part_summaries": part_summaries,
        "episodes": episodes[:MOST_LISTED],
        "hidden": max(0, len(episodes) - MOST_LISTED),
    }


def _outcomes(site: Path, row: Row) -> dict[str, Any]:
    """The outcome of each episode, for the pages that load data on demand."""
    entry, summary = row.entry, row.summary
    parts = {
        name: [
            {
                "task": bounded(episode.task),
                "ending": ending(episode),
                "success": None if episode.broken else episode.success,
                "turns": episode.turns,
                "shown": _is_shown(site, entry, name, number),
            }
            for number, episode in enumerate(evaluation.episodes)
        ]
        for name, evaluation in entry.result.evaluations.items()
    }
    return {
        "slug": entry.slug,
        "agent": row.name + row.run,
        "suite": entry.result.suite.name,
        "comparisons": entry.suite_slug,
        "success": _rounded(summary.success),
        "turns": _rounded(summary.turns),
        "invalid": _rounded(summary.invalid_share),
        "parts": parts,
    }


def _rounded(value: Interval | None) -> list[float | None]:
    """Mean and bounds as JSON values; `None` for a bound that is not known."""
    bounds = (value.mean, value.low, value.high) if value is not None else ()
    return [round(bound, 6) if math.isfinite(bound) else None for bound in bounds]


def _is_shown(site: Path, entry: Entry, part: str, number: int) -> bool:
    return (site / "data" / "episodes" / entry.slug / part / f"{number}.js").exists()


def _details(entry: Entry) -> list[tuple[str, str]]:
    """Facts about the agent, as text."""
    facts = [
        (one_line(name), one_line(value if isinstance(value, str) else json.dumps(value), _LONGEST_DETAIL))
        for name, value in sorted(entry.result.details.items())
        if value is not None
    ]
    return facts[:_MOST_DETAILS]


def _number(value: Interval, digits: int = 2) -> str:
    return f"{value.mean:.{digits}f}"


def _bounds(value: Interval, digits: int = 2) -> str:
    if not math.isfinite(value.high - value.low):
        return "[n/a]"
    return f"[{value.low:.{digits}f}, {value.high:.{digits}f}]"


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}%"


def _percents(value: Interval, digits: int = 1) -> str:
    return f"[{100 * value.low:.{digits}f}, {100 * value.high:.{digits}f}]"
