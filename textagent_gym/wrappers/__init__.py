"""Gymnasium wrappers for text environments."""

from textagent_gym.wrappers.hints import IDLE_ACTIONS, AdmissibleActionHints

__all__ = ["IDLE_ACTIONS", "AdmissibleActionHints"]
