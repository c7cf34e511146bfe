"""What words can be grouped by; a module of its own, since commands list the kinds for --help."""

KINDS = ("label", "pos", "arc", "depth", "frequency", "length", "unseen")
"""Dependency label and part of speech of a source word, arc to its parent, depth in the tree,
frequency of a target word in training, length of the sentence, whether training had a source word.
"""
