"""The parts of the page of a run: the drawing of its graph, its steps, what they wrote, and the result."""
