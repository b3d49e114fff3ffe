"""The import of TensorFlow and Keras, in half the processor time: about 1.7 seconds instead of 3.5.

Modules import both as usual. A command calls `load` after its own checks and before it imports such a module.
"""

import gc
import sys

_OPTIONAL = ("matplotlib", "pandas", "sklearn")
"""Keras imports these where they are installed, for galleries and wrappers that no command here uses."""


def load() -> None:
    """Import TensorFlow and Keras, unless Keras is imported already.

    The hidden modules can be imported later, by `trainer.results` or a custom network.
    """
    if "keras" in sys.modules:
        return
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    was_enabled = gc.isenabled()
    # Otherwise, the collector would visit these permanent objects many times.
    gc.disable()
    try:
        import keras
        import tensorflow

        del keras, tensorflow
    finally:
        for name in hidden:
            del sys.modules[name]
        gc.freeze()
        if was_enabled:
            gc.enable()
