"""Evaluation that others can check: runs, statistics, result files, replays and a page to look at."""

from textagent_gym.evaluation.certificate import Certificate, Finding, certify
from textagent_gym.evaluation.comparison import Comparison, compare
from textagent_gym.evaluation.copies import Copy, EpisodeCopy, find_copies
from textagent_gym.evaluation.demonstrations import demonstrate
from textagent_gym.evaluation.draws import draw
from textagent_gym.evaluation.episode import Episode, Turn, count_tasks, episode_seed, play, play_until_whole
from textagent_gym.evaluation.players import AgentMaker
from textagent_gym.evaluation.published import SUITES, suite_of
from textagent_gym.evaluation.records import (
    EpisodeRecord,
    Evaluation,
    begin,
    digest,
    load,
    other_versions,
    record,
    save,
)
from textagent_gym.evaluation.replay import Mismatch, replay
from textagent_gym.evaluation.report import Row, Transcript, write_report
from textagent_gym.evaluation.results import Result, check_suite, evaluate_suite
from textagent_gym.evaluation.runner import check_evaluation, evaluate
from textagent_gym.evaluation.statistics import (
    Interval,
    SuccessRate,
    Summary,
    cluster_interval,
    interquartile_mean,
    mean_interval,
    pass_at_k,
    pass_hat_k,
    repeated,
    share_interval,
    success_by_axis,
    success_rate,
    summarize,
    summarize_by_type,
    wilson_interval,
)
from textagent_gym.evaluation.suites import Part, Suite
from textagent_gym.evaluation.trust import Challenge, Commitment, commit, policy_digest, policy_files, read_challenge
from textagent_gym.evaluation.untrusted import spec_from_file
from textagent_gym.evaluation.verification import Verification, load_result, verify_result

__all__ = [
    "SUITES",
    "AgentMaker",
    "Certificate",
    "Challenge",
    "Commitment",
    "Comparison",
    "Copy",
    "Episode",
    "EpisodeCopy",
    "EpisodeRecord",
    "Evaluation",
    "Finding",
    "Interval",
    "Mismatch",
    "Part",
    "Result",
    "Row",
    "SuccessRate",
    "Suite",
    "Summary",
    "Transcript",
    "Turn",
    "Verification",
    "begin",
    "certify",
    "check_evaluation",
    "check_suite",
    "cluster_interval",
    "commit",
    "compare",
    "count_tasks",
    "demonstrate",
    "digest",
    "draw",
    "episode_seed",
    "evaluate",
    "evaluate_suite",
    "find_copies",
    "interquartile_mean",
    "load",
    "load_result",
    "mean_interval",
    "other_versions",
    "pass_at_k",
    "pass_hat_k",
    "play",
    "play_until_whole",
    "policy_digest",
    "policy_files",
    "read_challenge",
    "record",
    "repeated",
    "replay",
    "save",
    "share_interval",
    "spec_from_file",
    "success_by_axis",
    "success_rate",
    "suite_of",
    "summarize",
    "summarize_by_type",
    "verify_result",
    "wilson_interval",
    "write_report",
]
