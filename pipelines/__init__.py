"""The pipeline's graph, and the commands that submit and schedule it; its steps are in `components`."""
