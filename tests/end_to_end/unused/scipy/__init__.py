"""As scikit-learn beside it."""
