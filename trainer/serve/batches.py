"""Micro-batches: one thread runs the model on as many waiting images at once as fit, without waiting for more."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainer.data.images import Pixels

Probabilities = npt.NDArray[np.float32]
Predict = Callable[[Pixels], Probabilities]
"""Maps images uint8 [B, S, S, 3] to probabilities float32 [B, K]."""
MAX_IMAGES = 64


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    image: Pixels
    answer: "Future[Probabilities]" = field(default_factory=Future)


class Batches:
    """Predictions for images of any number of requests."""

    def __init__(self, predict: Predict, *, max_images: int = MAX_IMAGES) -> None:
        self._predict = predict
        self._max_images = max_images
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="predictions", daemon=True).start()

    def submit(self, images: Sequence[Pixels]) -> "list[Future[Probabilities]]":
        """Return the futures of the probabilities float32 [K] of each image uint8 [S, S, 3].

        An error of the model is the exception of all images of its batch.
        """
        waiting = [_Waiting(image=image) for image in images]
        for each in waiting:
            self._waiting.put(each)
        return [each.answer for each in waiting]

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while len(batch) < self._max_images and not self._waiting.empty():
                batch.append(self._waiting.get())
            self._answer([each for each in batch if each.answer.set_running_or_notify_cancel()])

    def _answer(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        try:
            found = self._predict(np.stack([each.image for each in batch]))
            if len(found) != len(batch):
                raise TypeError(f"the model has {len(found)} answers for {len(batch)} images")
        except Exception as error:
            for each in batch:
                each.answer.set_exception(error)
            return
        for each, probabilities in zip(batch, found, strict=True):
            each.answer.set_result(probabilities)
