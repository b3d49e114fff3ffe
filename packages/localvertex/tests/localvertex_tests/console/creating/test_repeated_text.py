"""Compiled files whose text repeats the beginning of what is searched for: each is read in a short time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vertex_testing.server import Server

COMPILED = Path(__file__).parents[2] / "constructs" / "compiled" / "containerized_component.json"

LENGTH = 1_000_000

UNITS = ("{{$", "google_cloud_pipeline_components.container.", "\n")
"""Placeholders without an end, Google's modules without a launcher, and lines without a command."""


@pytest.mark.slow
def test_a_hostile_file_does_not_occupy_the_server(start_server: Callable[..., Server]) -> None:
    server, content = start_server("--allow-host-commands"), json.loads(COMPILED.read_text())
    (executor,) = content["deploymentSpec"]["executors"].values()
    for unit in UNITS:
        executor["container"] |= {"command": ["sh", "-c", unit * (LENGTH // len(unit))], "args": ["x"]}
        body = {"name": "p.json", "content": json.dumps(content), "parameters": {}}
        # A search that begins again at each of them would take hours, and would occupy the server.
        answer = server.request("POST", "/local/check", json=body)
        assert answer.status_code == 200, answer.text
