"""The fields of a config.yaml (the Job resource of the ml v1 API) and their types."""

TEXT, COUNT, BOOL, TEXTS, TEXT_MAP, NUMBERS, NUMBER = "text", "count", "bool", "texts", "text map", "numbers", "number"
ANY = "any"

Fields = dict[str, "str | Fields"]
"""Field -> type, or its nested fields; a list of messages has the single key "[]"."""

_ACCELERATOR: Fields = {"count": COUNT, "type": TEXT}
_REPLICA: Fields = {
    "acceleratorConfig": _ACCELERATOR,
    "containerArgs": TEXTS,
    "containerCommand": TEXTS,
    "diskConfig": {"bootDiskSizeGb": COUNT, "bootDiskType": TEXT},
    "imageUri": TEXT,
    "tpuTfVersion": TEXT,
}
_PARAMETER: Fields = {
    "parameterName": TEXT,
    "type": TEXT,
    "minValue": NUMBER,
    "maxValue": NUMBER,
    "categoricalValues": TEXTS,
    "discreteValues": NUMBERS,
    "scaleType": TEXT,
}
_TUNING: Fields = {
    "algorithm": TEXT,
    "enableTrialEarlyStopping": BOOL,
    "goal": TEXT,
    "hyperparameterMetricTag": TEXT,
    "maxFailedTrials": COUNT,
    "maxParallelTrials": COUNT,
    "maxTrials": COUNT,
    "params": {"[]": _PARAMETER},
    "resumePreviousJobId": TEXT,
}
ROLES = ("master", "worker", "parameterServer", "evaluator")
"""The task types in the order of the worker pools that they become."""

TRAINING_INPUT: Fields = {
    "args": TEXTS,
    "enableWebAccess": BOOL,
    "encryptionConfig": {"kmsKeyName": TEXT},
    "hyperparameters": _TUNING,
    "jobDir": TEXT,
    "masterConfig": _REPLICA,
    "masterType": TEXT,
    "nasJobSpec": ANY,
    "network": TEXT,
    "packageUris": TEXTS,
    "pythonModule": TEXT,
    "pythonVersion": TEXT,
    "region": TEXT,
    "runtimeVersion": TEXT,
    "scaleTier": TEXT,
    "scheduling": {
        "maxRunningTime": TEXT,
        "maxWaitTime": TEXT,
        "priority": COUNT,
        "resilientToWorkerRestart": BOOL,
        "strategy": TEXT,
    },
    "serviceAccount": TEXT,
    "useChiefInTfConfig": BOOL,
    **{
        f"{role}{part}": kind
        for role in ROLES[1:]
        for part, kind in (("Type", TEXT), ("Count", COUNT), ("Config", _REPLICA))
    },
}
"""The part of a Job that configures the training."""

SET_BY_THE_SERVICE = (
    "createTime endTime errorMessage etag jobPosition predictionOutput startTime state trainingOutput".split()
)
"""Fields in the description of a job that were never input."""
