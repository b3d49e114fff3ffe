"""The reader of command lines: `gcloud ai-platform jobs submit training` or `gcloud ml-engine ...`."""

import argparse
import shlex
from dataclasses import dataclass
from typing import NoReturn

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import closest, quote
from localvertex.machines.legacy.report import LegacyInputError, Report

_SERVICES = {"ai-platform", "ml-engine"}
_ROLE_FLAGS = {"master": "master", "worker": "worker", "parameter-server": "parameterServer"}
"""Task type in the names of flags -> task type in the fields of a config."""
_ROLE_FIELDS = {
    "machine-type": "Type",
    "count": "Count",
    "image-uri": "Config.imageUri",
    "accelerator": "Config.acceleratorConfig",
}
"""End of a flag -> end of its field, both after the task type."""
_FIELDS = {
    "--job-dir": "jobDir",
    "--module-name": "pythonModule",
    "--network": "network",
    "--python-version": "pythonVersion",
    "--region": "region",
    "--runtime-version": "runtimeVersion",
    "--scale-tier": "scaleTier",
    "--service-account": "serviceAccount",
    "--tpu-tf-version": "workerConfig.tpuTfVersion",
} | {
    f"--{flag}-{end}": f"{role}{field}"
    for flag, role in _ROLE_FLAGS.items()
    for end, field in _ROLE_FIELDS.items()
    # There is one master.
    if (role, field) != ("master", "Count")
}
"""Flag -> path of its field below trainingInput."""
_OTHERS = (
    "--config --kms-key --kms-keyring --kms-location --kms-project --labels --package-path --packages "
    "--use-chief-in-tf-config"
).split()
_OF_GCLOUD = "--account --format --impersonate-service-account --project --staging-bucket --verbosity".split()
_SWITCHES_OF_GCLOUD = "--async --log-http --no-async --no-stream-logs --quiet --stream-logs -q".split()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LegacyInputError([f"{message} (a shell variable that is not set?)"])


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command line: the address of its config file, and its flags as the content of a second file."""

    config: str
    document: JsonObject


def read_command(words: list[str], report: Report) -> Command:
    """Read a command line.

    Args:
        words: The words as a shell passes them, or a single word with the whole line as it was pasted.
        report: Gets a remark for every flag that is not a property of the job.

    Raises:
        LegacyInputError: It is another command or has unknown flags.
    """
    if len(words) == 1:
        try:
            words = shlex.split(words[0].replace("\\\n", " "))
        except ValueError as error:
            raise LegacyInputError([f"the command line cannot be split into words: {error}"]) from None
    end = words.index("--") if "--" in words else len(words)
    found, unknown = _parser().parse_known_intermixed_args(words[:end])
    job = _name(found.words, unknown)
    flags = {name: value for name, value in vars(found).items() if value and name != "words"}
    for name in [*_OF_GCLOUD, *_SWITCHES_OF_GCLOUD]:
        if flags.pop(name, None):
            report.add("dropped", name, "a setting of gcloud and not of the job")
    training: JsonObject = {}
    for flag, path in _FIELDS.items():
        if value := flags.get(flag):
            block, _, name = path.rpartition(".")
            (training.setdefault(block, {}) if block else training)[name] = (
                _accelerator(flag, value) if name == "acceleratorConfig" else value
            )
    if packages := [*filter(None, [*flags.get("--packages", "").split(","), flags.get("--package-path")])]:
        training["packageUris"] = packages
    if "--kms-key" in flags:
        training["encryptionConfig"] = {"kmsKeyName": _key(flags)}
    if "--use-chief-in-tf-config" in flags:
        training["useChiefInTfConfig"] = flags["--use-chief-in-tf-config"].casefold() in ("true", "yes")
    if "--enable-web-access" in flags:
        training["enableWebAccess"] = True
    if end < len(words):
        training["args"] = words[end + 1 :]
    document = {"jobId": job, "labels": _pairs("--labels", flags.get("--labels", "")), "trainingInput": training}
    return Command(config=flags.get("--config", ""), document=document)


def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for flag in [*_FIELDS, *_OTHERS, *_OF_GCLOUD]:
        parser.add_argument(flag, dest=flag)
    for flag in ["--enable-web-access", *_SWITCHES_OF_GCLOUD]:
        parser.add_argument(flag, dest=flag, action="store_true")
    return parser


def _name(words: list[str], unknown: list[str]) -> str:
    """Return the name of the job.

    Raises:
        LegacyInputError: It is another command, or has more words or flags than it can.
    """
    end = words.index("training") + 1 if "training" in words else 0
    if words[end - 3 : end] != ["jobs", "submit", "training"] or not _SERVICES & set(words[:end]):
        found = quote(" ".join(words[:4]))
        raise LegacyInputError([f"the command is {found}; expected `gcloud ai-platform jobs submit training`"])
    problems = []
    for flag in unknown:
        near = closest(flag, [*_FIELDS, *_OTHERS])
        hint = f"did you mean {near[0]}?" if near else "arguments of your own program go after ' -- '"
        problems.append(f"{quote(flag)} is not a flag of `gcloud ai-platform jobs submit training`; {hint}")
    if words[end + 1 :]:
        extra = quote(" ".join(words[end + 1 :]))
        problems.append(f"unexpected {extra} after the job's name; arguments of your own program go after ' -- '")
    if problems:
        raise LegacyInputError(problems)
    return "".join(words[end:])


def _accelerator(flag: str, text: str) -> dict[str, str]:
    pairs = _pairs(flag, text)
    if set(pairs) != {"count", "type"}:
        raise LegacyInputError([f"{flag} is {quote(text)}; expected e.g. count=4,type=nvidia-tesla-t4"])
    return pairs


def _pairs(flag: str, text: str) -> dict[str, str]:
    parts = [part for part in text.split(",") if part]
    if not all("=" in part for part in parts):
        raise LegacyInputError([f"{flag} is {quote(text)}; expected NAME=VALUE pairs separated by commas"])
    return dict(part.partition("=")[::2] for part in parts)


def _key(flags: dict[str, str]) -> str:
    if "/" in flags["--kms-key"]:
        return flags["--kms-key"]
    parts = [flags.get(f"--kms-{part}", "") for part in ("project", "location", "keyring", "key")]
    if not all(parts):
        raise LegacyInputError(["--kms-key needs --kms-project, --kms-location and --kms-keyring; give the full key"])
    return "projects/{}/locations/{}/keyRings/{}/cryptoKeys/{}".format(*parts)
