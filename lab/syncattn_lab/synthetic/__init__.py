"""The built-in English-German corpus, drawn from a grammar so that its structure is known."""
