"""Trees over sentences: brackets, binary trees, and their linearisation."""
