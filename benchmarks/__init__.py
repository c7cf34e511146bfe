"""Benchmarks of speed and memory, and analyses of trained models and of data."""
