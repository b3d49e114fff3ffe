"""Clients of a server's gRPC port that are not the SDK."""

import re
from pathlib import Path
from typing import Any

import grpc

from localvertex.api.rpc import methods
from vertex_testing.server import PARENT, Server, wait_until

ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"

LIST = "/google.cloud.aiplatform.v1.PipelineService/ListPipelineJobs"


def endpoint(server: Server) -> tuple[str, str]:
    """Return the address and the file of roots that the server printed."""
    line = wait_until(lambda: re.search(rf'^  gRPC: api_endpoint="(.*)" with {ROOTS}=(.*)$', server.text, re.MULTILINE))
    return line[1], line[2]


def num_jobs(server: Server, host: str = "localhost", **options: Any) -> int:
    """List the jobs over a connection of its own, and return their number."""
    options = {"metadata": [(name.lower(), value) for name, value in server.headers.items()]} | options
    address, roots = endpoint(server)
    credentials = grpc.ssl_channel_credentials(Path(roots).read_bytes())
    method = methods.find(LIST)
    assert method is not None
    with grpc.secure_channel(address.replace("localhost", host), credentials) as channel:
        request = method.request(parent=PARENT).SerializeToString()
        response = channel.unary_unary(LIST)(request, timeout=60, **options)
    return len(method.response.FromString(response).pipeline_jobs)
