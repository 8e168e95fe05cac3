"""The command line `textagent-gym`."""

from textagent_gym.cli.main import main

__all__ = ["main"]
