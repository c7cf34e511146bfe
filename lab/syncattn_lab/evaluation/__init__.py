"""Measures of translations, dependency heads, trees and word alignments."""
