"""Gymnasium wrappers for text environments. They record their arguments, so that the spec of a wrapped env survives.

The examples play `lights/Lights-v0`, the sample world of the page on adding a world; any id will do.
"""

from textagent_gym.wrappers.hints import AdmissibleActionHints, without_hints
from textagent_gym.wrappers.history import ChatMessages, HistoryText
from textagent_gym.wrappers.limits import ObservationLimit
from textagent_gym.wrappers.parsing import ActionParser
from textagent_gym.wrappers.penalties import InvalidActionPenalty
from textagent_gym.wrappers.text_wrapper import TextWrapper, restore, snapshot

__all__ = [
    "ActionParser",
    "AdmissibleActionHints",
    "ChatMessages",
    "HistoryText",
    "InvalidActionPenalty",
    "ObservationLimit",
    "TextWrapper",
    "restore",
    "snapshot",
    "without_hints",
]
