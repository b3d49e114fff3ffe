"""A batch prediction: JSON Lines in, predictions and errors out, through a serving container of its own."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import IO, Any

from localvertex._base.json_object import JsonObject
from localvertex.containers.serving import instances
from localvertex.containers.serving.instances import BadLine, Line
from localvertex.containers.serving.process import Answer, NotServing, ServingProcess

BATCH_SIZE = 64
"""The service's default number of instances per request."""

_MAX_REQUEST_BYTES = 8 << 20
"""A request with more than one instance is not larger."""

_REQUEST_SECONDS = 600.0

_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_NUM_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2

RESULTS, ERRORS = "prediction.results", "prediction.errors_stats"

_INVALID, _INTERNAL = 3, 13
"""Numbers of google.rpc.Code."""


@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """Request of a batch prediction for each line."""

    key_field: str = ""
    """Moved from each line to its output; empty: each line is an instance as it is."""
    parameters: Any = None
    batch_size: int = BATCH_SIZE


@dataclass(kw_only=True)
class Counts:
    """How many lines have a prediction, and how many an error."""

    num_predicted: int = 0
    num_failed: int = 0
    first_error: str = ""


def predict(
    job: BatchJob,
    model: ServingProcess,
    sources: list[Path],
    folder: Path,
    check_stopped: Callable[[], None] = lambda: None,
) -> Counts:
    """Write one file of predictions, and one of errors, for each source.

    Args:
        job: The batch prediction.
        model: A healthy container.
        sources: The files with JSON Lines.
        folder: Where the files are written; they appear when they are complete.
        check_stopped: Raises when the job is to end.

    Raises:
        NotServing: The container has ended, or does not answer.
        OSError: A file cannot be read or written.
    """
    counts = Counts()
    for number, source in enumerate(sources):
        ending = f"-{number:05d}-of-{len(sources):05d}"
        staged = {name: folder / f".{name}{ending}" for name in (RESULTS, ERRORS)}
        with source.open("rb") as lines, staged[RESULTS].open("w") as results, staged[ERRORS].open("w") as errors:
            output = _Output(results=results, errors=errors, counts=counts)
            for batch in _batches(_read(lines, job.key_field, output), job.batch_size):
                check_stopped()
                _predict_batch(batch, job, model, output)
        for name, path in staged.items():
            os.replace(path, folder / f"{name}{ending}")
    return counts


@dataclass(frozen=True, kw_only=True)
class _Output:
    """The files of one source."""

    results: IO[str]
    errors: IO[str]
    counts: Counts

    def add(self, line: Line, prediction: Any) -> None:
        self.results.write(json.dumps({**line.output, "prediction": prediction}) + "\n")
        self.counts.num_predicted += 1

    def fail(self, output: JsonObject, code: int, message: str) -> None:
        self.errors.write(json.dumps({**output, "error": {"code": code, "message": message}}) + "\n")
        self.counts.num_failed += 1
        self.counts.first_error = self.counts.first_error or message


def _read(lines: IO[bytes], key_field: str, output: _Output) -> Iterator[Line]:
    """Yield the lines that are instances; the others are errors."""
    for text in lines:
        if not text.strip():
            continue
        try:
            yield instances.read(text, key_field)
        except BadLine as error:
            output.fail(error.output, _INVALID, str(error))


def _batches(lines: Iterator[Line], size: int) -> Iterator[list[Line]]:
    """Yield up to `size` lines at a time; fewer if they are large."""
    while batch := [*islice(lines, 1)]:
        num_bytes = len(json.dumps(batch[0].instance))
        while len(batch) < size and num_bytes < _MAX_REQUEST_BYTES // 2:
            more = [*islice(lines, 1)]
            if not more:
                break
            batch += more
            num_bytes += len(json.dumps(more[0].instance))
        yield batch


def _predict_batch(batch: list[Line], job: BatchJob, model: ServingProcess, output: _Output) -> None:
    """Predict a batch; when the container refuses it, each of its instances alone."""
    answer = _answer([line.instance for line in batch], job, model)
    predictions = _predictions(answer, len(batch))
    if predictions is not None:
        for line, prediction in zip(batch, predictions, strict=True):
            output.add(line, prediction)
    elif len(batch) > 1:
        for line in batch:
            _predict_batch([line], job, model, output)
    else:
        code = _INVALID if HTTPStatus.BAD_REQUEST <= answer.code < HTTPStatus.INTERNAL_SERVER_ERROR else _INTERNAL
        output.fail(batch[0].output, code, _reason(answer))


def _answer(instances: list[Any], job: BatchJob, model: ServingProcess) -> Answer:
    """Send one request; again while the container is busy."""
    body = json.dumps(
        {"instances": instances} | ({} if job.parameters is None else {"parameters": job.parameters})
    ).encode()
    for attempt in range(_NUM_ATTEMPTS):
        try:
            answer = model.predict(body, seconds=_REQUEST_SECONDS)
        except TimeoutError:
            raise NotServing(f"the serving container did not answer within {_REQUEST_SECONDS:g} s") from None
        if answer.code not in _BUSY:
            break
        time.sleep(_PAUSE_SECONDS * 2**attempt)
    return answer


def _predictions(answer: Answer, number: int) -> list[Any] | None:
    """Return the predictions in an answer, None if it does not have one for each instance."""
    if answer.code != HTTPStatus.OK:
        return None
    try:
        content = json.loads(answer.content)
    except (ValueError, RecursionError):
        return None
    found = content.get("predictions") if isinstance(content, dict) else None
    return found if isinstance(found, list) and len(found) == number else None


def _reason(answer: Answer) -> str:
    text = answer.content[:500].decode(errors="replace")
    if answer.code == HTTPStatus.OK:
        return f"the answer of the serving container has no list 'predictions' with one for each instance: {text}"
    return f"the serving container answered with HTTP code {answer.code}: {text}"
