"""The fields of a Vertex CustomJob and their types, as google-cloud-aiplatform 1.165.1 declares them.

A test compares this table with `aiplatform_v1.CustomJob`, so that an upgrade shows what is new.
"""

REPEATED = "*"
"""Prefix of a type: a list of that type."""
OUTPUT = "output"
"""Set by the service; ignored when it is read, and never sent."""

_ACCELERATOR_TYPES = (
    "ACCELERATOR_TYPE_UNSPECIFIED NVIDIA_TESLA_K80 NVIDIA_TESLA_P100 NVIDIA_TESLA_V100 NVIDIA_TESLA_P4 "
    "NVIDIA_TESLA_T4 TPU_V2 TPU_V3 NVIDIA_TESLA_A100 NVIDIA_A100_80GB TPU_V4_POD NVIDIA_L4 TPU_V5_LITEPOD "
    "NVIDIA_H100_80GB NVIDIA_H100_MEGA_80GB NVIDIA_H200_141GB NVIDIA_B200 NVIDIA_GB200 NVIDIA_RTX_PRO_6000"
).split()

ENUMS: dict[str, dict[str, int]] = {
    "AcceleratorType": {name: number for number, name in enumerate(_ACCELERATOR_TYPES)},
    "Strategy": {"STRATEGY_UNSPECIFIED": 0, "ON_DEMAND": 1, "LOW_COST": 2, "STANDARD": 3, "SPOT": 4, "FLEX_START": 6},
    "ReservationType": {"TYPE_UNSPECIFIED": 0, "NO_RESERVATION": 1, "ANY_RESERVATION": 2, "SPECIFIC_RESERVATION": 3},
}
"""Enum -> value names and their numbers in the API's proto (gcloud numbers some of them differently)."""

OLD_STRATEGIES = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
"""Deprecated name of a scheduling strategy -> its current one."""

MESSAGES: dict[str, dict[str, str]] = {
    "CustomJob": {
        "display_name": "string",
        "job_spec": "CustomJobSpec",
        "labels": "map",
        "encryption_spec": "EncryptionSpec",
    }
    | dict.fromkeys("name state create_time start_time end_time update_time error web_access_uris".split(), OUTPUT)
    | dict.fromkeys(("satisfies_pzs", "satisfies_pzi"), OUTPUT),
    "CustomJobSpec": {
        "persistent_resource_id": "string",
        "worker_pool_specs": "*WorkerPoolSpec",
        "scheduling": "Scheduling",
        "service_account": "string",
        "network": "string",
        "reserved_ip_ranges": "*string",
        "psc_interface_config": "PscInterfaceConfig",
        "base_output_directory": "GcsDestination",
        "protected_artifact_location_id": "string",
        "tensorboard": "string",
        "enable_web_access": "bool",
        "enable_dashboard_access": "bool",
        "experiment": "string",
        "experiment_run": "string",
        "models": "*string",
    },
    "WorkerPoolSpec": {
        "container_spec": "ContainerSpec",
        "python_package_spec": "PythonPackageSpec",
        "machine_spec": "MachineSpec",
        "replica_count": "int64",
        "nfs_mounts": "*NfsMount",
        "lustre_mounts": "*LustreMount",
        "disk_spec": "DiskSpec",
    },
    "ContainerSpec": {"image_uri": "string", "command": "*string", "args": "*string", "env": "*EnvVar"},
    "EnvVar": {"name": "string", "value": "string"},
    "PythonPackageSpec": {
        "executor_image_uri": "string",
        "package_uris": "*string",
        "python_module": "string",
        "args": "*string",
        "env": "*EnvVar",
    },
    "MachineSpec": {
        "machine_type": "string",
        "accelerator_type": "enum:AcceleratorType",
        "accelerator_count": "int32",
        "gpu_partition_size": "string",
        "tpu_topology": "string",
        "reservation_affinity": "ReservationAffinity",
    },
    "ReservationAffinity": {
        "reservation_affinity_type": "enum:ReservationType",
        "key": "string",
        "values": "*string",
    },
    "NfsMount": {"server": "string", "path": "string", "mount_point": "string"},
    "LustreMount": {
        "instance_ip": "string",
        "volume_handle": "string",
        "filesystem": "string",
        "mount_point": "string",
    },
    "DiskSpec": {"boot_disk_type": "string", "boot_disk_size_gb": "int32"},
    "Scheduling": {
        "timeout": "duration",
        "restart_job_on_worker_restart": "bool",
        "strategy": "enum:Strategy",
        "disable_retries": "bool",
        "max_wait_duration": "duration",
    },
    "PscInterfaceConfig": {"network_attachment": "string", "dns_peering_configs": "*DnsPeeringConfig"},
    "DnsPeeringConfig": {"domain": "string", "target_project": "string", "target_network": "string"},
    "DedicatedResources": {
        "machine_spec": "MachineSpec",
        "min_replica_count": "int32",
        "max_replica_count": "int32",
        "required_replica_count": "int32",
        "autoscaling_metric_specs": "*AutoscalingMetricSpec",
        "spot": "bool",
    },
    "AutoscalingMetricSpec": {"metric_name": "string", "target": "int32"},
    "BatchDedicatedResources": {
        "machine_spec": "MachineSpec",
        "starting_replica_count": "int32",
        "max_replica_count": "int32",
    },
    "GcsDestination": {"output_uri_prefix": "string"},
    "EncryptionSpec": {"kms_key_name": "string"},
}
"""Message -> field -> string, bool, int32, int64, duration, map, output, enum:NAME or the name of a message."""
