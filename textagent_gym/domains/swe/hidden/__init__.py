"""Hidden tests: what they ask, what the code that is tested answers, what the right answers are, and who could guess them."""
