"""Predictions of a version on trial: at its endpoint if it is deployed, else by a process that starts on demand."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.predictions import ask, predictions_of
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.containers.serving.process import ServingProcess
from localvertex.processes import logs
from localvertex.store import record

_IDLE_SECONDS = 300.0
"""A process that was started on demand ends after this time without a request."""

_ENDPOINT = "projects/local-project/locations/us-central1/endpoints/_try"
"""Owns the process and its log; no endpoint that is created can have this id."""

_MAX_WAITING = 4
"""Requests that may wait for models at once."""

Resource = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tried:
    """The version that has the process on demand."""

    model_id: str
    number: str
    deployed: Resource
    is_ready: threading.Event = field(default_factory=threading.Event)
    is_given_up: threading.Event = field(default_factory=threading.Event)
    """Cancelled, or replaced by another version."""


class ModelTrial:
    """The predictions of models that are tried; at most one process is started on demand.

    Args:
        records: The endpoints.
        deployments: The processes of models, closed by their owner.
        idle_seconds: After which time without a request the process ends.
    """

    def __init__(self, records: EndpointRecords, deployments: Deployments, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._records, self._deployments, self._idle_seconds = records, deployments, idle_seconds
        self._lock = threading.Lock()
        self._tried: _Tried | None = None
        self._num_waiting = 0
        self._timer: threading.Timer | None = None

    def predict(self, model_id: str, number: str, request: bytes, deployed: list[Resource]) -> Resource:
        """Send a request to a version.

        Args:
            model_id: Of the model.
            number: Of the version.
            request: The JSON with the instances.
            deployed: The endpoints that the version is deployed to; empty to start a process.

        Raises:
            ApiError: The version does not serve here, or refuses the request; or the start was cancelled.
        """
        with self._count_request():
            if deployed:
                return self._predict_deployed(max(deployed, key=lambda each: each["traffic"]), request)
            tried = self._choose(model_id, number)
            answer = ask(lambda: self._process_of(tried), request, tried.deployed["id"])
        return {"predictions": predictions_of(answer)["predictions"], "endpoint": ""}

    def _predict_deployed(self, place: Resource, request: bytes) -> Resource:
        """Send a request to the process of an endpoint.

        Raises:
            ApiError: See `predict`.
        """
        endpoint = self._records.find(place["name"])
        deployed = next((each for each in endpoint["deployedModels"] if each["id"] == place["deployed_model"]), None)
        if deployed is None:
            raise not_found(f"deployed model {place['deployed_model']} of {place['name']}")
        answer = ask(lambda: self._deployments.process_of(place["name"], deployed), request, deployed["id"])
        return {"predictions": predictions_of(answer)["predictions"], "endpoint": place["name"]}

    def state(self, model_id: str, number: str) -> Resource:
        """Return whether the process of a version runs, and the last line of its log."""
        tried = self._tried
        if tried is None or (tried.model_id, tried.number) != (model_id, number):
            return {"state": "stopped", "line": ""}
        line = ""
        with suppress(OSError):
            line = logs.last_line(self._records.folder(_ENDPOINT.rpartition("/")[2]) / f"{tried.deployed['id']}.log")
        return {"state": "ready" if tried.is_ready.is_set() else "starting", "line": line}

    def stop(self, model_id: str, number: str = "") -> None:
        """End the process of a version, or of any version of a model; its start is cancelled."""
        tried = self._tried
        if tried is not None and tried.model_id == model_id and number in ("", tried.number):
            self._give_up(tried)

    def _choose(self, model_id: str, number: str) -> _Tried:
        """Return the version that has the process from now on; end another version's process."""
        with self._lock:
            before = self._tried
            if before is not None and (before.model_id, before.number) == (model_id, number):
                return before
            deployed = {
                "id": f"{model_id}-{number}",
                "model": f"{_ENDPOINT.rpartition('/endpoints/')[0]}/models/{model_id}",
                "modelVersionId": number,
                "createTime": f"{record.now()} {uuid4().hex}",
            }
            self._tried = chosen = _Tried(model_id=model_id, number=number, deployed=deployed)
        if before is not None:
            self._give_up(before)
        return chosen

    def _process_of(self, tried: _Tried) -> ServingProcess:
        """Return the process of a version; start it unless it was given up.

        Raises:
            ApiError: It does not serve, or was given up.
        """
        try:
            self._check(tried)
            process = self._deployments.process_of(
                _ENDPOINT, tried.deployed, is_new=True, check_stopped=lambda: self._check(tried)
            )
            tried.is_ready.set()
        except ApiError:
            self._check(tried)
            self._forget(tried)
            raise
        self._check(tried)
        return process

    def _check(self, tried: _Tried) -> None:
        """Check that a version was not given up.

        Raises:
            ApiError: It was.
        """
        if tried.is_given_up.is_set():
            text = f"version {tried.number} of {tried.model_id} was not tried: cancelled, or another version is tried"
            raise ApiError(Status.ABORTED, text)

    def _give_up(self, tried: _Tried) -> None:
        """End a process; one that is being started ends when its start sees that it was given up."""
        tried.is_given_up.set()
        self._deployments.stop(_ENDPOINT, tried.deployed["id"])
        self._forget(tried)

    def _forget(self, tried: _Tried) -> None:
        with self._lock:
            if self._tried is tried:
                self._tried = None

    @contextmanager
    def _count_request(self) -> Iterator[None]:
        """Count a request; the last one starts the time after which the process is idle.

        Raises:
            ApiError: Too many requests wait.
        """
        with self._lock:
            if self._num_waiting >= _MAX_WAITING:
                text = f"{_MAX_WAITING} requests wait for models already; try again"
                raise ApiError(Status.RESOURCE_EXHAUSTED, text)
            self._num_waiting += 1
            if self._timer is not None:
                self._timer.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._num_waiting -= 1
                self._timer = threading.Timer(self._idle_seconds, self._end_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def _end_if_idle(self) -> None:
        with self._lock:
            tried = None if self._num_waiting else self._tried
        if tried is not None:
            self._give_up(tried)
