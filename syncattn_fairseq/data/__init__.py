"""Parses as data: on disk, over subwords, in batches."""
