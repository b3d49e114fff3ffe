"""Images of several requests share a batch."""

import functools
import random
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

from trainer.data.images import Pixels
from trainer.serve.batches import Batches, Decode, Probabilities

SECONDS = 60
DEFECT, LOST = 254, 255


def image(value: int) -> Decode:
    return functools.partial(np.full, (2, 2, 3), value, np.uint8)


def no_image(reason: str) -> Pixels:
    raise ValueError(reason)


class Network:
    """Answers with the first value of each image; waits for `may_run` at its first call."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.runs, self.may_run = threading.Event(), threading.Event()

    def __call__(self, images: Pixels) -> Probabilities:
        values = images[:, 0, 0, 0].tolist()
        self.batches.append(values)
        self.runs.set()
        assert self.may_run.wait(SECONDS)
        if DEFECT in values:
            raise MemoryError("no memory")
        return np.asarray([[each] for each in values if each != LOST], np.float32)


def answers(future: "Future[list[Probabilities]]") -> list[float]:
    return [float(each[0]) for each in future.result(SECONDS)]


def test_what_waits_for_a_batch_forms_the_next_one() -> None:
    network = Network()
    batches = Batches(network, max_images=4)
    first = batches.submit([image(9)])
    assert network.runs.wait(SECONDS)
    others = [batches.submit([image(k), image(k)]) for k in (1, 2, 3)]
    network.may_run.set()
    assert answers(first) == [9]
    assert [answers(each) for each in others] == [[1, 1], [2, 2], [3, 3]]
    assert network.batches == [[9], [1, 1, 2, 2], [3, 3]]


@pytest.mark.parametrize(("value", "error"), [(DEFECT, MemoryError), (LOST, TypeError)])
def test_an_error_of_the_model_is_that_of_its_batch_and_the_next_one_is_answered(
    value: int, error: type[Exception]
) -> None:
    network = Network()
    batches = Batches(network)
    network.may_run.set()
    with pytest.raises(error):
        batches.submit([image(value)]).result(SECONDS)
    assert answers(batches.submit([image(1), image(2)])) == [1, 2]


def test_a_request_that_was_given_up_is_not_computed() -> None:
    network = Network()
    batches = Batches(network)
    first = batches.submit([image(1)])
    assert network.runs.wait(SECONDS)
    assert batches.submit([image(2)]).cancel()
    last = batches.submit([image(3)])
    network.may_run.set()
    assert [answers(each) for each in (first, last)] == [[1], [3]]
    assert network.batches == [[1], [3]]


def test_the_first_wrong_image_is_named_whichever_is_decoded_first() -> None:
    network, last = Network(), threading.Event()
    network.may_run.set()
    batches = Batches(network)

    def slow() -> Pixels:
        assert last.wait(SECONDS)
        return no_image("first")

    def quick() -> Pixels:
        last.set()
        return no_image("second")

    with pytest.raises(ValueError, match="first"):
        batches.submit([image(1), slow, quick]).result(SECONDS)
    assert network.batches == []
    assert answers(batches.submit([image(3)])) == [3]


def test_images_of_a_burst_are_decoded_before_the_model_runs() -> None:
    network, may_decode = Network(), threading.Event()
    network.may_run.set()
    batches = Batches(network, max_images=4)

    def slow(value: int) -> Pixels:
        assert may_decode.wait(SECONDS)
        return image(value)()

    # The first ones keep all threads busy until all requests are there.
    requests = [batches.submit([functools.partial(slow, value)]) for value in range(8)]
    may_decode.set()
    assert [answers(each) for each in requests] == [[value] for value in range(8)]
    assert len(network.batches[0]) == 4


def test_every_request_is_answered_once_whatever_happens_to_the_others() -> None:
    numbers, is_running, overlaps = random.Random(5), threading.Lock(), list[int]()

    def predict(images: Pixels) -> Probabilities:
        if not is_running.acquire(blocking=False):
            overlaps.append(len(images))
        time.sleep(0.0005 * (len(images) % 3))
        is_running.release()
        if (images[:, 0, 0, 0] == DEFECT).any():
            raise MemoryError("no memory")
        return images[:, 0, 0, :1].astype(np.float32)

    def decode(value: int) -> Pixels:
        time.sleep(0.0001 * (value % 4))
        return no_image("wrong") if value == LOST else image(value)()

    batches = Batches(predict, max_images=8)
    asked = []
    for _ in range(2000):
        values = numbers.choices([*range(40), DEFECT, LOST], k=numbers.randint(1, 3))
        future = batches.submit([functools.partial(decode, value) for value in values])
        if numbers.random() > 0.05 or not future.cancel():
            asked.append((values, future))
    for values, future in asked:
        error = future.exception(SECONDS)
        assert isinstance(error, ValueError) == (LOST in values)
        if error is None:
            assert answers(future) == values
    assert answers(batches.submit([image(7)])) == [7]
    assert overlaps == []
