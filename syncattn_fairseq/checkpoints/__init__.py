"""Read, check, write and average fairseq checkpoints, and build the models in them."""
