"""Slurm's records of jobs in every form that Slurm gives them: one neutral job, one way from it to facts."""
