"""Speed and memory, as ratios to fairseq's own models in the same run."""
