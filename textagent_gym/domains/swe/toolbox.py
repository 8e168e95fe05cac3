"""What a sandbox offers beside a repository: pytest, and settings for it and for git."""

from __future__ import annotations

from textagent_gym.sandbox import Toolbox
from textagent_gym.sandbox.base import ROOT

TOOLBOX = Toolbox(
    packages=("pytest", "pluggy", "iniconfig", "packaging", "pygments"),
    variables={
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GIT_CONFIG_COUNT": "1",  # The tree may be another user's; git would refuse to look at it.
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": ROOT,
    },
    extra="swe",
)
"""For every sandbox in which commands or tests of this world run."""
