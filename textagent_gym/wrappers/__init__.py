"""Gymnasium wrappers for text environments. They record their arguments, so that the spec of a wrapped env survives."""

from textagent_gym.wrappers.hints import IDLE_ACTIONS, AdmissibleActionHints
from textagent_gym.wrappers.history import ChatMessages, HistoryText
from textagent_gym.wrappers.limits import InvalidActionPenalty, ObservationLimit
from textagent_gym.wrappers.parsing import PARSERS, ActionParser

__all__ = [
    "IDLE_ACTIONS",
    "PARSERS",
    "ActionParser",
    "AdmissibleActionHints",
    "ChatMessages",
    "HistoryText",
    "InvalidActionPenalty",
    "ObservationLimit",
]
