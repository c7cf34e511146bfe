"""The built-in English-German corpus, drawn from a grammar, with known structure."""
