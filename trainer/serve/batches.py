"""Micro-batches: a few threads decode images, and one of them runs the model on as many as wait and fit.

Whichever thread has decoded an image runs the model, unless another one is doing so or more images are there to be
decoded. So a request that comes alone changes threads once, and of a burst the model gets few large batches, which take
less time per image. No image waits for requests that have not come.
"""

import itertools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.images import Pixels

Probabilities = npt.NDArray[np.float32]
Predict = Callable[[Pixels], Probabilities]
"""Maps images uint8 [B, S, S, 3] to probabilities float32 [B, K]."""
Decode = Callable[[], Pixels]
"""Returns an image uint8 [S, S, 3]."""
MAX_IMAGES = 64
_MANY_IMAGES = 16
"""The model does not wait until more images are decoded: a larger batch takes hardly less time per image."""
_NUM_THREADS = min(4, (os.cpu_count() or 1) + 1)
"""Few, because each may decode an image that takes a gigabyte. One more than cores, because one runs the model."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    images: list[Any]
    """How to decode each image; then its pixels, or an error; then its probabilities."""
    num_done: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Images that are decoded, and further on those that are answered."""
    answer: "Future[list[Probabilities]]" = field(default_factory=Future)

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless another image has failed or the request was given up."""
        if not self.answer.done() and self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class Batches:
    """Predictions for images of any number of requests."""

    def __init__(self, predict: Predict, *, max_images: int = MAX_IMAGES) -> None:
        self._predict = predict
        self._max_images = max_images
        self._many_images = min(_MANY_IMAGES, max_images)
        self._encoded: queue.SimpleQueue[tuple[_Request, int]] = queue.SimpleQueue()
        self._waiting: deque[tuple[_Request, int]] = deque()
        self._is_running, self._lock = False, threading.Lock()
        for _ in range(_NUM_THREADS):
            threading.Thread(target=self._work, name="predictions", daemon=True).start()

    def submit(self, images: Sequence[Decode]) -> "Future[list[Probabilities]]":
        """Return the probabilities float32 [K] of each image.

        The error of the first image that cannot be decoded is that of the request, and an error of the model that of
        all requests with an image in its batch.
        """
        request = _Request(images=list(images))
        for index in range(len(request.images)):
            self._encoded.put((request, index))
        return request.answer

    def _work(self) -> None:
        while True:
            request, index = self._encoded.get()
            try:
                request.images[index] = request.images[index]()
            except Exception as error:
                request.images[index] = error
            if next(request.num_done) == len(request.images):
                self._enqueue(request)
            while batch := self._next_batch():
                try:
                    self._answer([(each, number) for each, number in batch if not each.answer.done()])
                finally:
                    self._is_running = False

    def _enqueue(self, request: _Request) -> None:
        if errors := [each for each in request.images if isinstance(each, Exception)]:
            request.fail(errors[0])
            return
        with self._lock:
            # All at once, so that the request of a single client is one batch.
            self._waiting.extend((request, index) for index in range(len(request.images)))

    def _next_batch(self) -> list[tuple[_Request, int]]:
        with self._lock:
            if self._is_running or not (self._encoded.empty() or len(self._waiting) >= self._many_images):
                return []
            batch = [self._waiting.popleft() for _ in range(min(self._max_images, len(self._waiting)))]
            self._is_running = bool(batch)
            return batch

    def _answer(self, batch: list[tuple[_Request, int]]) -> None:
        if not batch:
            return
        try:
            found = self._predict(np.stack([request.images[index] for request, index in batch]))
            if len(found) != len(batch):
                raise TypeError(f"the model has {len(found)} answers for {len(batch)} images")
        except Exception as error:
            for request, _ in batch:
                request.fail(error)
            return
        for (request, index), probabilities in zip(batch, found, strict=True):
            request.images[index] = probabilities
            is_last = next(request.num_done) == 2 * len(request.images)
            if is_last and request.answer.set_running_or_notify_cancel():
                request.answer.set_result(request.images)
