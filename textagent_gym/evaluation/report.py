"""A page to look at: one self-contained HTML file with results, curves and transcripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment

from textagent_gym.evaluation.statistics import Summary


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of results."""

    agent: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Transcript:
    """An episode to read: its title, how it ended, and observations and actions in turn."""

    title: str
    ending: str
    turns: tuple[tuple[str, str], ...]
    last: str


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --good: #2a8f4f; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.25rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .45rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
.bar { position: relative; width: 12rem; height: .9rem; background: var(--soft); border-radius: .2rem; }
.bar i { position: absolute; top: 0; bottom: 0; left: 0; background: var(--good); border-radius: .2rem; opacity: .75; }
.bar b { position: absolute; top: .35rem; height: .2rem; background: currentColor; }
img { max-width: 100%; background: #fff; border-radius: .3rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0; padding: .5rem .9rem; }
summary { cursor: pointer; font-weight: 600; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.did { font-family: ui-monospace, monospace; border-left: .2rem solid var(--good); padding-left: .6rem; margin: .5rem 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.note { opacity: .75; }
</style></head><body>
<h1>{{ title }}</h1>
{% for line in notes %}<p class="note">{{ line }}</p>{% endfor %}
<h2>Results</h2>
<div class="scroll"><table>
<tr><th>agent</th><th>success, with its 95% interval</th><th></th><th>return</th><th>turns</th><th>episodes</th>
<th>tasks</th></tr>
{% for row in rows %}{% set s = row.summary.success %}<tr><td>{{ row.agent }}</td>
<td>{{ "%.1f"|format(100 * s.mean) }}% [{{ "%.1f"|format(100 * s.low) }}, {{ "%.1f"|format(100 * s.high) }}]</td>
<td><div class="bar"><i style="width: {{ 100 * s.mean }}%"></i>
<b style="left: {{ 100 * s.low }}%; width: {{ 100 * (s.high - s.low) }}%"></b></div></td>
<td>{{ "%.3f"|format(row.summary.total_reward.mean) }}</td><td>{{ "%.1f"|format(row.summary.turns.mean) }}</td>
<td>{{ row.summary.episodes }}</td><td>{{ row.summary.tasks }}</td></tr>
{% endfor %}</table></div>
{% for name, source in images %}<h2>{{ name }}</h2><img alt="{{ name }}" src="{{ source }}">{% endfor %}
{% if transcripts %}<h2>Episodes</h2>{% endif %}
{% for t in transcripts %}<details><summary>{{ t.title }}: {{ t.ending }}</summary>
{% for observation, action in t.turns %}<div class="said">{{ observation }}</div><div class="did">{{ action }}</div>
{% endfor %}<div class="said">{{ t.last }}</div></details>
{% endfor %}</body></html>
"""


def write_report(
    path: Path,
    title: str,
    rows: Sequence[Row],
    *,
    notes: Sequence[str] = (),
    images: Sequence[tuple[str, Path]] = (),
    transcripts: Sequence[Transcript] = (),
) -> None:
    """Write the page; it needs nothing outside itself, and everything that agents said is escaped.

    Args:
        path: path of the HTML file.
        title: title of the page.
        rows: rows of the table.
        notes: paragraphs under the title.
        images: names and PNG files.
        transcripts: episodes to read.
    """
    embedded = [
        (name, "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()) for name, file in images
    ]
    page = Environment(autoescape=True).from_string(_PAGE)
    path.write_text(
        page.render(title=title, rows=rows, notes=notes, images=embedded, transcripts=transcripts), encoding="utf-8"
    )
