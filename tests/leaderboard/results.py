"""Results to show: honest ones, one that lies, and one of an agent whose every word is an attack on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium

from tests.evaluation.results import SUITE, paths, read, summarize_again, write
from textagent_gym.evaluation import evaluate_suite

ATTACK = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    "'\"`${1}\\u003c\u2028\u2029\u202egnp.exe\x1b[2J]]>{{7*7}}<!--\ud800"
)
"""What breaks pages that treat texts as markup, as code, or as commands."""
NAME = f'<b>bold</b>"><svg onload="document.title=1">{ATTACK}'


class AttackingAgent:
    """Answers with attacks, and then plays on."""

    name = NAME
    details = {"model": ATTACK, "__proto__": {"polluted": ATTACK}, "<i>key</i>": [ATTACK]}  # noqa: RUF012

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        self._turn = 0

    def reset(self, seed: int) -> None:
        self._turn = 0

    def act(self, observation: str, info: dict[str, Any]) -> str:
        self._turn += 1
        self.remarks = dict.fromkeys(("reasoning", "text", "call", "ended"), ATTACK)
        return ATTACK if self._turn % 2 else "press red"


class AttackingAgents:
    """Makes them."""

    details = AttackingAgent.details

    def __call__(self, env: gymnasium.Env[str, str]) -> AttackingAgent:
        return AttackingAgent(env)


def play_all(folder: Path) -> Path:
    """Results of the suite of lights: three that are right, and one that claims a success which did not happen."""
    for name in ("oracle", "admissible-random"):
        evaluate_suite(SUITE, name, folder / SUITE.name / name)
    evaluate_suite(SUITE, AttackingAgents(), folder / SUITE.name / "attacking")
    evaluate_suite(SUITE, "admissible-random", folder / "liar")
    records, _ = paths(folder / "liar")
    values = read(records)
    lost = next(episode for episode in values[1:] if not episode["success"])
    lost["success"] = True
    write(records, values)
    summarize_again(folder / "liar")
    return folder
