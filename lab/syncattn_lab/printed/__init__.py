"""Readers of printed output: training logs, translations, and analyses by attention heads."""
