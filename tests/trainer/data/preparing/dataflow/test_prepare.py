"""`prepare` with its work done by the job of a Dataflow server on loopback, whose workers are threads of the test."""

import io
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.dataflow import Dataflow
from tests.trainer.data.preparing.dataflow.test_settings import GIVEN
from trainer.data.preparing.engines import exchange
from trainer.prepare import prepare
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow


ATTEMPT = """
import json, sys
from trainer.data.preparing.dataflow.settings import Settings
from trainer.prepare import prepare
given = json.loads(sys.argv[1])
print(json.dumps(prepare(dataflow=Settings(**given.pop("settings")), **given)))
"""


@pytest.fixture
def may_work() -> threading.Event:
    """Until it is set, the workers are not there yet."""
    return threading.Event()


@pytest.fixture
def service(server: CloudStorage, may_work: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dataflow]:
    """Dataflow with workers: what a new job finds in the folder is done, then the job is."""
    with Dataflow() as dataflow:
        for name, value in dataflow.environment.items():
            monkeypatch.setenv(name, value)
        is_over = threading.Event()

        def work() -> None:
            while not is_over.is_set():
                with dataflow.changed:
                    dataflow.changed.wait(0.05)
                if dataflow.active() and may_work.is_set():
                    names = [name for name in server.buckets.names("birds") if name.endswith(".work")]
                    for folder in sorted({f"gs://birds/{name.rpartition('/')[0]}" for name in names}):
                        for item in exchange.missing_results(folder):
                            exchange.work(folder, item)
                    dataflow.end("DONE")

        thread = threading.Thread(target=work)
        thread.start()
        yield dataflow
        is_over.set()
        thread.join()


def test_after_a_kill_the_job_goes_on_and_the_dataset_is_that_of_the_local_engine(
    server: CloudStorage, service: Dataflow, may_work: threading.Event, tmp_path: Path, beam_python: str
) -> None:
    server.buckets.create("birds")
    for number in range(60):
        file = io.BytesIO()
        Image.new("RGB", (40, 40), (number * 4, number, 255 - number)).save(file, "PNG")
        server.buckets.put("birds", f"images/{'cats' if number % 2 else 'dogs'}/{number}.png", file.getvalue())

    def given(engine: str) -> dict[str, Any]:
        return {
            "source": "gs://birds/images",
            "image_size": 16,
            "output_directory": f"gs://birds/{engine}/dataset",
            "report_path": str(tmp_path / f"{engine}.html"),
            "pipeline_root": f"gs://birds/{engine}",
        }

    settings = GIVEN | {"folder": "gs://birds/dataflow"}
    words = [beam_python, "-c", ATTEMPT, json.dumps(given("dataflow") | {"settings": settings})]
    with subprocess.Popen(words) as killed:
        service.wait_for(lambda: service.jobs)
        killed.kill()
    may_work.set()
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    made = {"dataflow": json.loads(done.stdout.splitlines()[-1]), "local": prepare(**given("local"))}
    assert made["dataflow"]["fingerprint"] == made["local"]["fingerprint"]
    # All images were read by the job of the killed attempt.
    assert (made["dataflow"]["num_read"], made["local"]["num_read"]) == (0, 60)
    # It, and a second one for the shards; never two at a time.
    assert len(service.jobs) == 2
    assert len({job["name"] for job in service.jobs}) == 1
    names = server.buckets.names("birds")
    files = {
        engine: {
            name.partition("/")[2]: server.buckets.get("birds", name).data
            for name in names
            if name.startswith(f"{engine}/dataset/")
        }
        for engine in made
    }
    assert files["dataflow"] == files["local"]
    assert files["local"]
    assert {name.split("/")[-1] for name in names if name.startswith("dataflow/prepared/")} == {"latest.json"}
