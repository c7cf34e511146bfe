"""Parsing texts: parsers, and what other parsers have written."""
