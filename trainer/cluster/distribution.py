"""The tf.distribute strategy that follows from the cluster and from the devices of this machine."""

from __future__ import annotations

import os

import tensorflow as tf

from trainer.cluster.cluster import Cluster
from userinput.errors import UserError


def split_cpu(num_devices: int) -> None:
    """Make several logical CPU devices of this machine's, to try several devices where there is no GPU.

    Call it before anything else of TensorFlow's runs.
    """
    (cpu,) = tf.config.list_physical_devices("CPU")
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(num_devices)]
    tf.config.set_logical_device_configuration(cpu, devices)


def num_devices(cluster: Cluster, num_logical_cpus: int) -> int:
    """Devices of this machine that will train; nothing is started yet, so that they can still be set up."""
    if cluster.strategy == "one-device":
        return 1
    return len(tf.config.list_physical_devices("GPU")) or num_logical_cpus


def make(cluster: Cluster) -> tf.distribute.Strategy:
    """The distribution strategy; several machines wait here for each other.

    Raises:
        UserError: one device is asked for and several GPUs are there, or mirrored and there is one device.
    """
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    if cluster.strategy == "multi-worker-mirrored" and cluster.num_workers > 1:
        return tf.distribute.MultiWorkerMirroredStrategy(_resolver(cluster), communication_options=_nccl())
    if cluster.strategy == "parameter-server":
        return tf.distribute.ParameterServerStrategy(_resolver(cluster))
    devices = _devices()
    if cluster.strategy == "mirrored" and len(devices) < 2:
        raise UserError(f"--distribution-strategy=mirrored needs two devices, this machine has {devices}; leave it out")
    if cluster.strategy == "one-device" or len(devices) == 1:
        return tf.distribute.OneDeviceStrategy(devices[0]) if len(devices) > 1 else tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy(devices)


def serve(cluster: Cluster) -> tf.distribute.Server:
    """Start the server of a parameter server or of a worker of its; it works until it is dropped."""
    # A request to a machine that is gone shall fail, not wait.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    resolver = _resolver(cluster)
    return tf.distribute.Server(
        resolver.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_index, protocol="grpc"
    )


def _devices() -> list[str]:
    """Names of the devices that train: the GPUs, or without any the CPUs (one, unless it was split)."""
    gpus = tf.config.list_logical_devices("GPU")
    return [device.name for device in gpus or tf.config.list_logical_devices("CPU")]


def _resolver(cluster: Cluster) -> tf.distribute.cluster_resolver.ClusterResolver:
    spec = tf.train.ClusterSpec({kind: list(addresses) for kind, addresses in cluster.addresses.items()})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type=cluster.task_type, task_id=cluster.task_index, rpc_layer="grpc"
    )


def _nccl() -> tf.distribute.experimental.CommunicationOptions:
    """Gradients in packs of 50 MB, so that the first are on their way while the last are computed."""
    kinds = tf.distribute.experimental.CommunicationImplementation
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=50 * 2**20, implementation=kinds.NCCL if has_gpu else kinds.RING
    )
