"""Where jobs come from: users who keep asking, jobs that somebody wrote down, traces of real clusters."""
