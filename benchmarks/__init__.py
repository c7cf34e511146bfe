"""Benchmarks of speed and memory; what analyses the trainings of our study is in ``study/``."""
