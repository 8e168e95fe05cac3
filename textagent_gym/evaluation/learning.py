"""The learning curve of the run that a policy comes from, beside the policy's result.

It is what the submitter says: no replay can check it. So it is numbers alone, few of them, and pages say so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from textagent_gym.errors import InvalidOptionError
from textagent_gym.evaluation.records import bounded_lines, read_line, small_file

LEARNING = "learning.json"
FORMAT = "textagent-gym learning curve 1"
MOST_POINTS = 200
"""Points of a curve: as many as a chart has room for."""
_METRICS = "metrics.jsonl"  # The file of a run folder with a line per iteration.
_LONGEST = 10**9  # Iterations of a run, at most.


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Success in training.

    Attributes:
        iterations: numbers of iterations, growing.
        success: share of solved episodes, 0 to 1, from the iteration before to each of them.
    """

    iterations: tuple[int, ...]
    success: tuple[float, ...]

    def to_json(self) -> str:
        """The file of the curve."""
        values = {"format": FORMAT, "iterations": self.iterations, "success": self.success}
        return json.dumps(values, sort_keys=True) + "\n"


def curve_of(run: Path) -> LearningCurve:
    """The learning curve of a run folder; of neighbouring iterations the mean, where there are more than `MOST_POINTS`.

    Raises:
        InvalidOptionError: the folder holds no metrics, or none of them tells success.
    """
    points: dict[int, float] = {}
    for number, text in enumerate(bounded_lines(run / _METRICS), start=1):
        try:
            values = json.loads(text)  # It is the caller's own file, and may hold metrics that are no numbers.
        except ValueError as error:
            raise InvalidOptionError(f"{run / _METRICS}, line {number} is no JSON: {error}") from None
        if isinstance(values, dict) and _is_point(values.get("iteration"), values.get("success")):
            points[values["iteration"]] = float(values["success"])  # A run that resumed says an iteration twice.
    if not points:
        raise InvalidOptionError(f"{run / _METRICS} holds no iteration with its success: there is no learning curve")
    iterations = sorted(points)
    count = min(MOST_POINTS, len(iterations))
    edges = [len(iterations) * place // count for place in range(count + 1)]
    groups = [iterations[low:high] for low, high in pairwise(edges)]
    return LearningCurve(
        tuple(group[-1] for group in groups),
        tuple(round(fmean(points[iteration] for iteration in group), 6) for group in groups),
    )


def read_curve(folder: Path) -> LearningCurve | None:
    """The learning curve in the folder of a result that somebody else made; `None` if there is none.

    Raises:
        InvalidOptionError: the file holds something else.
    """
    path = folder / LEARNING
    if not os.path.lexists(path):
        return None
    text = small_file(path)
    try:
        values = read_line(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"is not of {FORMAT!r}")
        curve = LearningCurve(*(tuple(_list(values, name)) for name in ("iterations", "success")))
        points = list(zip(curve.iterations, curve.success, strict=True))
        right = 1 <= len(points) <= MOST_POINTS and all(_is_point(*point) for point in points)
        if not right or any(one >= other for one, other in pairwise(curve.iterations)):
            raise ValueError(f"holds no 1 to {MOST_POINTS} growing iterations, each with a success from 0 to 1")
        if text != curve.to_json().encode():
            raise ValueError("is written otherwise than a learning curve is")
    except (ValueError, TypeError) as error:
        raise InvalidOptionError(f"{path} {error}") from None
    return curve


def _list(values: dict[str, Any], name: str) -> Iterator[Any]:
    if not isinstance(values.get(name), list):
        raise ValueError(f"has no list of {name}")
    return iter(values[name])


def _is_point(iteration: Any, success: Any) -> bool:
    """Whether values are the number of an iteration and a share."""
    counted = type(iteration) is int and 0 <= iteration <= _LONGEST
    return counted and type(success) in (int, float) and 0 <= success <= 1
