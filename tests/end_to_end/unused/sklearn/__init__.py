"""fairseq imports scikit-learn for metrics of other tasks: a third of the time of its start."""
