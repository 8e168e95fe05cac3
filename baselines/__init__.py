"""Reference trainers for multi-turn text agents. They know Gymnasium, text spaces and the `info` keys of the suite."""
