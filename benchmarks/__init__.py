"""Speed as a ratio to the reference implementation, on the same work in the same run: `python -m benchmarks`."""
