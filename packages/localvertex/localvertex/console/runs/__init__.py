"""The runs of the work directory: their list and outputs, and the record, graph, logs and actions of one."""
