"""The memory of a server that answers a day's polling."""

from pathlib import Path

import psutil
import pytest
import requests
from localvertex_tests.support.run_records import write_job

from vertex_testing.server import PARENT, Server

NUM_REQUESTS, NUM_BEFORE = 5000, 1000
MAX_GROWTH_MB = 4
PATHS = (
    "/local/runs?page_size=50",
    '/local/runs?filter=state="FAILED"',
    "/local/runs/run-00003",
    f"/v1/{PARENT}/customJobs?pageSize=50",
    "/console/main.js",
)


@pytest.mark.soak
@pytest.mark.slow
def test_the_memory_of_the_server_is_flat_over_5000_requests(tmp_path: Path) -> None:
    for number in range(20):
        write_job(tmp_path / "runs", number, state="FAILED" if number % 4 else "SUCCEEDED")
    with Server(tmp_path / "runs") as server, requests.Session() as session:
        session.headers.update(server.headers)
        process, megabytes = psutil.Process(server.process.pid), list[float]()
        for number in range(NUM_REQUESTS):
            assert session.get(server.url + PATHS[number % len(PATHS)], timeout=60).status_code == 200
            if number % 500 == 499:
                megabytes.append(process.memory_info().rss / 2**20)
        later = megabytes[NUM_BEFORE // 500 :]
        print(f"memory of the server in MiB after each 500 requests: {[round(each, 1) for each in megabytes]}")
        assert max(later) - later[0] < MAX_GROWTH_MB, megabytes
        assert process.num_fds() < 100
