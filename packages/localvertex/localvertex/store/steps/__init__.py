"""The steps of runs on disk: their folders, logs and results, to show or to use again."""
