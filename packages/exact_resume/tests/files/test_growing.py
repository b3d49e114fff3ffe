"""A file that grows: what could not be written is written later, once, and nothing is torn."""

import os
from pathlib import Path

import pytest

from exact_resume.files import storage
from exact_resume.files.growing import GrowingFile
from vertex_testing.small_disk import RunOnDisk, run_on_disk as run_on_disk

FULL = """
import os, sys
from exact_resume.files.growing import GrowingFile
path = sys.argv[1] + "/log"
file = GrowingFile(path)
file.add(b"first\\n")
file.flush()
with open(sys.argv[1] + "/filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
line = b"x" * 100_000 + b"\\n"
file.add(line)
try:
    file.flush()
except OSError as error:
    assert error.errno == 28
else:
    raise AssertionError("it fits")
assert open(path, "rb").read() == b"first\\n"
file.add(b"last\\n")
os.remove(sys.argv[1] + "/filler")
file.flush()
assert open(path, "rb").read() == b"first\\n" + line + b"last\\n"
"""


def test_a_full_disk_leaves_no_part_and_costs_nothing(run_on_disk: RunOnDisk) -> None:
    done = run_on_disk(FULL)
    assert done.returncode == 0, done.stderr


def test_a_local_file_is_continued_and_may_be_in_a_new_folder(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "log")
    for text in (b"one\n", b"two\n"):
        file = GrowingFile(path)
        file.add(text)
        file.flush()
        file.flush()
        assert not file.has_pending
    assert Path(path).read_bytes() == b"one\ntwo\n"


def test_an_object_is_written_again_with_what_a_bucket_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(path: str, data: bytes) -> None:
        if len(written) == 1:
            written.append(b"")
            raise OSError(os.strerror(5))
        written.append(data)

    monkeypatch.setattr(storage, "write_bytes", write)
    assert storage.is_object_store("gs://b/log")
    file = GrowingFile("gs://b/log")
    file.add(b"one\n")
    file.flush()
    file.add(b"two\n")
    with pytest.raises(OSError, match="error"):
        file.flush()
    file.add(b"three\n")
    assert file.object_size == 4
    file.flush()
    assert written == [b"one\n", b"", b"one\ntwo\nthree\n"]
