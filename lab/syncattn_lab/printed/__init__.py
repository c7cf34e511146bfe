"""What fairseq and this package print: the log of a training, hypotheses, and what heads find."""
