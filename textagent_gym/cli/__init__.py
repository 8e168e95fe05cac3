"""The command line `textagent-gym`."""
