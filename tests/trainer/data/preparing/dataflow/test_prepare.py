"""`prepare` with its work done by the job of a Dataflow server on loopback, whose workers are threads of the test."""

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.cloud_storage.server import CloudStorage
from tests.support.dataflow import Dataflow
from tests.trainer.data.preparing.dataflow.test_settings import GIVEN
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import exchange
from trainer.prepare import prepare

pytestmark = pytest.mark.slow

FOLDER = "root/prepared/0123456789abcdef0123456789abcdef"


@pytest.fixture
def service(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataflow]:
    """Dataflow with workers: what a new job finds in the folder is done, then the job is."""
    with Dataflow() as dataflow:
        for name, value in dataflow.environment.items():
            monkeypatch.setenv(name, value)
        is_over = threading.Event()

        def work() -> None:
            while not is_over.is_set():
                with dataflow.changed:
                    dataflow.changed.wait(0.05)
                if dataflow.active():
                    folders = {name.split("/")[3] for name in server.buckets.names("b") if f"{FOLDER}/work-" in name}
                    for folder in sorted(folders):
                        for item in exchange.missing(f"gs://b/{FOLDER}/{folder}"):
                            exchange.work(f"gs://b/{FOLDER}/{folder}", item)
                    dataflow.end("DONE")

        thread = threading.Thread(target=work)
        thread.start()
        yield dataflow
        is_over.set()
        thread.join()


def test_the_dataset_is_that_of_the_local_engine_and_nothing_is_left(
    server: CloudStorage, service: Dataflow, tmp_path: Path
) -> None:
    server.buckets.create("birds")
    for number in range(60):
        file = io.BytesIO()
        Image.new("RGB", (40, 40), (number * 4, number, 255 - number)).save(file, "PNG")
        server.buckets.put("birds", f"images/{'cats' if number % 2 else 'dogs'}/{number}.png", file.getvalue())
    given: dict[str, Any] = {"source": "gs://birds/images", "image_size": 16}
    local = prepare(**given, output_directory=str(tmp_path / "local"), report_path=str(tmp_path / "local.html"))
    remote = prepare(
        **given,
        output_directory=str(tmp_path / "remote"),
        report_path=str(tmp_path / "remote.html"),
        prepare_engine="dataflow",
        dataflow=Settings(**GIVEN | {"folder": f"gs://b/{FOLDER}"}),
    )
    assert remote == local
    files = {path.name: path.read_bytes() for path in (tmp_path / "local").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "remote").iterdir()} == files
    assert len({job["name"] for job in service.jobs}) == 1
    left = [name for name in server.buckets.names("b") if f"{FOLDER}/work-" in name or "/dataflow/" in name]
    assert left == []
