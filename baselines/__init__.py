"""Reference trainers for multi-turn text agents. They know Gymnasium, text spaces and the `info` keys of the suite."""

from importlib.util import find_spec

from textagent_gym.errors import MissingDependencyError

# Here, because every executable begins with it: what is missing is then one sentence that says what to type.
for _module in ("torch", "transformers", "accelerate", "datasets", "trl"):
    if find_spec(_module) is None:
        raise MissingDependencyError(_module, "train")
