"""Settings for every test."""

from __future__ import annotations

from hypothesis import settings

# The first example pays for lazy imports and thread pools: no deadline per example.
settings.register_profile("syncattn", deadline=None, max_examples=50)
settings.load_profile("syncattn")
