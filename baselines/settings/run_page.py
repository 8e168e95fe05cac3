"""The page of a run: one HTML file with settings, curves, episodes to read and what went wrong, and nothing outside it.

    python -m baselines.page runs/grpo

What a policy wrote is untrusted text: all text is escaped, and the page has no script.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment

from baselines.settings.run_folder import EVALUATIONS, METRICS, RunFolderError, logged_lines, write_whole

PAGE = "index.html"
_FIRST = ("success", "return", "score", "turns", "loss", "critic_loss", "gradient_norm", "entropy_estimate", "broken")
"""Metrics whose curves come first; the others follow in the order of the file."""
_LATEST = 12  # Episodes, breaks and starts on the page: the last ones, as a run may have thousands.
_MOST_POINTS = 640  # Points of a line: two per unit of its drawing, however long the run is.
_WIDTH, _HEIGHT = 320, 120  # Size of a curve in the units of its drawing.
_MARGIN = 6  # Space around a curve, so that its thickest point is not cut.

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --curve: #2f6fdb; --held: #c2570c; --good: #1f8a4c;
  --bad: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --curve: #7fb0ff; --held: #ffab66; --good: #5fce8d; --bad: #ff8a7a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; margin-bottom: .3rem; }
h2 { margin-top: 2.2rem; font-size: 1.2rem; }
.note { opacity: .75; margin: .3rem 0; }
.bad { color: var(--bad); } .good { color: var(--good); }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .4rem; }
figcaption { display: flex; justify-content: space-between; gap: .6rem; font-size: .85rem; overflow-wrap: anywhere; }
figcaption b { font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { width: 100%; height: auto; display: block; }
.axis { display: flex; justify-content: space-between; font-size: .75rem; opacity: .7;
  font-variant-numeric: tabular-nums; }
.one { fill: none; stroke: var(--curve); stroke-width: 2; } .one-dot { fill: var(--curve); }
.two { fill: none; stroke: var(--held); stroke-width: 2; stroke-dasharray: 5 3; } .two-dot { fill: var(--held); }
.key { color: var(--curve); } .key-two { color: var(--held); }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0; padding: .5rem .9rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
.said, .did { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.did { font-family: ui-monospace, monospace; font-size: .9rem; border-left: .2rem solid var(--curve);
  padding-left: .7rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td:first-child { white-space: nowrap; }
code { font-family: ui-monospace, monospace; font-size: .85rem; }
</style></head><body>
<h1>{{ title }}</h1>
<p class="note">{{ iterations }}{% if asked %} of {{ asked }}{% endif %} iterations{% if env %}, {{ env }}{%
endif %}</p>
{% if stopped %}<p class="{{ 'bad' if stopped.cause else 'good' }}">{% if stopped.cause %}Stopped after iteration
{{ stopped.iteration }}: {{ stopped.cause }}{% else %}Finished.{% endif %}</p>{% endif %}
{% if curves %}<h2>Curves</h2>
<p class="note"><span class="key">&#9632;</span> training{% if held_out %}, <span class="key-two">&#9632;</span>
held-out tasks{% endif %}; the number is the last one of training.</p>
<div class="curves">{% for c in curves %}<figure><figcaption><span>{{ c.name }}</span><b>{{ c.last }}</b></figcaption>
<svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ c.name }}">
{% for line in c.lines %}<polyline class="{{ line.style }}" points="{{ line.points }}"/>
{% for x, y in line.dots %}<circle class="{{ line.style }}-dot" cx="{{ x }}" cy="{{ y }}" r="3"/>{% endfor %}
{% endfor %}
</svg><div class="axis"><span>{{ c.low }} to {{ c.high }}</span><span>{{ c.span }}</span></div></figure>
{% endfor %}</div>{% endif %}
{% if episodes %}<h2>Episodes</h2>
{% for e in episodes %}<details><summary>iteration {{ e.iteration }}, {{ e.kind }}: {% if e.return is not none
%}return {{ e.return }}, {% endif %}{% if e.success is not none %}<span class="{{ 'good' if e.success else 'bad' }}">{{
"solved" if e.success else "not solved" }}</span>, {% endif %}{{ e.turns|length }} turns{% if e.ending %}, {{ e.ending
}}{% endif %}</summary>
<p class="note">{{ e.task or "" }}</p>
{% for t in e.turns %}<div class="said">{{ t.observation }}</div><div class="did">{{ t.action }}{% if t.reward %}
  [reward {{ t.reward }}]{% endif %}</div>
{% endfor %}<div class="said">{{ e.last_observation }}</div></details>
{% endfor %}{% endif %}
{% if breaks %}<h2>Broken worlds</h2>
<p class="note">{{ broken }} in all, played again or left out of the loss; the last ones:</p>
<div class="scroll"><table><tr><th>iteration</th><th>seed</th><th>cause</th></tr>
{% for b in breaks %}<tr><td>{{ b.iteration }}</td><td>{{ b.seed }}</td><td>{{ b.reason }}</td></tr>{% endfor %}
</table></div>{% endif %}
{% if starts %}<h2>Starts</h2>
{% for s in starts %}<details><summary>{{ s.time }}, from iteration {{ s.iteration }}, {{ s.processes }}
process{{ "" if s.processes == 1 else "es" }} on {{ s.device }}</summary>
<table><tr><td>command</td><td><code>{{ s.command|join(" ") }}</code></td></tr>
<tr><td>git</td><td><code>{{ s.git or "not a checkout" }}</code></td></tr>
{% for name, value in s.versions|items %}<tr><td>{{ name }}</td><td>{{ value }}</td></tr>{% endfor %}
</table></details>{% endfor %}{% endif %}
<h2>Settings</h2>
<details><summary>{{ config|length }} settings</summary>
<table>{% for name, value in config|items %}<tr><td>{{ name }}</td><td><code>{{ value }}</code></td></tr>{% endfor %}
</table></details>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a drawing: its class, and its points in the units of the drawing; single points are dots."""

    style: str
    points: str
    dots: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Curve:
    """A metric over the iterations, as the page shows it."""

    name: str
    last: str
    low: str
    high: str
    span: str
    lines: list[_Line]


