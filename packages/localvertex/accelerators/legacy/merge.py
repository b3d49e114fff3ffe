"""The flags of a command line merged into a config.yaml, as gcloud did."""

import re
from typing import Any

from accelerators.legacy.command_line import ROLE_FLAGS, Command
from accelerators.legacy.report import LegacyInputError, Report
from localvertex_base.userinput.spelling import closest, join_or, quote

_TEXT_FLAGS = {
    "--module-name": "pythonModule",
    "--job-dir": "jobDir",
    "--region": "region",
    "--scale-tier": "scaleTier",
    "--runtime-version": "runtimeVersion",
    "--python-version": "pythonVersion",
    "--service-account": "serviceAccount",
    "--network": "network",
    "--master-machine-type": "masterType",
    "--worker-machine-type": "workerType",
    "--parameter-server-machine-type": "parameterServerType",
}
_CLIENT_FLAGS = {
    "--stream-logs": "showed logs while the job ran; use `gcloud ai custom-jobs stream-logs` instead",
    "--async": "did not wait for the job; nothing to convert",
    "--staging-bucket": "gcloud uploaded your package there; upload it yourself now",
    "--project": "choose the project when you submit the job",
}
_KMS_PARTS = ("--kms-project", "--kms-location", "--kms-keyring", "--kms-key")


def merge(job: dict[str, Any], command: Command, report: Report) -> dict[str, Any]:
    """Return the Job with the flags merged into the fields of the file; a flag replaces its field.

    Args:
        job: The result of `read_config`; an empty mapping without a file.
        command: The command line.
        report: Gets a remark for every field that a flag replaces or that gcloud would have ignored.

    Raises:
        LegacyInputError: The value of a flag cannot be read.
    """
    problems: list[str] = []
    training = dict(job.get("trainingInput", {}))
    _texts(command, training, report)
    for flag, role in ROLE_FLAGS.items():
        _role(command, training, flag, role, problems)
    _booleans(command, training, problems, report)
    _packages(command, training, report)
    _region(command, training, report)
    if command.user_args is not None:
        _replace(training, "args", command.user_args, "--", report)
    merged = dict(job, trainingInput=training)
    if command.job:
        merged["jobId"] = command.job
    if "--labels" in command.flags:
        merged["labels"] = _pairs(command.flags["--labels"], "--labels", problems)
    _encryption(command, training, problems, report)
    _client_only(command, report)
    if problems:
        raise LegacyInputError(problems)
    return merged


def _replace(training: dict[str, Any], name: str, value: object, flag: str, report: Report) -> None:
    if name in training and training[name] != value:
        report.add(
            "changed", name, f"{quote(training[name])} from the file is replaced with {quote(value)} from {flag}"
        )
    training[name] = value


def _texts(command: Command, training: dict[str, Any], report: Report) -> None:
    for flag, name in _TEXT_FLAGS.items():
        value = command.flags.get(flag)
        if value:
            _replace(training, name, value.upper().replace("-", "_") if flag == "--scale-tier" else value, flag, report)


def _role(command: Command, training: dict[str, Any], flag: str, role: str, problems: list[str]) -> None:
    count = command.flags.get(f"--{flag}-count")
    if count is not None:
        if count.isascii() and count.isdecimal() and len(count) < 10:
            training[f"{role}Count"] = int(count)
        else:
            problems.append(f"--{flag}-count is {quote(count)}; expected a whole number")
    config = dict(training.get(f"{role}Config", {}))
    image = command.flags.get(f"--{flag}-image-uri")
    if image:
        config["imageUri"] = image
    accelerator = command.flags.get(f"--{flag}-accelerator")
    if accelerator is not None:
        config["acceleratorConfig"] = _accelerator(accelerator, f"--{flag}-accelerator", problems)
    version = command.flags.get("--tpu-tf-version")
    if version and role == "worker":
        config["tpuTfVersion"] = version
    if config:
        training[f"{role}Config"] = config


