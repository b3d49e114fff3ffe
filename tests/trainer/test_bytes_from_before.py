"""What is stored keeps its bytes: datasets and their fingerprints, checkpoints, and the run ids that name them.

The values were computed before the trainer's modules moved to other folders. With other ones, finished runs would be
trained again. Another Pillow or array_record may change the files of a dataset, but not its fingerprint.
"""

import hashlib
from pathlib import Path

import numpy as np

from trainer.checkpoints import identity, starting_weights
from trainer.checkpoints.seen import SeenImages
from trainer.checkpoints.starting_weights import StartingWeights
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset

FINGERPRINT = "13f79cc99c7b5d17c3bbff5d402eb0341f1694105c450338a16a1aa73a5a3dce"
DATASET = {
    "dataset.json": "0933db667e0e6417faf74a0d1ef267662e5be17497efe993dba427bc0b4173f8",
    "images-test.array_record-00000-of-00001": "05ff757e02ea996fb3291055eaef0b603145048b9ac444affdb4ea10c0ddb8bf",
    "images-train.array_record-00000-of-00001": "a9e3ad575c084b36c0dc891ca6f751a952044ac0a3f77b2b56bcfa60af092213",
    "images-validation.array_record-00000-of-00001": "f28c7fc292a830ca0b5f97979e1857cb4e9e5f04fa4ffeeb8e83a0b40160a8bc",
}
RUN_IDS = {
    ("", False): "8423c3f09e575380",
    ("", True): "ddfda116d650cafa",
    ("second", False): "b8633d0a42e3edf2",
    ("second", True): "7cae7ff9ced8e9ca",
}
"""Label and exactness -> id."""
COPY_OF_WEIGHTS = {
    "seen_images": "ca73761ddabfffcbe51170be0b07f67bafcdbed202545c60707573d36dc935b4",
    "step-000000000/manifest.json": "62bdfbb60d9d3451ec88078029fe410bcee734e057b0b68f4148be2555fc0c0b",
    "step-000000000/variables.npz": "83d19ba115603233685232b9d585f8ca3c2d308ceab24b26f4075a5ed3b1892e",
}


def digests(folder: Path, *patterns: str) -> dict[str, str]:
    """Return the SHA-256 of the files that match."""
    paths = [path for pattern in patterns for path in folder.glob(pattern)]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_a_dataset_has_the_fingerprint_and_the_bytes_of_before(digits: Dataset) -> None:
    assert digits.fingerprint == FINGERPRINT
    assert digests(Path(digits.directory), "dataset.json", "*.array_record-*") == DATASET


def test_a_run_has_the_id_of_before() -> None:
    config = TrainConfig(epochs=2, global_batch_size=32, learning_rate=0.003)
    assert {
        (label, exact): identity.run_id(config, FINGERPRINT, label, exact=exact) for label, exact in RUN_IDS
    } == RUN_IDS


def test_a_checkpoint_has_the_bytes_of_before(tmp_path: Path) -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-1, 2], np.float32)]
    seen = SeenImages(numbers=np.array([3, 1, 2], np.uint64), hashes=np.empty((0, 64), np.int8))
    weights = StartingWeights(model="convnet", class_names=("a", "b"), arrays=arrays, seen_images=seen)
    starting_weights.pin(weights, str(tmp_path))
    assert digests(tmp_path, "seen_images", "*/*") == COPY_OF_WEIGHTS
