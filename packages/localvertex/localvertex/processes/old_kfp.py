"""Let the kfp 1.8 or 2.0 that a step has installed into its own environment use local paths.

Run by the environment's Python after the installation. Those versions know only URIs of buckets, for which `path` is a
mounted folder, and give None for a local one. Later versions return the local path, as does what is added here.

Standard library only, no import of this package: the step's Python may not have it.
"""

import sysconfig
from pathlib import Path

_FILES = ("kfp/components/types/artifact_types.py", "kfp/v2/components/types/artifact_types.py")

_ADDED = """

# Added by localvertex, in this environment only: a local URI is its own path, as in later versions of kfp.
_path_in_bucket = Artifact._get_path
Artifact._get_path = lambda self: _path_in_bucket(self) or self.uri
"""


def main() -> None:
    """Add the local paths to the versions that lack them."""
    # The folder of this environment only; the user's packages are elsewhere.
    folder = Path(sysconfig.get_path("purelib"))
    for path in (folder / name for name in _FILES):
        # An installation may go on after it was stopped.
        if path.is_file() and not path.read_text().endswith(_ADDED):
            path.write_text(path.read_text() + _ADDED)


if __name__ == "__main__":
    main()
