"""The report of a build: one page that says what was built, how, and what came out."""
