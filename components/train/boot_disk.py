"""The boot disk of a machine that trains: the trainer copies the dataset of a bucket to it."""

import math

from components.train.machines import Machines
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.data.dataset import Dataset

_RESERVED_GB = 40
"""For the system, the container image (about 15 GB with CUDA) and logs; an estimate with room to spare."""
_COPIED = ("train", "validation")
"""The splits that `trainer.data.staging` copies in a training job."""


def check_boot_disk(machines: Machines, dataset: Dataset) -> None:
    """Refuse a boot disk that the dataset does not fit on, before a machine is requested.

    Raises:
        UserError: The disk is too small, or a shard is missing.
    """
    if not storage.is_object_store(dataset.directory):
        return  # the records are read where they are
    dataset_gb = sum(size for split in _COPIED for size in dataset.shard_sizes(split).values()) / 1e9
    needed_gb = math.ceil(dataset_gb + _RESERVED_GB)
    if needed_gb > machines.boot_disk_size_gb:
        raise UserError(
            f"boot_disk_size_gb is {machines.boot_disk_size_gb}, but the dataset has {dataset_gb:.1f} GB, which each "
            f"machine copies to its boot disk, and {_RESERVED_GB} GB are kept free; use {needed_gb} or more"
        )
