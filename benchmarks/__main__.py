"""Run every benchmark and print its table."""

from __future__ import annotations

from benchmarks import rollout, textworld_env

if __name__ == "__main__":
    textworld_env.main()
    rollout.main()
