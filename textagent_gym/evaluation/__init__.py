"""Evaluation that others can check: runs, statistics, result files, replays and a page to look at."""

from textagent_gym.evaluation.demonstrations import demonstrate
from textagent_gym.evaluation.episode import Episode, Turn, count_tasks, play, play_until_whole
from textagent_gym.evaluation.records import EpisodeRecord, Evaluation, begin, digest, load, record, save
from textagent_gym.evaluation.replay import Mismatch, replay
from textagent_gym.evaluation.report import Row, Transcript, write_report
from textagent_gym.evaluation.runner import check_evaluation, evaluate
from textagent_gym.evaluation.statistics import (
    Interval,
    Summary,
    mean_interval,
    share_interval,
    summarize,
    summarize_by_type,
    wilson_interval,
)
from textagent_gym.evaluation.untrusted import spec_from_file

__all__ = [
    "Episode",
    "EpisodeRecord",
    "Evaluation",
    "Interval",
    "Mismatch",
    "Row",
    "Summary",
    "Transcript",
    "Turn",
    "begin",
    "check_evaluation",
    "count_tasks",
    "demonstrate",
    "digest",
    "evaluate",
    "load",
    "mean_interval",
    "play",
    "play_until_whole",
    "record",
    "replay",
    "save",
    "share_interval",
    "spec_from_file",
    "summarize",
    "summarize_by_type",
    "wilson_interval",
    "write_report",
]
