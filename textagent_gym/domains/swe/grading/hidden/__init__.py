"""Hidden tests: what they ask, what tested code answers, what is right, and what somebody could guess."""
