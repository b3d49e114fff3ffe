"""Interrupts trainings that are saved by exact_resume, Keras' callbacks and Orbax, with the same faults for each."""
