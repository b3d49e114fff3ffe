"""The step `prepare`: the values of all steps are checked, then the dataset is written."""
