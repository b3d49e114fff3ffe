"""Micro-batches: one thread runs the model on as many waiting images at once as fit, without waiting for more."""

import queue
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainer.serve.image_files import MAX_PIXELS, ImageFile

Probabilities = npt.NDArray[np.float32]
Predict = Callable[[list[bytes]], Probabilities]
"""Maps encoded images to probabilities float32 [B, K]; raises ValueError for an image that it cannot decode."""
MAX_IMAGES = 64


class CannotPredict(Exception):
    """The model has no answer for an image, for a reason that is in the image."""


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    image: ImageFile
    answer: "Future[Probabilities]" = field(default_factory=Future)


class Batches:
    """Predictions for images of any number of requests."""

    def __init__(self, predict: Predict, *, max_images: int = MAX_IMAGES) -> None:
        self._predict = predict
        self._max_images = max_images
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="predictions", daemon=True).start()

    def submit(self, images: Sequence[ImageFile]) -> "list[Future[Probabilities]]":
        """Return the futures of the probabilities float32 [K] of each image.

        Their exceptions: CannotPredict for an image that cannot be decoded, anything else for a defect.
        """
        waiting = [_Waiting(image=image) for image in images]
        for each in waiting:
            self._waiting.put(each)
        return [each.answer for each in waiting]

    def _run(self) -> None:
        following: _Waiting | None = None
        while True:
            batch = [following or self._waiting.get()]
            following = self._fill(batch)
            self._answer([each for each in batch if each.answer.set_running_or_notify_cancel()])

    def _fill(self, batch: list[_Waiting]) -> _Waiting | None:
        """Add what waits; return the image that is left for the next batch, because this one is large enough."""
        num_pixels = batch[0].image.num_pixels
        while len(batch) < self._max_images:
            try:
                found = self._waiting.get_nowait()
            except queue.Empty:
                return None
            num_pixels += found.image.num_pixels
            if num_pixels > MAX_PIXELS:
                return found
            batch.append(found)
        return None

    def _answer(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        try:
            found = self._predict([each.image.data for each in batch])
            if len(found) != len(batch):
                raise TypeError(f"the model has {len(found)} answers for {len(batch)} images")
        except Exception as error:
            if len(batch) > 1:
                # One image spoils its whole batch: each is tried alone.
                for each in batch:
                    self._answer([each])
                return
            batch[0].answer.set_exception(CannotPredict(_reason(error)) if isinstance(error, ValueError) else error)
            return
        for each, probabilities in zip(batch, found, strict=True):
            each.answer.set_result(probabilities)


def _reason(error: Exception) -> str:
    # TensorFlow's names of nodes, and where they are from, precede its reason.
    lines = [re.sub(r"\{\{.*?\}\}", "", each).strip() for each in str(error).splitlines()]
    reasons = [
        each for each in lines if each and not re.match(r"Graph execution error|Detected at node|<stack|\[\[", each)
    ]
    return (reasons or lines or [""])[0][:200]
