"""Pictures of trained models: in a terminal, in a figure for a paper, and in an HTML report."""
