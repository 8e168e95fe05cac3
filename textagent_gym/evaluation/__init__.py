"""Evaluation that others can check: runs, statistics, result files, replays and a page to look at."""

from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, load, save
from textagent_gym.evaluation.replay import Mismatch, replay
from textagent_gym.evaluation.runner import evaluate
from textagent_gym.evaluation.statistics import (
    Interval,
    Summary,
    mean_interval,
    summarize,
    summarize_by_type,
    wilson_interval,
)

__all__ = [
    "EpisodeRecord",
    "Evaluation",
    "Interval",
    "Mismatch",
    "Summary",
    "evaluate",
    "load",
    "mean_interval",
    "replay",
    "save",
    "summarize",
    "summarize_by_type",
    "wilson_interval",
]
