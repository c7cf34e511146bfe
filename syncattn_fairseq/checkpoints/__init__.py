"""fairseq's checkpoints: read, check, write and average them, and build their models."""
