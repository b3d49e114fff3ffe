"""Whether pip can install packages here, for tests of steps that do."""

import subprocess
import sys
from functools import cache


@cache
def index_is_reachable() -> bool:
    """Return whether pip finds kfp in its index."""
    words = [sys.executable, "-m", "pip", "index", "versions", "kfp", "--disable-pip-version-check"]
    return subprocess.run(words, capture_output=True, timeout=120).returncode == 0
