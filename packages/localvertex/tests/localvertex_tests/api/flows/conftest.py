"""Programs written for Vertex AI, with endpoint, credentials and bucket replaced, and nothing reached but loopback."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vertex_testing.server import Server

_DEAD_PROXY = "http://127.0.0.1:1"
"""Whatever would leave this machine is refused at once: no program listens there."""


@pytest.fixture(autouse=True, scope="module")
def offline() -> Iterator[None]:
    """Forbid the SDK, pip and the server everything that is not on loopback, and the user's credentials."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("https_proxy", "HTTPS_PROXY", "http_proxy"):
            patch.setenv(name, _DEAD_PROXY)
        patch.setenv("no_proxy", "127.0.0.1,localhost")
        patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/dev/null/credentials.json")
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        patch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
        yield


@pytest.fixture(scope="module")
def endpoint(offline: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server, whose objects google-cloud-storage finds."""
    with Server(tmp_path_factory.mktemp("flows") / "runs") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield server


@pytest.fixture
def cloud(sdk: Callable[[Server], Any], endpoint: Server) -> Any:
    """The SDK with a staging bucket."""
    aiplatform = sdk(endpoint)
    (endpoint.work_dir / "buckets" / "staging").mkdir(parents=True, exist_ok=True)
    aiplatform.init(staging_bucket="gs://staging")
    return aiplatform
