"""Run every benchmark that needs no data, and print its table: `alfworld_env` is told where the games are."""

from __future__ import annotations

from benchmarks import rollout, textworld_env

if __name__ == "__main__":
    textworld_env.main()
    rollout.main()
