"""Training that resumes exactly: checkpoints, the lease on them, the event log, the machines around it, and files."""

from exact_resume import keras_fit
from exact_resume.errors import InputError, RunError
from exact_resume.loop import Run, Stopped, run
from exact_resume.sampler import Sampler
from exact_resume.state import saved

__all__ = ["InputError", "Run", "RunError", "Sampler", "Stopped", "keras_fit", "run", "saved"]
