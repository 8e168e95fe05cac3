"""Admissible actions as hints in the observation."""

from __future__ import annotations

from string import Formatter
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from textagent_gym.core import TextEnv
from textagent_gym.errors import InvalidOptionError
from textagent_gym.spaces import fit
from textagent_gym.wrappers.text_wrapper import TextWrapper, check_text

_LEAD = "\n\nPossible actions: "
"""Text before the list of actions, unless another template is given."""


class AdmissibleActionHints(TextWrapper, RecordConstructorArgs):
    """Ends every observation with the list of actions that would do something now.

    Args:
        env: any environment whose base is a `TextEnv` that can list its admissible actions.
        template: text that is appended, with `{actions}` where the list goes.
        separator: text between two actions.
        leave_out: beginnings of actions that are not listed, such as the world's `idle_actions`.

    Raises:
        InvalidOptionError: the environment's base is no `TextEnv` or cannot list its admissible actions, its
            observations are not text, or the template has no place for the actions.

    Example:
        >>> env = AdmissibleActionHints(gymnasium.make("lights/Lights-v0", switches=2))
        >>> print(env.reset(options={"task_index": 0})[0].splitlines()[-1])
        Possible actions: press black, press green, press red
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        template: str = _LEAD + "{actions}",
        separator: str = ", ",
        leave_out: tuple[str, ...] = (),
    ) -> None:
        RecordConstructorArgs.__init__(self, template=template, separator=separator, leave_out=leave_out)
        gymnasium.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, TextEnv):
            raise InvalidOptionError(f"AdmissibleActionHints needs a TextEnv, got {type(base).__name__}")
        if "admissible_actions" not in base.supports:
            raise InvalidOptionError(f"{type(base).__name__} has no list of admissible actions to show as hints")
        check_text(env, type(self).__name__)
        try:
            places = {place[1:] for place in Formatter().parse(template) if place[1] is not None}
        except ValueError:  # Half a pair of braces.
            places = set()
        # Neither attributes nor a width: a stranger's template is shown when a result is checked.
        if places != {("actions", "", None)}:
            raise InvalidOptionError(f"template must hold {{actions}} and no other braces, got {template!r}")
        self._base: TextEnv[Any] = base
        self.template = template
        self.separator = separator
        self.leave_out = tuple(leave_out)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_hints(observation, info), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; see the environment."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_hints(observation, info), float(reward), terminated, truncated, info

    def _with_hints(self, observation: str, info: dict[str, Any]) -> str:
        known = info["admissible_actions"] if "admissible_actions" in info else self._base.admissible_actions()
        actions = [action for action in known if not action.startswith(self.leave_out)]
        return fit(observation + self.template.format(actions=self.separator.join(actions))) if actions else observation


def without_hints(observation: str) -> str:
    """An observation without the list that `AdmissibleActionHints` ends it with by default.

    >>> without_hints("The light is off.\\n\\nPossible actions: press red, press green")
    'The light is off.'
    """
    text, lead, actions = observation.rpartition(_LEAD)
    return text if lead and "\n" not in actions else observation
