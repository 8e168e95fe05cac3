"""Software engineering: a repository with a mistake in it, a shell, and hidden tests that decide."""
