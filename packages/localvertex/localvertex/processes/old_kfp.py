"""Let the kfp 2.0 that a step has installed into its own environment use local paths.

Run by the environment's Python after the installation. That version knows only URIs of buckets, for which `path` is a
mounted folder, and gives None for a local one. Later versions return the local path, as does what is added here.

Standard library only, no import of this package: the step's Python may not have it.
"""

import sysconfig
from pathlib import Path

_FILE = "kfp/components/types/artifact_types.py"

_ADDED = """

# Added by localvertex, in this environment only: a local URI is its own path, as in later versions of kfp.
_path_in_bucket = Artifact._get_path
Artifact._get_path = lambda self: _path_in_bucket(self) or self.uri
"""


def main() -> None:
    """Add the local paths to a version that lacks them."""
    # The folder of this environment only; the user's packages are elsewhere.
    path = Path(sysconfig.get_path("purelib"), _FILE)
    if path.is_file():
        path.write_text(path.read_text() + _ADDED)


if __name__ == "__main__":
    main()
