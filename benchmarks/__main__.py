"""Run the two benchmarks that need nothing but the package and take minutes, and print their tables.

TextWorld beside the compiled games (`textworld_env`), and the rollouts of a tiny policy (`rollout`). All others are run
by name, as `python -m benchmarks.NAME`; what each needs stands at its top:

- a folder of upstream's or of data: `alfworld_env`, `alfworld_differential`, `babyai_env`, `textcraft_env`;
- Java: `scienceworld_env`; sandboxes or containers: `swe_env`, `swe_forger`; a browser: `leaderboard_site`;
- more time: `textworld_first_walks`, `textworld_making`, `textworld_native`, `textworld_scaling`, `certificates`,
  `reference_entries`;
- training: `trainers`, `learning`, `tiny_policies`, `memory`, `update_options`, `gpu`.
"""

from __future__ import annotations

from benchmarks import rollout, textworld_env

if __name__ == "__main__":
    textworld_env.main()
    rollout.main()
