"""Equations of controls, positions and later rivals, one file each."""
