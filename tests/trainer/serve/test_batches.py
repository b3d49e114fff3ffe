"""Images of several requests share a batch."""

import threading
from concurrent.futures import Future

import numpy as np
import pytest

from trainer.data.images import Pixels
from trainer.serve.batches import Batches, Probabilities

SECONDS = 60
DEFECT, LOST = 254, 255


def image(value: int) -> Pixels:
    return np.full((2, 2, 3), value, np.uint8)


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


def answers(futures: "list[Future[Probabilities]]") -> list[float]:
    return [float(each.result(SECONDS)[0]) for each in futures]


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
    for future in batches.submit([image(value)]):
        with pytest.raises(error):
            future.result(SECONDS)
    assert answers(batches.submit([image(1), image(2)])) == [1, 2]


def test_a_request_that_was_given_up_is_not_computed() -> None:
    network = Network()
    batches = Batches(network)
    first = batches.submit([image(1)])
    assert network.runs.wait(SECONDS)
    for future in batches.submit([image(2)]):
        assert future.cancel()
    last = batches.submit([image(3)])
    network.may_run.set()
    assert answers([*first, *last]) == [1, 3]
    assert network.batches == [[1], [3]]
