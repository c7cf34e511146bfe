"""Parses as data: on disk, on subwords, in batches."""
