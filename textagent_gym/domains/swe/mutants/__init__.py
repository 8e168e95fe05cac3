"""The suite's own tasks: mistakes put into real packages, and the tests that notice them hidden."""
