"""Measures of translations, dependency heads and word alignments."""
