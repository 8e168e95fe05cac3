"""Decides whether an agent has repaired a repository."""
