"""The kinds of groups of words; a separate module, since commands list the kinds in --help."""

KINDS = ("label", "pos", "arc", "depth", "frequency", "length", "unseen")
"""The kinds of groups that words can be divided into.

They are a source word's dependency label, its part of speech, the arc to its parent, and its depth
in the tree; a target word's frequency in training; the length of the sentence; and whether training
had a source word.
"""
OF_SOURCE = {
    "label": "dependency label",
    "pos": "part of speech",
    "arc": "distance to the parent in words, and its side",
    "depth": "steps to the root",
    "unseen": "whether training had the word",
}
"""The kinds whose groups are of source words, and what they are by."""
