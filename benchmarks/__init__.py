"""Benchmarks of speed and memory; analyses of the trainings of our study are in ``study/``."""
