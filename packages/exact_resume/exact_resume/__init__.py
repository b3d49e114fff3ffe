"""Training that resumes exactly: checkpoints, the lease on them, the event log, the machines around it, and files."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact_resume import keras_fit as keras_fit
    from exact_resume.checkpoints.early_stopping import EarlyStopping as EarlyStopping
    from exact_resume.errors import InputError as InputError, RunError as RunError
    from exact_resume.loop import Stopped as Stopped
    from exact_resume.program import Run as Run, run as run
    from exact_resume.sampler import Sampler as Sampler
    from exact_resume.state import Stream as Stream, saved as saved
    from exact_resume.trainers.hugging_face import hugging_face as hugging_face
    from exact_resume.trainers.lightning import LightningCallback as LightningCallback

_MODULES = {
    "EarlyStopping": "checkpoints.early_stopping",
    "InputError": "errors",
    "LightningCallback": "trainers.lightning",
    "Run": "program",
    "RunError": "errors",
    "Sampler": "sampler",
    "Stopped": "loop",
    "Stream": "state",
    "hugging_face": "trainers.hugging_face",
    "keras_fit": "keras_fit",
    "run": "program",
    "saved": "state",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    # A program that needs a part of this package need not wait for NumPy.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return module if name == _MODULES[name] else getattr(module, name)
