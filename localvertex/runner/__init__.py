"""One run of a pipeline: scheduling tasks and resolving their inputs; how a step executes is in `executors`."""
