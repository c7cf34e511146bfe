"""Equations of experimental controls, position encodings and later systems, one file each."""
