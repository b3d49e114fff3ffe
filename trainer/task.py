"""Train a model on a prepared dataset: `python -m trainer.task --dataset DIR --checkpoint-directory DIR`.

Start it again with the same arguments and it goes on where it was; a run that is finished says so. On several machines
start it on each, with the TF_CONFIG that Vertex AI sets.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import Any

from trainer import command_line, config, flags
from trainer.checkpoints import identity as run_identity
from trainer.checkpoints.checkpoints import refuse_other_run
from trainer.cluster import cluster as clusters
from trainer.cluster.cluster import Cluster
from trainer.cluster.signals import StopRequest
from trainer.config import TrainConfig
from trainer.data import dataset
from trainer.files import storage
from trainer.models import models
from userinput.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Command line of the training."""
    options = flags.parser(__doc__).parse_args(arguments)
    if options.list_models:
        print(models.listing())
        return 0
    # From here on a stop request is remembered: imports and tracing take seconds too.
    stop = StopRequest().install()
    flags.check(options)
    train_config = config.from_namespace(options)
    cluster = clusters.read(os.environ, options.distribution_strategy)
    directory = _checkpoint_directory(options)
    if options.exact:
        # oneDNN's kernels may sum in another order from run to run. Read when TensorFlow is imported, as gs:// does.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    data = dataset.load(options.dataset)
    if options.batch_size_per_replica:
        train_config = _per_replica(options, train_config, cluster)
    identity = run_identity.identity(train_config, data.fingerprint, options.run_label)
    if result := run_identity.read_result(directory):
        found = result.get("identity", {})
        is_apart = cluster.is_evaluator and options.batch_size_per_replica
        own = run_identity.with_devices_of(found, identity) if is_apart else identity
        refuse_other_run(found, own, directory)
        if run_identity.is_finished(directory):
            print(f"run {result['run_id']} is finished: {run_identity.summary(result)}; nothing to do")
            return 0
    from trainer.loop import training

    run_id = run_identity.run_id(train_config, data.fingerprint, options.run_label)
    return training.Training(
        options=options, config=train_config, data=data, run_id=run_id, identity=identity, directory=directory,
        cluster=cluster, stop=stop,
    ).run()  # fmt: skip


def _per_replica(options: argparse.Namespace, train_config: TrainConfig, cluster: Cluster) -> TrainConfig:
    from trainer.cluster import distribution

    if cluster.strategy == "parameter-server":
        raise UserError(
            "--batch-size-per-replica does not go with parameter servers: each step is one worker's; give"
            " --global-batch-size"
        )
    num_replicas = cluster.num_workers * distribution.num_devices(cluster, options.logical_cpu_devices)
    changed: dict[str, Any] = {"global_batch_size": options.batch_size_per_replica * num_replicas}
    if options.scale_learning_rate:
        changed["learning_rate"] = train_config.learning_rate * num_replicas
    told = ", ".join(f"{name}={value:g}" for name, value in changed.items())
    print(f"{num_replicas} devices: {told}", flush=True)
    return dataclasses.replace(train_config, **changed)


def _checkpoint_directory(options: argparse.Namespace) -> str:
    directory: str = options.checkpoint_directory or os.environ.get("AIP_CHECKPOINT_DIR", "")
    if not directory and options.job_dir:
        directory = options.job_dir.rstrip("/") + "/checkpoints"
    if not directory:
        raise UserError(
            "--checkpoint-directory is missing (AIP_CHECKPOINT_DIR and --job-dir are not set either); give a folder"
        )
    if not storage.is_object_store(directory) and os.path.exists(directory) and not os.path.isdir(directory):
        raise UserError(f"checkpoint directory {directory!r} is a file; give a folder")
    return directory.rstrip("/")


if __name__ == "__main__":
    sys.exit(command_line.run(main))
