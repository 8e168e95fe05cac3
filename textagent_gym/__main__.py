"""`python -m textagent_gym`, which is `textagent-gym`."""

from textagent_gym.cli import main

main()
