"""Work by several workers: the same files as by one process, even when all runs twice, grows, or is in a bucket."""

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from tests.trainer.data.preparing.dataflow.test_settings import GIVEN
from trainer import prepare
from trainer.data.preparing import parts
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import exchange, factory
from trainer.data.preparing.engines.beam import Beam, Run
from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.factory import Engine
from trainer.data.preparing.engines.local import Local
from trainer.data.sources.source import SourceImage
from vertex_testing.cloud_storage.server import CloudStorage

BEAM = {"dataflow": Settings(**GIVEN)}


def add_images(folder: Path, numbers: range) -> Path:
    """Write images of two classes."""
    for number in numbers:
        path = folder / f"class-{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (12, 9, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return folder


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some images, of which one is there twice and one is none; parts and shards are small."""
    monkeypatch.setattr(parts, "MAX_IMAGES", 7)
    monkeypatch.setattr("trainer.data.preparing.prefixes.TARGET_BYTES", 8000)
    # The files were written just now, and could change again at the same time of the clock.
    monkeypatch.setattr("trainer.data.preparing.previous.rows.SETTLING_NS", -(10**9))
    folder = add_images(tmp_path / "source", range(40))
    (folder / "class-0" / "again.png").write_bytes((folder / "class-0" / "0.png").read_bytes())
    (folder / "class-0" / "none.png").write_bytes(b"none")
    return folder


def run(source: Path | str, output: Path | str, page: Path, **options: Any) -> dict[str, Any]:
    return prepare.prepare(
        source=str(source), output_directory=str(output), report_path=str(page), image_size=16, **options
    )


def files(folder: Path | str, page: Path) -> dict[str, bytes]:
    """The content of each file of a dataset, and its report."""
    found = {name: storage.read_bytes(storage.join(folder, name)) for name in storage.names(folder)}
    return found | {"page": page.read_bytes()}


def work_by(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Let threads do the work of a Dataflow job, even in local folders; they need no Apache Beam."""

    def make(dataflow: Settings | None, *, file: Any, parts_folder: str, work_folder: str, is_remote: bool) -> Engine:
        if dataflow is None:
            return Local(file, parts_folder)
        return Distributed(Beam(work_folder, run), parts_folder, is_remote=is_remote)

    monkeypatch.setattr(factory, "make", make)


def everything_twice(folder: str) -> None:
    """Do each item of work in two threads at the same time, and one of them once more."""
    names = exchange.missing_results(folder)
    together = threading.Barrier(2)

    def do_all() -> None:
        for name in names:
            together.wait(timeout=300)
            exchange.work(folder, name)

    other = threading.Thread(target=do_all)
    other.start()
    do_all()
    other.join()
    exchange.work(folder, names[-1])


@pytest.mark.slow
def test_bundles_that_run_twice_in_a_bucket_change_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: CloudStorage
) -> None:
    """The second dataset has old and new images, and shards that workers write."""
    server.buckets.create("bucket")
    work_by(monkeypatch, everything_twice)
    # Workers on other machines could not read the source, which is a folder; the threads of this test can.
    monkeypatch.setattr(Distributed, "_check", lambda self, image: image)
    root, page = "gs://bucket/root", tmp_path / "page.html"
    for number in range(2):
        if number:
            # What a killed attempt leaves.
            (folder,) = storage.names(f"{root}/prepared")
            storage.write_bytes(f"{root}/prepared/{folder}/parts/work/0/1/000000.work", b"never read")
        here, output = tmp_path / f"local-{number}", storage.join(root, f"output-{number}")
        expected = run(source, here, page)
        local = files(here, page)
        assert len(local) > 9
        metadata = run(source, output, page, pipeline_root=root, **BEAM)
        assert files(output, page) == local
        assert metadata | expected == metadata
        assert (metadata["num_read"] < 40) == (number == 1)
        add_images(source, range(100, 102))
    assert sorted(storage.names(storage.join(root, "prepared", *storage.names(storage.join(root, "prepared"))))) == [
        "latest.json"
    ]


def test_a_failed_attempt_is_continued_with_its_parts(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = []

    def fail_at_shards(folder: str) -> None:
        stages.append(folder)
        if len(stages) == 2:
            raise OSError("the disk fails")
        everything_twice(folder)

    work_by(monkeypatch, fail_at_shards)
    page, root = tmp_path / "page.html", str(tmp_path / "root")
    with pytest.raises(OSError, match="the disk fails"):
        run(source, tmp_path / "output", page, pipeline_root=root, **BEAM)
    run(source, tmp_path / "local", page)
    local = files(tmp_path / "local", page)
    assert run(source, tmp_path / "output", page, pipeline_root=root, **BEAM)["num_read"] == 0
    assert files(tmp_path / "output", page) == local
    assert len(list((tmp_path / "root").rglob("*.*"))) == 1


def test_shards_that_grow_have_old_and_new_images(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.data.preparing.prefixes.TARGET_BYTES", 2**20)
    work_by(monkeypatch, everything_twice)
    page, root = tmp_path / "page.html", str(tmp_path / "root")
    run(source, tmp_path / "first", page, pipeline_root=root, **BEAM)
    add_images(source, range(100, 120))
    # Its splits stand.
    shutil.copytree(root, tmp_path / "same")
    run(source, tmp_path / "local", page, pipeline_root=str(tmp_path / "same"), reread=True)
    local = files(tmp_path / "local", page)
    assert run(source, tmp_path / "second", page, pipeline_root=root, **BEAM)["num_read"] == 20
    assert files(tmp_path / "second", page) == local


def test_images_that_other_machines_cannot_read_are_refused() -> None:
    def image(location: str) -> SourceImage:
        return SourceImage(name="a.png", label=0, split="", read=bytes, location=location)

    line = "image 'a.png' cannot be read by other machines: it is not a file{}; use prepare_engine=local"
    for folder, location, wrong in (("/parts", "", ""), ("gs://b/parts", "/source/a.png", " in a bucket")):
        engine = Distributed(Beam(folder, everything_twice), folder, is_remote=False)
        with pytest.raises(UserError) as caught:
            list(engine.read([image(location)], 16))
        assert str(caught.value) == line.format(wrong)


def test_a_part_of_another_size_is_not_used(tmp_path: Path) -> None:
    images = [
        SourceImage(name=str(path), label=0, split="", read=path.read_bytes, location=str(path))
        for path in sorted(add_images(tmp_path / "source", range(3)).rglob("*.png"))
    ]
    folder = str(tmp_path / "parts")
    part = parts.make(images, 16, folder)
    engine = Distributed(Beam(folder, everything_twice), folder, is_remote=False)
    assert len(engine.take_part(part.name)[0]) == 3
    Path(parts.path_of_bytes(folder, part.name)).write_bytes(b"short")
    with pytest.raises(parts.DamagedPart):
        engine.take_part(part.name)


def test_the_engine_is_local_by_default(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        engine = factory.make(None, file=file, parts_folder="", work_folder=str(tmp_path), is_remote=False)
        assert type(engine).__name__ == "Local"
