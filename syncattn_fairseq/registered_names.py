"""The names of the task and the criterion in fairseq's registries."""

TASK = "translation_with_syntax"
CRITERION = "label_smoothed_cross_entropy_with_syntax"
