"""Many steps and many workers: restore, train, validate, save, finish; a single step is in `learner`."""
