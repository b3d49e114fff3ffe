"""The fields of a config.yaml (the Job resource of the ml v1 API), their types, and those that are not converted."""

from localvertex.machines.job.schema import OUTPUT
from localvertex.machines.legacy.report import Kind

ROLES = ("master", "worker", "parameterServer", "evaluator")
"""The task types in the order of the worker pools that they become."""

MESSAGES: dict[str, dict[str, str]] = {
    "Job": {"jobId": "string", "labels": "map", "trainingInput": "TrainingInput"}
    | dict.fromkeys("createTime endTime errorMessage etag jobPosition startTime state trainingOutput".split(), OUTPUT),
    "TrainingInput": {
        "args": "*string",
        "enableWebAccess": "bool",
        "encryptionConfig": "EncryptionConfig",
        "hyperparameters": "any",
        "jobDir": "string",
        "masterConfig": "ReplicaConfig",
        "masterType": "string",
        "nasJobSpec": "any",
        "network": "string",
        "packageUris": "*string",
        "pythonModule": "string",
        "pythonVersion": "string",
        "region": "string",
        "runtimeVersion": "string",
        "scaleTier": "string",
        "scheduling": "Scheduling",
        "serviceAccount": "string",
        "useChiefInTfConfig": "bool",
    }
    | {
        f"{role}{part}": kind
        for role in ROLES[1:]
        for part, kind in (("Type", "string"), ("Count", "int32"), ("Config", "ReplicaConfig"))
    },
    "ReplicaConfig": {
        "acceleratorConfig": "AcceleratorConfig",
        "containerArgs": "*string",
        "containerCommand": "*string",
        "diskConfig": "DiskConfig",
        "imageUri": "string",
        "tpuTfVersion": "string",
    },
    "AcceleratorConfig": {"count": "int32", "type": "string"},
    "DiskConfig": {"bootDiskSizeGb": "int32", "bootDiskType": "string"},
    "EncryptionConfig": {"kmsKeyName": "string"},
    "Scheduling": {
        "maxRunningTime": "duration",
        "maxWaitTime": "duration",
        "priority": "int32",
        "resilientToWorkerRestart": "bool",
        "strategy": "string",
    },
}
"""Message -> field -> type, as in `job.schema`."""

NOT_CONVERTED: dict[str, tuple[Kind, str]] = {
    "hyperparameters": (
        "decide",
        "not converted: use this job_spec as the trial_job_spec; trials read AIP_MODEL_DIR instead of --job-dir",
    ),
    "nasJobSpec": (
        "decide",
        "Neural Architecture Search has a service of its own on Vertex AI; only its machines are converted",
    ),
    "pythonVersion": ("dropped", "the image determines the Python version now"),
    "useChiefInTfConfig": ("dropped", "Vertex AI always uses chief in TF_CONFIG"),
    "tpuTfVersion": ("dropped", "Vertex AI has no such field; the version is part of the image"),
    "priority": ("dropped", "Vertex AI custom jobs have no priority"),
    "maxWaitTime": ("dropped", "Vertex AI limits the waiting time only with FLEX_START (max_wait_duration)"),
}
"""Field -> the kind of the remark on it, and why it has no counterpart in the job."""
