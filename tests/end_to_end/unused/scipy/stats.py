pearsonr = spearmanr = None
