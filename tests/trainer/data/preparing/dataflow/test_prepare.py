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
                    names = [name for name in server.buckets.names("birds") if name.endswith(".work")]
                    for folder in sorted({f"gs://birds/{name.rpartition('/')[0]}" for name in names}):
                        for item in exchange.missing(folder):
                            exchange.work(folder, item)
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
    made = {}
    for engine in ("local", "dataflow"):
        root = f"gs://birds/{engine}"
        made[engine] = prepare(
            **given,
            output_directory=f"{root}/dataset",
            report_path=str(tmp_path / f"{engine}.html"),
            pipeline_root=root,
            prepare_engine=engine,
            dataflow=Settings(**GIVEN | {"folder": root}) if engine == "dataflow" else None,
        )
    names = server.buckets.names("birds")
    files = {
        engine: {
            name: server.buckets.get("birds", name).data for name in names if name.startswith(f"{engine}/dataset/")
        }
        for engine in made
    }
    assert {name.partition("/")[2]: data for name, data in files["dataflow"].items()} == {
        name.partition("/")[2]: data for name, data in files["local"].items()
    }
    written = "num_bytes_written"
    assert {k: v for k, v in made["dataflow"].items() if k != written} == {
        k: v for k, v in made["local"].items() if k != written
    }
    # One job reads the images, and the next one writes the shards; never two at a time.
    assert len({job["name"] for job in service.jobs}) == 1
    left = {name.split("/")[-1] for name in names if name.startswith("dataflow/prepared/")}
    assert left == {"latest.json"}
