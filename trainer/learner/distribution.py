"""The tf.distribute strategy that follows from the cluster and from the devices of this machine."""

import os
import platform

import tensorflow as tf

from exact_resume.workers.cluster import Cluster
from localvertex._base import linux


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


def own_replicas(distribution_strategy: tf.distribute.Strategy) -> list[int]:
    """Return the numbers of this machine's replicas among all."""
    own: list[int] = []

    def note(context: tf.distribute.experimental.ValueContext) -> int:
        own.append(context.replica_id_in_sync_group)
        return 0

    distribution_strategy.experimental_distribute_values_from_function(note)
    return own


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


def kind_of_devices() -> str:
    """Return the models of this machine's GPUs, or its CPU's model and number of cores, without using them."""
    gpus = tf.config.list_physical_devices("GPU")
    names = {str(tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")) for gpu in gpus}
    if names:
        return " and ".join(sorted(names))
    # Eigen splits the sums of a matrix product by the sizes of the caches and by the number of threads.
    num_cores = linux.num_cores() or os.cpu_count() or 1
    return f"CPU ({linux.cpu_name() or platform.machine()}, {num_cores} core{'s' if num_cores > 1 else ''})"