def _accelerator(text: str, flag: str, problems: list[str]) -> dict[str, Any]:
    pairs = _pairs(text, flag, problems)
    count, kind = pairs.get("count", ""), pairs.get("type", "")
    for key in set(pairs) - {"count", "type"}:
        near = closest(key, ("count", "type"))
        problems.append(f"{flag} has {quote(key)}; did you mean {near[0] if near else 'count or type'}?")
    if not (count.isascii() and count.isdecimal() and 0 < int(count[:9]) and kind):
        problems.append(f"{flag} is {quote(text)}; expected e.g. count=4,type=nvidia-tesla-t4")
        return {}
    return {"count": int(count[:9]), "type": kind}


def _pairs(text: str, flag: str, problems: list[str]) -> dict[str, str]:
    pairs = dict(part.partition("=")[::2] for part in text.split(",") if part)
    if not all("=" in part for part in text.split(",") if part):
        problems.append(f"{flag} is {quote(text)}; expected NAME=VALUE pairs separated by commas")
    return pairs


def _booleans(command: Command, training: dict[str, Any], problems: list[str], report: Report) -> None:
    chief = command.flags.get("--use-chief-in-tf-config")
    if chief is not None:
        if chief.casefold() not in ("true", "yes", "false", "no"):
            problems.append(f"--use-chief-in-tf-config is {quote(chief)}; expected true or false")
        training["useChiefInTfConfig"] = chief.casefold() in ("true", "yes")
    web_access = command.flags.get("--enable-web-access") == "true"
    if training.get("enableWebAccess") and not web_access:
        message = "gcloud used only the flag and ignored the file; left out, as it was in your jobs"
        report.add("dropped", "enableWebAccess", message)
    training["enableWebAccess"] = web_access


def _packages(command: Command, training: dict[str, Any], report: Report) -> None:
    listed_packages = [one for one in command.flags.get("--packages", "").split(",") if one]
    path = command.flags.get("--package-path", "")
    if path or listed_packages:
        _replace(training, "packageUris", listed_packages + [path] * bool(path), "the package flags", report)
    elif "packageUris" in training and not _image(training):
        message = (
            "kept from the file, although gcloud would have replaced them with the (missing) packages from the flags"
        )
        report.add("doubtful", "packageUris", message)


def _image(training: dict[str, Any]) -> bool:
    return bool(training.get("masterConfig", {}).get("imageUri"))


def _region(command: Command, training: dict[str, Any], report: Report) -> None:
    if "region" in training and not command.flags.get("--region"):
        message = f"{training['region']} from the file; gcloud would have used the region from its own settings"
        report.add("doubtful", "region", message)


def _encryption(command: Command, training: dict[str, Any], problems: list[str], report: Report) -> None:
    given = {flag: command.flags[flag] for flag in _KMS_PARTS if flag in command.flags}
    if not given:
        return
    key = given.get("--kms-key", "")
    if re.fullmatch(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+", key):
        training["encryptionConfig"] = {"kmsKeyName": key}
        return
    missing = [flag for flag in _KMS_PARTS[1:] if flag not in given]
    if missing:
        problems.append(f"{' '.join(given)} without {join_or(missing, 'and')}; give the full key")
        return
    if "--kms-project" not in given:
        report.add("decide", "--kms-project", "missing; replace KMS_PROJECT with the project of the key")
    project = given.get("--kms-project", "KMS_PROJECT")
    ring = f"projects/{project}/locations/{given['--kms-location']}/keyRings/{given['--kms-keyring']}"
    training["encryptionConfig"] = {"kmsKeyName": f"{ring}/cryptoKeys/{key}"}


def _client_only(command: Command, report: Report) -> None:
    for flag, reason in _CLIENT_FLAGS.items():
        if flag in command.flags:
            report.add("dropped", flag, reason)
