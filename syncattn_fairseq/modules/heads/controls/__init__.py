"""Attention heads that are experimental controls or of later systems, one file each."""
