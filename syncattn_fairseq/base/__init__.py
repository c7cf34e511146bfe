"""What every room stands on: errors, files, and what today's Python and PyTorch ask of fairseq."""
