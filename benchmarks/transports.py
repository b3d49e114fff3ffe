"""Calls of the SDK to `localvertex serve` by gRPC, the default of `client.init`, compared with REST.

Run it as `python -m benchmarks.transports`. Programs with either transport alternate, each a new process: its start-up
is the time from its first import to the answer of its first call, and its calls are lists of jobs.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Took, median, parse
from vertex_testing.server import Server

_PROGRAM = """
import json, sys, time
def now():
    return time.perf_counter(), time.process_time()
def between(earlier, later, number=1):
    return [(after - before) / number for before, after in zip(earlier, later)]
began = now()
from google.cloud import aiplatform
from localvertex import client
client.init(sys.argv[1], api_transport=sys.argv[2])
aiplatform.PipelineJob.list()
started = now()
for _ in range(int(sys.argv[3])):
    aiplatform.PipelineJob.list()
ended = now()
print(json.dumps({"start-up": between(began, started), "a call": between(started, ended, int(sys.argv[3]))}))
"""


def _measure(work_dir: Path, num_calls: int, transport: str) -> dict[str, Took]:
    """Return the cost of a program's start-up, and of each of its calls."""
    words = [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(work_dir), transport, str(num_calls)]
    env = {name: text for name, text in os.environ.items() if name != "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return {what: Took(*both) for what, both in json.loads(done.stdout).items()}


def main() -> None:
    """Print the medians of both transports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    options = parse(parser, calls=5, repeats=1)
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder) / "runs") as server:
        measure = functools.partial(_measure, server.work_dir, options.calls)
        # The first programs warm .pyc files, and the server imports Google's messages.
        found = [(measure("rest"), measure("grpc")) for _ in range(options.repeats + 1)][1:]
    print(f"median of {options.repeats} programs with {options.calls} calls each")
    for what in ("start-up", "a call"):
        rest, grpc = (median(each[what] for each in column) for column in zip(*found, strict=True))
        print(f"{what:8}  REST {rest}   gRPC {grpc}   {grpc.seconds / rest.seconds:.2f} times as long")


if __name__ == "__main__":
    main()
