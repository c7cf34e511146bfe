"""Controls and later rivals of the heads of the five papers, one file each."""
