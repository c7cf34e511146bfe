"""The training criterion and the loss terms; fairseq's registry gets the criterion on import."""
