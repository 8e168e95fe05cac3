"""Results that others can look at: a static site, submissions, and trajectories in formats of other tools."""

from textagent_gym.leaderboard.entries import Entry, LeftOut, check_entry, find_results
from textagent_gym.leaderboard.site import build

__all__ = ["Entry", "LeftOut", "build", "check_entry", "find_results"]
