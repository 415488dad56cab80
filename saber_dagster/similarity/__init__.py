"""How similar two problems are: by their topics and by the core ideas of their solutions."""
