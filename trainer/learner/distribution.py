"""The tf.distribute strategy that follows from the cluster and from the devices of this machine."""

import os

import tensorflow as tf

from exact_resume.workers.cluster import Cluster


def split_cpu(num_devices: int) -> None:
    """Split this machine's CPU into logical devices, to try several devices without GPUs.

    Call this before any TensorFlow operation runs.
    """
    (cpu,) = tf.config.list_physical_devices("CPU")
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(num_devices)]
    tf.config.set_logical_device_configuration(cpu, devices)


def has_gpu() -> bool:
    """Return whether GPUs will train, without initialising them."""
    return bool(tf.config.list_physical_devices("GPU"))


def num_devices(num_logical_cpus: int) -> int:
    """Return how many devices of this machine will train, without initialising them."""
    return len(tf.config.list_physical_devices("GPU")) or num_logical_cpus


def make(cluster: Cluster) -> tf.distribute.Strategy:
    """Make the distribution strategy; several machines wait here for each other."""
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    if cluster.has_parameter_servers:
        return tf.distribute.ParameterServerStrategy(_resolver(cluster))
    if cluster.num_workers > 1:
        kinds = tf.distribute.experimental.CommunicationImplementation
        # In packs of 50 MB, so that the first gradients are sent while the last are still computed.
        options = tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=50 * 2**20, implementation=kinds.NCCL if has_gpu() else kinds.RING
        )
        return tf.distribute.MultiWorkerMirroredStrategy(_resolver(cluster), communication_options=options)
    # The CPU is one device, unless it was split.
    found = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if len(found) == 1:
        return tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy([device.name for device in found])


def serve(cluster: Cluster) -> tf.distribute.Server:
    """Start the server of a parameter server or of one of its workers; it runs until it is garbage-collected."""
    # A request to a lost machine must fail instead of waiting.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    resolver = _resolver(cluster)
    return tf.distribute.Server(
        resolver.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_index, protocol="grpc"
    )


def _resolver(cluster: Cluster) -> tf.distribute.cluster_resolver.ClusterResolver:
    spec = tf.train.ClusterSpec({kind: list(addresses) for kind, addresses in cluster.addresses.items()})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type=cluster.task_type, task_id=cluster.task_index, rpc_layer="grpc"
    )
