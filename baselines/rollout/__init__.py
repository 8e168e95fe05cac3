"""Episodes with a language model: a collector, and one generation back end a file."""

from baselines.rollout.backend import Completion, Generator, Request
from baselines.rollout.collector import Collector, Episode
from baselines.rollout.transformers_backend import TransformersGenerator

__all__ = ["Collector", "Completion", "Episode", "Generator", "Request", "TransformersGenerator"]
