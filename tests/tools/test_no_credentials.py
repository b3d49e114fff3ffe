"""The trainer reads no bucket with the user's credentials, in whatever step it runs."""

from pathlib import Path

import pytest
from kfp import dsl
from localvertex_tests.credentials.conftest import Metadata

from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.runs import STEP, Execute


@dsl.component(**STEP)
def python_step(program: str, path: str) -> None:
    import sys

    sys.argv = ["program", path]
    exec(program, {"__name__": "program"})


OURS = """\
import sys
sys.path.insert(0, FOLDER)
from exact_resume.files import bucket
with open(sys.argv[1], "w") as file:
    try:
        file.write(str(bucket.exists("gs://bucket/object")))
    except OSError as error:
        file.write(error.strerror)
"""


@dsl.pipeline(name="ours")
def ours(program: str, path: str) -> None:
    python_step(program=program, path=path)
    python_step(program=program, path=f"{path}-executed").set_env_variable("A", "b")


@pytest.mark.parametrize("is_emulated", [False, True])
@pytest.mark.usefixtures("with_planted")
def test_the_trainer_reads_no_bucket_with_the_users_credentials(
    execute: Execute,
    tmp_path: Path,
    repository: Path,
    cloud_storage: CloudStorage,
    monkeypatch: pytest.MonkeyPatch,
    metadata: Metadata,
    is_emulated: bool,
) -> None:
    """By google-cloud-storage, which finds them in all the places that google.auth knows."""
    redirection = cloud_storage.environment if is_emulated else cloud_storage.proxy
    for name, value in redirection.items():
        if name not in ("GOOGLE_AUTH_TOKEN_FOR_TESTING", "NO_GCE_CHECK"):
            monkeypatch.setenv(name, value)
    cloud_storage.buckets.create("bucket")
    cloud_storage.faults.requests.clear()
    program = OURS.replace("FOLDER", repr(str(repository)))
    record = execute(ours, {"program": program, "path": str(tmp_path / "read")})
    assert record["state"] == "SUCCEEDED", record["error"]
    for name in ("read", "read-executed"):
        text = (tmp_path / name).read_text()
        # The emulator refuses requests with credentials.
        assert text == "False" if is_emulated else "object was not sent: localvertex does not answer it" in text, text
    assert metadata.paths == []
    assert bool(cloud_storage.faults.requests) == is_emulated
