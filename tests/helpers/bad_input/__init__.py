"""Bad input of every kind that docs/bad-input.md names: what makes it, and how it is given to saber."""
