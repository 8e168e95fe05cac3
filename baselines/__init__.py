"""Reference trainers for multi-turn text agents. They know Gymnasium, text spaces and the `info` keys of the suite."""

import os
from importlib.util import find_spec

from textagent_gym.errors import MissingDependencyError

# Here, because every executable begins with it: what is missing is then one sentence that says what to type.
for _module in ("torch", "transformers", "accelerate", "datasets", "trl"):
    if find_spec(_module) is None:
        raise MissingDependencyError(_module, "train")

# Before torch loads OpenMP: its waiting threads yield the core instead of spinning, which makes small models many times
# slower on a machine that does anything else (30 updates on two busy cores: 62 s, with this 4.5 s).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
