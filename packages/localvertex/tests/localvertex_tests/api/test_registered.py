"""A request does not wait for the registry for ever."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.models import registered
from localvertex.api.models.registered import Registered
from localvertex.api.rest.errors import ApiError, Status
from localvertex.store import registry
from localvertex.store.registry_lock import locked


def test_a_request_gives_up_when_another_process_keeps_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.add(tmp_path, {"display_name": "m"})
    monkeypatch.setattr(registered, "_WAIT_SECONDS", 0.0)
    versions = Registered(tmp_path).versions("m")
    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path):
            waiting = pool.submit(versions.merge, "1", ["champion"])
            with pytest.raises(ApiError, match="another process has been changing the registry") as refused:
                waiting.result()
        assert refused.value.status is Status.ABORTED
        pool.submit(versions.merge, "1", ["champion"]).result()
    assert versions.aliases == {"champion": "1", "default": "1"}


def test_a_change_of_an_endpoint_gives_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered, "_WAIT_SECONDS", 0.0)

    def change() -> None:
        with EndpointRecords(tmp_path).locked():
            pass

    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path), pytest.raises(ApiError, match="another process has been changing the registry"):
            pool.submit(change).result()
        pool.submit(change).result()
