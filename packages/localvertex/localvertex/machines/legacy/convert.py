"""The conversion of a job of AI Platform Training to a CustomJob of Vertex AI, and the check of the result."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import did_you_mean, quote, snake
from localvertex.machines.catalogue import nearest
from localvertex.machines.catalogue.catalogue import Catalogue, has_ended, load_catalogue
from localvertex.machines.check import check_custom_job
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.schema import OLD_STRATEGIES
from localvertex.machines.job.shape import Reading
from localvertex.machines.legacy.command_line import Command
from localvertex.machines.legacy.fields import MESSAGES, NOT_CONVERTED, ROLES
from localvertex.machines.legacy.report import LegacyInputError, Report

_MACHINE_PLACEHOLDER = "MACHINE_TYPE"
_TIERS = ("BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM")
_UNFILLED = re.compile(r"\$\{?\w+\}?|\$\(|`|\{\w+\}|<[A-Za-z][\w -]*>")
"""Variables and commands of a shell, a template's braces, a placeholder of a guide."""

_PACKAGE_PLACEHOLDER = "gs://BUCKET/PACKAGE.tar.gz"

_VERTEX = {"job_spec", "worker_pool_specs", "trial_job_spec"}


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A converted job.

    Attributes:
        job: The fields of a CustomJob.
        region: Region of the job; empty if the input has none.
        report: Changed and dropped fields, and decisions left to the user.
        findings: The findings of `check` for the job.
    """

    job: JsonObject
    region: str
    report: Report
    findings: list[Finding]

    @property
    def needs_decision(self) -> bool:
        """Whether the user has to decide something before the job can run."""
        return self.report.needs_decision or any(finding.severity == "error" for finding in self.findings)


def convert(
    document: Any = None,
    command: Command | None = None,
    *,
    report: Report | None = None,
    replace_retired: bool = False,
    today: date | None = None,
) -> Conversion:
    """Convert a job of AI Platform Training.

    Args:
        document: The content of its config.yaml; None without one.
        command: Its command line; None without one.
        report: A report with earlier remarks, e.g. from `read_command`; None for a new one.
        replace_retired: Whether to replace retired GPUs instead of proposing replacements.
        today: The date to compare end-of-support dates with; None for the current date.

    Raises:
        LegacyInputError: The input has mistakes; it names them all.
    """
    notes = Report() if report is None else report
    old = read_job(document, command, notes)
    training = old["trainingInput"]
    region = training.get("region", "")
    machines = _Machines(
        catalogue=load_catalogue(),
        report=notes,
        replace_retired=replace_retired,
        region=region,
        today=today or date.today(),
    )
    folder = training.get("jobDir", "")
    spec = _given(
        worker_pool_specs=_pools(training, machines, notes),
        scheduling=_scheduling(training.get("scheduling", {}), notes),
        service_account=training.get("serviceAccount"),
        network=training.get("network"),
        enable_web_access=training.get("enableWebAccess"),
        base_output_directory=_given(output_uri_prefix=folder),
    )
    if folder and not folder.startswith(("gs://", "$")):
        message = f"{quote(folder)} is not in Cloud Storage; the service refuses it, so give a gs:// address"
        notes.add("decide", "jobDir", message)
    if not old.get("jobId"):
        notes.add("doubtful", "jobId", "missing; replace JOB_NAME with a name")
    job = _given(
        display_name=old.get("jobId") or "JOB_NAME",
        labels=old.get("labels"),
        encryption_spec=_given(kms_key_name=training.get("encryptionConfig", {}).get("kmsKeyName")),
        job_spec=spec,
    )
    if region:
        notes.add("changed", "region", f"not a field of the job; submit it to {region}")
    if unfilled := dict.fromkeys(_UNFILLED.findall(json.dumps([job, region], ensure_ascii=False))):
        message = f"{', '.join(unfilled)}: variables and placeholders are kept and not expanded; write the values"
        notes.add("decide", "variables", message)
    findings = check_custom_job(job, region=region, today=today)
    return Conversion(job=job, region=region, report=notes, findings=findings)


@dataclass(frozen=True, kw_only=True)
class _Machines:
    """The conversion of the machines of one job, which adds its remarks to the report."""

    catalogue: Catalogue
    report: Report
    replace_retired: bool
    region: str
    today: date

    def spec(self, name: str, accelerator: JsonObject, role: str) -> JsonObject:
        """Return the machine_spec for a legacy or Compute Engine name and an acceleratorConfig."""
        kind, count = accelerator.get("type", "").upper().replace("-", "_"), accelerator.get("count", 0)
        if name == "cloud_tpu" or kind.startswith("TPU"):
            message = f"{name}: TPU jobs are not converted; replace {_MACHINE_PLACEHOLDER} with a TPU or GPU machine"
            self.report.add("decide", f"{role}Type", message)
            return {"machine_type": _MACHINE_PLACEHOLDER}
        if old := self.catalogue.legacy_machines.get(name):
            if accelerator:
                message = f"{name} has its own GPUs or none; acceleratorConfig is left out"
                self.report.add("decide", f"{role}Config.acceleratorConfig", message)
            doubt = "" if old.confidence == "high" else "; no Google table lists it, so compare the sizes"
            if name == "complex_model_s":
                doubt = "; its equivalent n1-highcpu-8 is not offered for training"
            name, kind, count = old.machine_type, old.accelerator_type, old.accelerator_count
            gpus = f" with {count} x {kind}" if kind else ""
            self.report.add(
                "doubtful" if doubt else "changed", f"{role}Type", f"{old.name} becomes {name}{gpus}{doubt}"
            )
        entry = self.catalogue.accelerators.get(kind)
        if entry is not None and has_ended(entry, self.today):
            name, kind, count = self._current(name, kind, count, role)
        return _given(machine_type=name, accelerator_type=kind, accelerator_count=count)

    def _current(self, name: str, kind: str, count: int, role: str) -> tuple[str, str, int]:
        """Return machine, GPU and count instead of a retired GPU, if the user wants that."""
        demand = nearest.Demand(
            machine_type=name,
            accelerator_type=kind,
            accelerator_count=count,
            region=self.region if self.region in self.catalogue.training_regions else "",
            today=self.today,
        )
        new = nearest.offers(self.catalogue, demand)[0]
        ended = f"{kind} reached its end of support on {self.catalogue.accelerators[kind].end_of_support}"
        proposed = f"{new[0]} with {new[2]} x {new[1]}"
        if not self.replace_retired:
            message = f"{ended}; proposed: {proposed} (pass --replace-retired to apply it)"
            self.report.add("decide", f"{role} accelerator", message)
            return name, kind, count
        message = f"{ended}: {name} with {count} x {kind} becomes {proposed} (--replace-retired); compare their prices"
        self.report.add("changed", f"{role} accelerator", message)
        return new


def _given(**fields: Any) -> JsonObject:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def _pools(training: JsonObject, machines: _Machines, report: Report) -> list[JsonObject]:
    """Return master, workers, parameter servers and evaluators as pools 0 to 3; {} is an unused pool before others."""
    wanted = _expand(training, machines.catalogue, report)
    pools: list[JsonObject] = []
    for role in ROLES:
        replicas = 1 if role == "master" else wanted.get(f"{role}Count", 0)
        config = wanted.get(f"{role}Config", {})
        if not replicas:
            if config or wanted.get(f"{role}Type"):
                report.add("dropped", f"{role}Type", f"{role}Count is 0, so there was no such replica")
            pools.append({})
            continue
        name = wanted.get(f"{role}Type") or _MACHINE_PLACEHOLDER
        machine = machines.spec(name, config.get("acceleratorConfig", {}), role)
        disk = config.get("diskConfig", {})
        disk = _given(boot_disk_type=disk.get("bootDiskType"), boot_disk_size_gb=disk.get("bootDiskSizeGb"))
        pool = _given(machine_spec=machine, replica_count=replicas, disk_spec=disk)
        pools.append(pool | program_of(wanted, config, report))
    while not pools[-1]:
        pools.pop()
    if len(pools) > 1 and not training.get("useChiefInTfConfig"):
        message = "the first replica was called master and is called chief now; change code that looks for master"
        report.add("doubtful", "TF_CONFIG", message)
    return pools


def _expand(training: JsonObject, catalogue: Catalogue, report: Report) -> JsonObject:
    """Return the training input with its scale tier expanded to machines.

    Raises:
        LegacyInputError: There is no such scale tier.
    """
    tier = training.get("scaleTier", "").upper().replace("-", "_")
    if not tier:
        tier = "CUSTOM" if training.get("masterType") else "BASIC"
        report.add("doubtful", "scaleTier", f"missing; treated as {tier}")
    if tier not in _TIERS:
        hint = did_you_mean(tier, _TIERS) or f"; expected one of {', '.join(_TIERS)}"
        raise LegacyInputError([f"scaleTier is {quote(training['scaleTier'])}{hint}"])
    if tier == "CUSTOM":
        return training
    if training.get("masterType"):
        report.add(
            "decide", "scaleTier", f"{tier}, but masterType is set, which only CUSTOM allowed; treated as CUSTOM"
        )
        return training
    report.add("changed", "scaleTier", f"{tier} is expanded to machines, because Vertex AI has no scale tiers")
    wanted = dict(training)
    for role in ROLES:
        for name in (f"{role}Type", f"{role}Count"):
            if wanted.pop(name, None):
                report.add("dropped", name, f"only used with the scale tier CUSTOM, and this is {tier}")
        replicas, machine = catalogue.legacy_tiers.get((tier, role), (0, ""))
        if machine:
            wanted |= {f"{role}Type": machine, f"{role}Count": replicas}
    return wanted | ({"masterType": "cloud_tpu"} if tier == "BASIC_TPU" else {})


def _scheduling(old: JsonObject, report: Report) -> JsonObject:
    new: JsonObject = {}
    if old.get("maxRunningTime"):
        new["timeout"] = old["maxRunningTime"]
    if old.get("strategy"):
        name = old["strategy"].upper().replace("-", "_")
        new["strategy"] = OLD_STRATEGIES.get(name, name)
        report.add("changed", "scheduling.strategy", f"{name} is called {new['strategy']} now")
    if "resilientToWorkerRestart" in old:
        # Despite its name: both references say that the whole job is restarted when a worker is.
        new["restart_job_on_worker_restart"] = old["resilientToWorkerRestart"]
        message = "called restart_job_on_worker_restart now; true restarts the whole job when a worker restarts"
        report.add("changed", "scheduling.resilientToWorkerRestart", message)
    return new


def program_of(training: JsonObject, config: JsonObject, report: Report) -> JsonObject:
    """Return the container_spec or python_package_spec of a pool.

    Args:
        training: The trainingInput.
        config: The configuration of the replica, which runs the master's image if it has none.
        report: Gets a remark for everything that is not copied.
    """
    master = training.get("masterConfig", {})
    image = config.get("imageUri") or master.get("imageUri")
    is_package = not image and bool(training.get("pythonModule") or training.get("packageUris"))
    if master.get("imageUri"):
        for name in ("packageUris", "pythonModule", "runtimeVersion"):
            if training.get(name):
                report.add("dropped", name, "the job runs its own image, which has to contain the program")
    if not image:
        found = training.get("runtimeVersion") or "missing"
        message = f"{found}: the images of all runtime versions reached their end; replace IMAGE_URI with your own"
        report.add("decide", "runtimeVersion" if is_package else "masterConfig.imageUri", message)
    elif re.match(r"(\w+\.)?gcr\.io/", image):
        message = f"{image}: Container Registry moved to Artifact Registry; check that the image can be pulled"
        report.add("doubtful", "imageUri", message)
    source = config if config.get("imageUri") else master | config
    args = list(source.get("containerArgs") or training.get("args") or [])
    folder = training.get("jobDir")
    given = any(arg == "--job-dir" or arg.startswith("--job-dir=") for arg in args)
    # All trials of a study would share the folder.
    if folder and not given and not training.get("hyperparameters"):
        args.append(f"--job-dir={folder}")
        message = "also passed to the program as --job-dir, as AI Platform Training did; Vertex AI does not"
        report.add("changed", "jobDir", message)
    if is_package:
        spec: JsonObject = {"executor_image_uri": "IMAGE_URI", **_package(training, report)}
    else:
        spec = {"image_uri": image or "IMAGE_URI"}
        if source.get("containerCommand"):
            spec["command"] = list(source["containerCommand"])
    return {"python_package_spec" if is_package else "container_spec": spec | ({"args": args} if args else {})}


def _package(training: JsonObject, report: Report) -> JsonObject:
    uris = [uri for uri in training.get("packageUris", ()) if uri.startswith("gs://")]
    local = [uri for uri in training.get("packageUris", ()) if not uri.startswith("gs://")]
    if local or not uris:
        message = (
            f"{', '.join(local) or 'missing'}; gcloud built and uploaded it: build a source distribution, copy it to "
            f"Cloud Storage and replace {_PACKAGE_PLACEHOLDER} with its address"
        )
        report.add("decide", "packageUris", message)
        uris.append(_PACKAGE_PLACEHOLDER)
    if not training.get("pythonModule"):
        report.add("decide", "pythonModule", "missing; replace PYTHON_MODULE with the module that starts your program")
    return {"package_uris": uris, "python_module": training.get("pythonModule") or "PYTHON_MODULE"}


def read_job(document: Any, command: Command | None, report: Report) -> JsonObject:
    """Return the Job with its fields in camelCase; the flags of the command line replace those of the file.

    Args:
        document: The content of the config.yaml; None without one.
        command: The command line; None without one.
        report: Gets a remark for every key that is not spelt exactly right, replaced or not converted.

    Raises:
        LegacyInputError: There are unknown keys or values of the wrong type; it names them all.
    """
    if document is None and command is None:
        raise LegacyInputError(["nothing to convert: give a config.yaml, a command line after ' -- ', or both"])
    job = {} if document is None else _read(document, report)
    if document is not None and not job.get("trainingInput"):
        raise LegacyInputError(["the config has no fields under trainingInput; expected a training job"])
    if command is not None:
        job = _merged(job, _read(command.document, report), "", report)
    _note_not_converted(job["trainingInput"], "", report)
    return job


def _read(document: Any, report: Report) -> JsonObject:
    if not isinstance(document, Mapping):
        raise LegacyInputError([f"the config contains {quote(document)}; expected trainingInput: with its fields"])
    if _VERTEX & {snake(key) for key in document if isinstance(key, str)}:
        raise LegacyInputError(["this is already a Vertex AI job; run `python -m localvertex machines check` on it"])
    if misplaced := [str(key) for key in document if key in MESSAGES["TrainingInput"]]:
        raise LegacyInputError([f"{key} belongs under trainingInput: ({key})" for key in misplaced])
    reading = Reading(messages=MESSAGES)
    job = reading.message(document, "Job", "")
    if reading.findings:
        raise LegacyInputError([f"{found.path}: {found.message}" for found in reading.findings])
    for name, key in reading.spelling.items():
        message = f"{key} is read as {name}; the service ignored it, so check which machines the job really used"
        report.add("doubtful", name, message)
    return job


def _merged(old: JsonObject, new: JsonObject, path: str, report: Report) -> JsonObject:
    made = dict(old)
    for name, value in new.items():
        here, before = f"{path}.{name}" if path else name, old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            made[name] = _merged(before, value, here, report)
            continue
        made[name] = value
        if before not in (None, value):
            found = f"{quote(before)} from the file is replaced with {quote(value)} from the command line"
            report.add("changed", here.removeprefix("trainingInput."), found)
    return made


def _note_not_converted(fields: JsonObject, path: str, report: Report) -> None:
    for name, value in fields.items():
        if name in NOT_CONVERTED:
            kind, reason = NOT_CONVERTED[name]
            report.add(kind, f"{path}{name}", reason)
        elif isinstance(value, dict):
            _note_not_converted(value, f"{path}{name}.", report)
