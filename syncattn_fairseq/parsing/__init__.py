"""Parsing texts: parsers, and readers of other parsers' output."""
