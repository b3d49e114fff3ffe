"""Rehearses the trainers of PyTorch with their oldest and newest versions: `python -m benchmarks.soak.versions`.

Each part puts other versions of a library over those of `make venv-torch`, in a folder that comes first on the path,
and rehearses the library's example, with its kills and stops: it resumes exactly, or, one version before the range, is
refused by name before the first step. Needs `make venv-torch`, and a package index.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.soak.examples import TORCH
from benchmarks.soak.record import Fault, Soak, options

_ROOT = Path(__file__).parents[2]


class _Version(NamedTuple):
    example: str
    packages: tuple[str, ...] = ()
    """The library in this version, with what it needs."""
    alone: tuple[str, ...] = ()
    """Packages without what they need, which would be another PyTorch."""
    refusal: str = ""
    """What the message names, of a version that is too old."""


_OLD = ("accelerate==1.12.0", "peft==0.18.1")
_VERSIONS = (
    _Version("hugging_face_digits", ("transformers==5.2.0", "datasets==4.5.0"), _OLD, "no _init_training_state"),
    _Version("hugging_face_digits", ("transformers==5.3.0", "datasets==4.5.0"), _OLD),
    _Version("accelerate_digits", (), ("accelerate==1.1.0",)),
    _Version("lightning_digits", (), ("lightning==2.4.0", "pytorch-lightning==2.4.0"), "on_iteration_done"),
    _Version("lightning_digits", (), ("lightning==2.5.0.post0", "pytorch-lightning==2.5.0.post0")),
    *(
        _Version(example, packages)
        for packages in ((), ("torch==2.9.1",), ("torch==2.15.0",))
        for example in ("hugging_face_digits", "accelerate_digits", "lightning_digits", "torch_ddp")
    ),
)


def main() -> int:
    """Rehearse with each version; return 1 if one of them failed."""
    given = options("versions", __doc__, num_faults=len(_VERSIONS), smoke_values={"num_faults": 0})
    soak = Soak("versions", given)

    def run(number: int) -> Sequence[Fault]:
        version = _VERSIONS[number]
        name = " ".join((*version.packages, *version.alone)) or "the versions of make venv-torch"
        # Several examples have the same packages.
        folder = soak.folder / name.replace(" ", "_")
        is_installed = folder.exists()
        for extra, packages in (((), version.packages), (("--no-deps",), version.alone)):
            if packages and not is_installed:
                words = [TORCH, "-m", "pip", "install", "--quiet", "--target", folder, *extra, *packages]
                subprocess.run(words, check=True)
        example = _ROOT / "packages" / "exact_resume" / "examples" / f"{version.example}.py"
        words = [TORCH, "-m", "exact_resume", "rehearse", "--", TORCH, example, soak.folder / f"run-{number}"]
        env = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == (1 if version.refusal else 0), done.stdout
        assert (version.refusal or "resumes exactly") in done.stdout, done.stdout
        return [Fault(f"{version.example}: {name}", "refused by name" if version.refusal else "equal")]

    return soak.run(run)


if __name__ == "__main__":
    sys.exit(main())
