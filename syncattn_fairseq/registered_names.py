"""The names under which fairseq knows the task and the criterion."""

TASK = "translation_with_syntax"
CRITERION = "label_smoothed_cross_entropy_with_syntax"