def write_page(folder: Path) -> Path:
    """Write the page of a run from the files of its folder, and return its path.

    Raises:
        RunFolderError: the folder holds no run, or the page cannot be written.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder} holds no run: {error}") from error
    metrics, evaluations, log = (logged_lines(folder / file) for file in (METRICS, EVALUATIONS, "log.jsonl"))
    episodes, breaks = logged_lines(folder / "trajectories.jsonl"), logged_lines(folder / "broken.jsonl")
    last = log[-1] if log and log[-1].get("event") == "stop" else None
    page = Environment(autoescape=True).from_string(_PAGE)
    text = page.render(
        title=folder.resolve().name,
        iterations=metrics[-1]["iteration"] if metrics else 0,
        asked=config.get("iterations"),
        env=config.get("env"),
        stopped=last,
        curves=_curves(metrics, evaluations),
        held_out=bool(evaluations),
        episodes=[_rounded(episode) for episode in reversed(episodes[-_LATEST:])],
        broken=len(breaks),
        breaks=list(reversed(breaks[-_LATEST:])),
        starts=[event for event in reversed(log) if event.get("event") == "start"][:_LATEST],
        config=config,
        width=_WIDTH,
        height=_HEIGHT,
    )
    path = folder / PAGE
    try:
        write_whole(path, text)
    except OSError as error:
        raise RunFolderError(f"{path} could not be written: {error}") from error
    return path


def _rounded(episode: dict[str, Any]) -> dict[str, Any]:
    """The episode with its numbers as they are shown."""
    turns = [{**turn, "reward": _short(turn["reward"]) if turn.get("reward") else ""} for turn in episode["turns"]]
    total = episode["return"]
    return {**episode, "return": None if total is None else _short(total), "turns": turns}


def _curves(metrics: Sequence[dict[str, Any]], evaluations: Sequence[dict[str, Any]]) -> list[_Curve]:
    names = dict.fromkeys(name for line in metrics for name, value in line.items() if _is_number(value))
    names.pop("iteration", None)
    first = [name for name in _FIRST if name in names]
    curves = []
    for name in [*first, *(name for name in names if name not in first)]:
        trained, held_out = _points(metrics, name), _points(evaluations, name)
        everything = [*trained, *held_out]
        xs, ys = [x for x, _ in everything], [y for _, y in everything]
        low, high = min(ys), max(ys)
        lines = [_line("one", trained, xs, ys)] + ([_line("two", held_out, xs, ys)] if held_out else [])
        span = f"iteration {min(xs):g} to {max(xs):g}" if min(xs) < max(xs) else f"iteration {xs[0]:g}"
        curves.append(_Curve(name, _short(trained[-1][1]), _short(low), _short(high), span, lines))
    return curves


def _points(lines: Iterable[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    points = [(line["iteration"], line[name]) for line in lines if _is_number(line.get(name))]
    return points[:: -(-len(points) // _MOST_POINTS) or 1][:-1] + points[-1:]


def _line(style: str, points: Sequence[tuple[float, float]], xs: Sequence[float], ys: Sequence[float]) -> _Line:
    """The points in the units of the drawing, whose corners are the extremes of `xs` and `ys`."""

    def place(value: float, values: Sequence[float], size: int) -> float:
        low, high = min(values), max(values)
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_MARGIN + share * (size - 2 * _MARGIN), 2)

    drawn = [(place(x, xs, _WIDTH), _HEIGHT - place(y, ys, _HEIGHT)) for x, y in points]
    return _Line(style, " ".join(f"{x:g},{y:g}" for x, y in drawn), drawn if len(drawn) == 1 else [])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: float) -> str:
    return f"{value:.4g}"
