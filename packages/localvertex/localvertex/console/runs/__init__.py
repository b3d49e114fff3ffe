"""The runs of the work folder: their list and outputs, and the record, graph, logs and actions of one."""
