"""Worlds that misbehave, each in its own way; workers import this file."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
from lights import LightsEnv


class ToldTwiceError(Exception):
    """Cannot be unpickled: its constructor wants two arguments and gets one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


class MisbehavingEnv(LightsEnv):
    """Lights, and commands that upset the process: `sleep 0.1`, `wait FILE`, `raise`, `die`, `hang`, `lock`, `echo`."""

    def __init__(
        self, die_at_reset: bool = False, hang_at_reset: bool = False, die_at_birth: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(6, max_turns=1000, **kwargs)
        self.hang_at_reset = hang_at_reset
        self.die_at_reset = die_at_reset
        if die_at_birth:
            os.kill(os.getpid(), signal.SIGKILL)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        if self.die_at_reset:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.hang_at_reset:
            hang()
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        verb, _, rest = action.partition(" ")
        observation, reward, terminated, truncated, info = super().step(action)
        match verb:
            case "sleep":
                time.sleep(float(rest))
            case "wait":
                while not Path(rest).exists():
                    time.sleep(0.01)
            case "raise":
                raise LookupError("the world has a hole")
            case "raise-oddly":
                raise ToldTwiceError("too ", "odd")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                hang()
            case "lock":
                info["lock"] = threading.Lock()
            case "echo":
                observation = rest
        return observation, reward, terminated, truncated, info


def hang() -> None:
    """Hang for a minute, which is longer than any test waits."""
    for _ in range(6000):
        time.sleep(0.01)


def misbehaving() -> gymnasium.Env[str, str]:
    return MisbehavingEnv()


def dying_at_reset() -> gymnasium.Env[str, str]:
    return MisbehavingEnv(die_at_reset=True)


def hanging_at_reset() -> gymnasium.Env[str, str]:
    return MisbehavingEnv(hang_at_reset=True)


def dying_at_birth() -> gymnasium.Env[str, str]:
    return MisbehavingEnv(die_at_birth=True)


def raising_at_birth() -> gymnasium.Env[str, str]:
    raise LookupError("no world here")


def alive(pid: int) -> bool:
    """Whether a process with this id still runs; zombies do not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone_within(seconds: float, pids: list[int]) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
