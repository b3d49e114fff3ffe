"""One run of a pipeline: its scheduler, inputs and outcomes of its tasks; how a step executes is in `executors`."""
