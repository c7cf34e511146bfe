"""What words can be grouped by; a module of its own, since commands list the kinds for --help."""

KINDS = ("label", "pos", "arc", "depth", "frequency", "length", "unseen")
"""Dependency label and part of speech of a source word, arc to its parent, depth in the tree,
frequency of a target word in training, length of the sentence, whether training had a source word.
"""
OF_SOURCE = {
    "label": "dependency label",
    "pos": "part of speech",
    "arc": "distance to the parent in words, and its side",
    "depth": "steps to the root",
    "unseen": "whether training had the word",
}
"""The kinds whose groups are of source words, and what they are by."""
