"""Pictures of what models learnt: in a terminal, in a paper's figure, and in one report."""
