"""What is stored keeps its bytes: datasets and their fingerprints, checkpoints, and the run ids that name them.

The values were computed before the trainer's modules moved to other folders; those of the dataset, which has 30 images
per class, when small classes were first divided evenly; those of a checkpoint when the loop became exact_resume's. With
other ones, finished runs would be trained again. Another Pillow or array_record may change the files of a dataset, but
not its fingerprint.
"""

import hashlib
from pathlib import Path

import numpy as np

from trainer.checkpoints import identity, starting_weights
from trainer.checkpoints.seen import SeenImages
from trainer.checkpoints.starting_weights import StartingWeights
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset

FINGERPRINT = "950d160dd3de6f2e6af6adde08039553e3abf71d85fa3feab163c10f39cf50db"
DATASET = {
    "dataset.json": "249d81185d907a12841e288602ba8b658819286bc41c25ceafc728d4fc39f089",
    "images-test.array_record-00000-of-00001": "f986d1aafa6ebad3163ebd9dcd6b23e32fa32867673adc1becda0ce528e14633",
    "images-train.array_record-00000-of-00001": "68645727f3f2826c130ec6365db8a802e17a5470ae11141263ee7cde6e0f2bc4",
    "images-validation.array_record-00000-of-00001": "8f101c1273a5989dd2c5dc33be4021ea8e1305decea17c608bcbdf3e9694b7d3",
}
ANY_FINGERPRINT = "13f79cc99c7b5d17c3bbff5d402eb0341f1694105c450338a16a1aa73a5a3dce"
RUN_IDS = {
    ("", False): "8423c3f09e575380",
    ("", True): "ddfda116d650cafa",
    ("second", False): "b8633d0a42e3edf2",
    ("second", True): "7cae7ff9ced8e9ca",
}
"""Label and exactness -> id."""
COPY_OF_WEIGHTS = {
    "seen_images": "ca73761ddabfffcbe51170be0b07f67bafcdbed202545c60707573d36dc935b4",
    "step-000000000/manifest.json": "233e13545b076ace6b5e16d5056c1460c076512faa06eb45f9c993e28c98459e",
    "step-000000000/variables.npz": "8954d6e3461c59b8b41b360e3ca0fb4259e8f708101ae685a290282c3dfdd349",
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
        (label, exact): identity.run_id(config, ANY_FINGERPRINT, label, exact=exact) for label, exact in RUN_IDS
    } == RUN_IDS


def test_a_checkpoint_has_the_bytes_of_before(tmp_path: Path) -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-1, 2], np.float32)]
    seen = SeenImages(numbers=np.array([3, 1, 2], np.uint64), hashes=np.empty((0, 64), np.int8))
    weights = StartingWeights(model="convnet", class_names=("a", "b"), arrays=arrays, seen_images=seen)
    starting_weights.pin(weights, str(tmp_path))
    assert digests(tmp_path, "seen_images", "*/*") == COPY_OF_WEIGHTS
