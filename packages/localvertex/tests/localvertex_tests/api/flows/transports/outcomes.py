"""Runs the flows over each transport, with a server for each."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from localvertex_tests.api.flows.transports import buckets, custom_jobs, experiments, models, pipelines  # noqa: F401
from localvertex_tests.api.flows.transports.flow import FLOWS

from vertex_testing.server import Server

__all__ = ["FLOWS", "outcomes"]

_TESTS = Path(__file__).parents[4]
_MODULE = f"{__package__}.program"

_OFFLINE = {
    "https_proxy": "http://127.0.0.1:1",
    "no_proxy": "127.0.0.1,localhost",
    "GOOGLE_APPLICATION_CREDENTIALS": "/dev/null/credentials.json",
}
"""Whatever would leave this machine is refused at once, and the user's credentials are not used."""


def outcomes(folder: Path, transport: str, *names: str) -> dict[str, dict[str, Any]]:
    """Return the outcome of each flow, or of some, over a transport."""
    with Server(folder / "runs", "--time-factor", "60") as server:
        env = {name: text for name, text in os.environ.items() if not name.startswith("GRPC_")} | _OFFLINE
        env |= {"PYTHONPATH": str(_TESTS), "STORAGE_EMULATOR_HOST": server.url}
        words = [sys.executable, "-W", "ignore", "-m", _MODULE, str(server.work_dir), transport, *names]
        done = subprocess.run(words, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found
