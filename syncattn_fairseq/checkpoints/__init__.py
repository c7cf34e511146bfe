"""fairseq's checkpoints: read, check, write and average them; build the models they describe."""
