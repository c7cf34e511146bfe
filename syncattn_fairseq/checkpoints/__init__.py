"""fairseq's checkpoints: read, check, write and average them, and build the models they describe."""
