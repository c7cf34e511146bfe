"""The foundation: errors, files, folders, locks, processes, options and Slurm."""
