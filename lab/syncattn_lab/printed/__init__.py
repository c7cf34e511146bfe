"""Readers of printed output: training logs, translations, and the analyses of attention heads."""
