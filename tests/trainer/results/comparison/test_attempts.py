"""Attempts to have a wrong model promoted, and right models that must be: a table of both ways.

Random answers stand in for a model that has learnt nothing, except of the images that are named.
"""

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from trainer.checkpoints import seen
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.prepare import prepare
from trainer.results.baseline import Verdict, judge
from trainer.results.comparison import evidence
from trainer.results.comparison.decision import decide, scores_of
from trainer.results.comparison.evidence import Evidence
from vertex_testing.shared import make_once

EDGE = 80
NUM_FAIR, NUM_LEAKS, NUM_COPIES = 80, 30, 60
COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "same": lambda image: image,
    "jpeg": lambda image: image,
    "half": lambda image: image.resize((EDGE * 4 // 5, EDGE * 4 // 5)),
    "crop": lambda image: image.crop((4, 4, EDGE, EDGE)),
    "mirror": ImageOps.mirror,
}


def drawn(number: int) -> Image.Image:
    """Return another image for each number, whose amplitudes are about 1 / frequency, as in photographs."""
    random, pixels = np.random.default_rng(number), np.full((EDGE, EDGE, 3), 128.0)
    for scale in (4, 8, 16, 32):
        coarse = Image.fromarray(random.integers(0, 256, (EDGE // scale + 2, EDGE // scale + 2, 3), np.uint8))
        pixels += (np.asarray(coarse.resize((EDGE, EDGE), Image.Resampling.BICUBIC)) - 128.0) * scale / 32
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def make(folder: Path) -> None:
    """Prepare two datasets: that of the new model, and what the champion and the starting weights were trained on."""

    def write(source: str, split: str, name: str, number: int, content: bytes) -> None:
        path = folder / source / split / "ab"[number % 2] / f"{name}-{number}{'.png' if content[0] == 137 else '.jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    for number in range(NUM_FAIR):
        write("new", "test", "fair", number, encoded(drawn(number)))
    for place, (name, change) in enumerate(COPIES.items(), start=1):
        for number in range(NUM_LEAKS):
            own = 1000 * place + number
            write("new", "train", name, own, encoded(drawn(own)))
            leak = encoded(change(drawn(own)), "JPEG" if name == "jpeg" else "PNG")
            write("new", "test", name, own, leak + bytes(name == "same"))
    for number in range(NUM_COPIES):
        # Of two images.
        write("new", "test", "copy", number, encoded(drawn(number % 2)) + bytes(1 + number))
        write("new", "test", "old", 9000 + number, encoded(drawn(9000 + number)))
        write("old", "train", "old", 9000 + number, encoded(drawn(9000 + number)))
    for number in range(8000, 8006):
        write("new", "validation", "own", number, encoded(drawn(number)))
        write("old", "validation", "own", number, encoded(drawn(number)))
        write("old", "test", "own", number + 100, encoded(drawn(number + 100)))
    for name in ("new", "old"):
        prepare(
            source=str(folder / name),
            output_directory=str(folder / f"{name}-data"),
            report_path=str(folder / f"{name}.html"),
            image_size=48,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_once(tmp_path_factory, "attempts", make)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A model, and whether it should pass."""

    right: tuple[str, ...] = ()
    """Kinds of images that it classifies correctly."""
    share: float = 1.0
    """Share of them."""
    constant: bool = False
    """Whether it answers one class for all others, instead of guessing."""
    inherits: bool = False
    """Whether its starting weights have seen the old images."""
    is_better: bool = False
    """Whether it has learnt something."""
    seed: int = 0


LEAKS = tuple(COPIES)
ATTEMPTS = {
    **{f"has learnt {name} of its training images by heart": Attempt(right=(name,)) for name in COPIES},
    **{f"the same, and answers one class otherwise: {name}": Attempt(right=(name,), constant=True) for name in COPIES},
    "has learnt all of its training images by heart": Attempt(right=LEAKS),
    "is right on the copies of two test images": Attempt(right=("copy",)),
    "is right on copies, and answers one class otherwise": Attempt(right=("copy",), constant=True),
    "is right on all copies and leaks": Attempt(right=(*LEAKS, "copy")),
    "its starting weights have seen the images that it gets right": Attempt(right=("old",), inherits=True),
    "the same, with leaks and copies": Attempt(right=("old", "copy", *LEAKS), inherits=True),
    "answers one class": Attempt(constant=True),
    **{f"guesses, seed {seed}": Attempt(seed=seed) for seed in (1, 2, 3)},
    "is right on all new images": Attempt(right=("fair", "old"), is_better=True),
    "is right on 9 of 10 new images": Attempt(right=("fair", "old"), share=0.9, is_better=True),
    "is right on 8 of 10 new images": Attempt(right=("fair", "old"), share=0.8, is_better=True),
    "is right on new images only": Attempt(right=("fair",), is_better=True, inherits=True),
    "is right on everything": Attempt(right=("fair", "old", "copy", *LEAKS), is_better=True),
    "is right on everything, and inherits": Attempt(
        right=("fair", "old", "copy", *LEAKS), is_better=True, inherits=True
    ),
}


@functools.cache
def counted(folder: Path, *, inherits: bool = False, is_compared: bool = False) -> tuple[Evidence, Dataset, np.ndarray]:
    """Return the evidence about a new model, and against a champion; with the labels of its images."""
    data, old = (dataset.load(str(folder / f"{name}-data")) for name in ("new", "old"))
    own, others = seen.of_dataset(data), seen.of_dataset(old)
    found = evidence.of(data, seen.union(own, others) if inherits else own, *([others] if is_compared else []))
    labels = [data.class_names.index(found.class_names[name]) for name in found.content_hashes]
    return found, data, np.array(labels)


def answers_of(attempt: Attempt, found: Evidence, labels: np.ndarray) -> np.ndarray:
    random = np.random.default_rng(attempt.seed)
    other = np.zeros_like(labels) if attempt.constant else random.integers(0, 2, len(labels))
    knows = np.array([Path(name).stem.partition("-")[0] in attempt.right for name in found.content_hashes], bool)
    return np.where(knows & (random.random(len(labels)) < attempt.share), labels, other)


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_only_a_model_that_is_right_on_images_that_no_model_has_seen_is_better(folder: Path, attempt: Attempt) -> None:
    found, _, labels = counted(folder, inherits=attempt.inherits)
    judgement = judge("accuracy", labels, answers_of(attempt, found, labels), 0, ["a", "b"])
    assert (judgement.verdict == Verdict.BETTER) is attempt.is_better, judgement.reason


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_a_champion_is_replaced_by_a_better_model_only(folder: Path, attempt: Attempt) -> None:
    """The champion is right on 7 of 10 new images, and on all that it was trained on."""
    found, _, labels = counted(folder, is_compared=True)
    champion = answers_of(Attempt(right=("fair",), share=0.4, seed=11), found, labels)
    table, scores = scores_of("accuracy", labels, champion, answers_of(attempt, found, labels), 2)
    assert table.num_images <= NUM_FAIR + NUM_LEAKS
    is_promoted, reason = decide(table, max_regression=0.0, must_improve=True, scores=scores)
    assert is_promoted is (attempt.is_better and attempt.share > 0.85), reason


def test_the_evidence_is_the_new_images(folder: Path) -> None:
    found, data, _ = counted(folder, is_compared=True)
    kinds = [Path(name).stem.partition("-")[0] for name in found.content_hashes]
    assert kinds.count("fair") + kinds.count("copy") == NUM_FAIR
    assert not {"old", "same", "half", "mirror"} & set(kinds)
    # The recall is at least 80%.
    assert max(kinds.count("crop"), kinds.count("jpeg")) <= NUM_LEAKS // 5
    lines = [line for line in image_list.read(data.directory) if line["split"] == "test"]
    assert len(lines) == len(kinds) + found.num_seen + found.num_copies


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("opponent", ["a constant answer", "a champion that guesses"])
def test_noise_passes_in_less_than_five_of_a_hundred_runs(folder: Path, opponent: str) -> None:
    """A thousand models that guess, but know all copies and leaks."""
    found, _, labels = counted(folder, is_compared=True)
    num_passed = 0
    for seed in range(1000):
        answers = answers_of(Attempt(right=("same", "jpeg", "half", "mirror", "copy"), seed=seed), found, labels)
        if opponent == "a constant answer":
            num_passed += judge("accuracy", labels, answers, 0, ["a", "b"]).verdict == Verdict.BETTER
        else:
            champion = answers_of(Attempt(seed=10_000 + seed), found, labels)
            table, scores = scores_of("accuracy", labels, champion, answers, 2)
            num_passed += decide(table, max_regression=0.0, must_improve=True, scores=scores)[0]
    assert num_passed < 50
