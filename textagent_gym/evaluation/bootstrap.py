"""Bootstrap intervals of means, equal to the last digit on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import frexp, ldexp, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FEWEST = 5
"""Values below which a bootstrap has too few different samples: means of three values cover at most three quarters."""
MOST = 999
"""Values above which the normal approximation gives the same bounds, to a hundredth of the interval's length."""
RESAMPLES = 5_000
"""Samples that are drawn: bounds then vary by about a hundredth of the interval's length."""
_BITS = 62  # Of sums as integers, so that they fit in 64 bits with their sign.


def mean_bounds(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the confidence interval of a mean of independent values, by the expanded percentile bootstrap.

    Percentiles of the means of samples drawn with replacement. They are further out than usual, for the spread of few
    values is underestimated, and is not known, as with Student's t. Source: Efron, 1979, "Bootstrap methods";
    Hesterberg, 2015, "What Teachers Should Know About the Bootstrap" (arXiv 1411.5279), on expanded percentiles.

    Bounds depend on the values alone, not on their order: values are sorted, draws are raw numbers of PCG64, which
    numpy promises to leave as they are, and sums are those of integers.

    Args:
        values: values, from `FEWEST` to `MOST` of them.
        confidence: probability with which the interval covers the mean.

    Raises:
        ValueError: there are fewer values or more.

    >>> mean_bounds([0.0, 0.25, 0.5, 1.0, 1.0])
    (0.05, 1.0)
    """
    count = len(values)
    if not FEWEST <= count <= MOST:
        raise ValueError(f"{FEWEST} to {MOST} values can be drawn again, got {count}")
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    shift = _BITS - count.bit_length() - frexp(max(-ordered[0], ordered[-1]))[1]
    integers = np.rint(np.ldexp(ordered, shift)).astype(np.int64)
    sums = np.sort(integers[_draws(count)].sum(axis=1))
    tail = NormalDist().cdf(-sqrt(count / (count - 1)) * student_quantile(0.5 + confidence / 2, count - 1))
    outside = int(tail * RESAMPLES)
    low, high = int(sums[outside]), int(sums[-1 - outside])
    return ldexp(low / count, -shift), ldexp(high / count, -shift)


def student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t, to three digits from four degrees of freedom on.

    Source: Abramowitz and Stegun, 1964, "Handbook of Mathematical Functions", 26.7.5.

    >>> round(student_quantile(0.975, 9), 3)
    2.262
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


@lru_cache(maxsize=4)  # Numbers of one summary are over the same tasks, so draws serve all of them; 10 MB at most.
def _draws(count: int) -> NDArray[np.uint16]:
    """Places of values, drawn with replacement, shape (RESAMPLES, count)."""
    raw = np.random.PCG64(count).random_raw((RESAMPLES, count))
    return ((raw >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.uint16)
