"""Episodes with a language model: a collector over a pool of environments, and one generation back end per file."""

from baselines.rollout.backend import Completion, ContinuousGenerator, Generator, Prompt, make_generator
from baselines.rollout.collector import (
    BrokenEpisode,
    Collection,
    Collector,
    EpisodeRequest,
    Start,
    make_collector,
    share_of,
)
from baselines.rollout.transformers_backend import TransformersGenerator

__all__ = [
    "BrokenEpisode",
    "Collection",
    "Collector",
    "Completion",
    "ContinuousGenerator",
    "EpisodeRequest",
    "Generator",
    "Prompt",
    "Start",
    "TransformersGenerator",
    "make_collector",
    "make_generator",
    "share_of",
]
