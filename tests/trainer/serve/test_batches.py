"""Images of several requests share a batch, and a bad one spoils none of the others."""

import threading
from concurrent.futures import Future

import numpy as np
import pytest

from trainer.serve.batches import Batches, CannotPredict, Probabilities
from trainer.serve.image_files import MAX_PIXELS, ImageFile

SECONDS = 60


def image(text: bytes, num_pixels: int = 100) -> ImageFile:
    return ImageFile(data=text, num_pixels=num_pixels)


class Network:
    """Answers with the length of each file; waits for `may_run` at its first call."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.runs, self.may_run = threading.Event(), threading.Event()

    def __call__(self, files: list[bytes]) -> Probabilities:
        self.batches.append(files)
        self.runs.set()
        assert self.may_run.wait(SECONDS)
        if b"bad" in files:
            raise ValueError("{{function_node f}} not an image\nand a stack of nodes")
        if b"defect" in files:
            raise MemoryError("no memory")
        return np.asarray([[len(each)] for each in files if each != b"lost"], np.float32)


def answers(futures: "list[Future[Probabilities]]") -> list[float]:
    return [float(each.result(SECONDS)[0]) for each in futures]


def test_what_waits_for_a_batch_forms_the_next_one() -> None:
    network = Network()
    batches = Batches(network, max_images=4)
    first = batches.submit([image(b"a")])
    assert network.runs.wait(SECONDS)
    others = [batches.submit([image(b"x" * k), image(b"y" * k)]) for k in (1, 2, 3)]
    network.may_run.set()
    assert answers(first) == [1]
    assert [answers(each) for each in others] == [[1, 1], [2, 2], [3, 3]]
    assert [len(each) for each in network.batches] == [1, 4, 2]


def test_large_images_do_not_share_a_batch() -> None:
    network = Network()
    batches = Batches(network)
    futures = batches.submit([image(b"a")])
    assert network.runs.wait(SECONDS)
    sizes = (MAX_PIXELS, 1, 1, MAX_PIXELS - 1, 1)
    futures += batches.submit([image(b"x" * (k + 1), size) for k, size in enumerate(sizes)])
    network.may_run.set()
    assert answers(futures) == [1, 1, 2, 3, 4, 5]
    assert [len(each) for each in network.batches] == [1, 1, 2, 2]


def test_only_a_bad_image_and_a_defect_have_no_answer() -> None:
    network = Network()
    batches = Batches(network)
    first = batches.submit([image(b"a")])
    assert network.runs.wait(SECONDS)
    futures = batches.submit([image(text) for text in (b"one", b"bad", b"defect", b"three", b"lost")])
    network.may_run.set()
    assert answers([*first, futures[0], futures[3]]) == [1, 3, 5]
    with pytest.raises(CannotPredict, match=r"^not an image$"):
        futures[1].result(SECONDS)
    with pytest.raises(MemoryError):
        futures[2].result(SECONDS)
    with pytest.raises(TypeError, match="0 answers for 1 images"):
        futures[4].result(SECONDS)
    assert answers(batches.submit([image(b"again")])) == [5]
