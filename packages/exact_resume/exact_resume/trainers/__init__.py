"""Training loops of other libraries, resumed exactly."""
