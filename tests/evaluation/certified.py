"""Importing this registers the worlds of `worlds`, as the command line does for an id of the form module:ID."""

from tests.evaluation.worlds import register

register()
