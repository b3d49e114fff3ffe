"""The import of TensorFlow and Keras, in a process of its own."""

import subprocess

import pytest

PROGRAM = """
import gc, importlib.util, json, sys
from trainer.learner import libraries

libraries.load()
names = ["keras", "tensorflow", "matplotlib", "pandas", "sklearn"]
loaded = [name for name in names if name in sys.modules]
found = [name for name in names if importlib.util.find_spec(name)]
libraries.load()
import trainer.loop.roles
print(json.dumps([loaded, found, gc.isenabled(), gc.get_freeze_count() > 100_000]))
"""


@pytest.mark.slow
def test_what_training_does_not_need_is_not_imported_but_can_be(python: str) -> None:
    done = subprocess.run([python, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == (
        '[["keras", "tensorflow"], ["keras", "tensorflow", "matplotlib", "pandas", "sklearn"], true, true]'
    )
