"""The foundation: errors, files, processes, and fixes for fairseq on today's Python and PyTorch."""
