"""No file causes a traceback, and the types of the API accept every job that passes."""

import warnings
from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.strategies import SearchStrategy
from machines_tests.conftest import TODAY, pool

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import read
from localvertex._base.userinput.spelling import camel, snake
from localvertex.machines import check_custom_job, check_pipeline, check_worker_pools
from localvertex.machines.document import examine
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.schema import ENUMS, MESSAGES
from localvertex.machines.job.shape import Reading
from localvertex.machines.legacy.command_line import read_command
from localvertex.machines.legacy.convert import convert
from localvertex.machines.legacy.fields import MESSAGES as LEGACY, ROLES
from localvertex.machines.legacy.report import LegacyInputError, Report

RELAXED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.binary(max_size=6), st.dates()
)
FIELD_NAMES = sorted({name for fields in MESSAGES.values() for name in fields})
keys = st.one_of(st.sampled_from(FIELD_NAMES), st.sampled_from(FIELD_NAMES).map(camel), scalars)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=25
)


def _scalar(kind: str) -> SearchStrategy[Any]:
    """Values of the right type for a field, and some of the wrong type."""
    right = {
        "string": st.sampled_from(["europe-docker.pkg.dev/p/r/t:1", "n1-standard-8", "x", ""]),
        "bool": st.booleans(),
        "int32": st.sampled_from([0, 1, 2, 4, 100, "1", 1.0]),
        "int64": st.sampled_from([1, 2, "1", 1.0]),
        "duration": st.sampled_from(["604800s", "1.5s", "86400s"]),
        "map": st.dictionaries(st.sampled_from("ab"), st.text(max_size=3), max_size=2),
        "output": scalars,
    }[kind]
    return right | scalars if kind == "output" else st.one_of(*[right] * 6, scalars)


def message(kind: str, depth: int = 0) -> SearchStrategy[Any]:
    """A message with any of its fields, in snake_case or camelCase, and some wrong values."""
    fields = {}
    for name, inner in MESSAGES[kind].items():
        fields[name] = field(inner.removeprefix("*"), depth)
        if inner.startswith("*"):
            fields[name] = st.lists(fields[name], max_size=3)
    whole = st.fixed_dictionaries({}, optional=fields)
    return whole | whole.map(lambda value: {camel(key): inner for key, inner in value.items()})


def field(kind: str, depth: int) -> SearchStrategy[Any]:
    if kind in MESSAGES:
        return message(kind, depth + 1)
    if kind.startswith("enum:"):
        return st.one_of(*[st.sampled_from(list(ENUMS[kind[5:]]))] * 6, scalars)
    return _scalar(kind)


custom_jobs = message("CustomJob") | message("CustomJobSpec")


def assert_one_line(error: UserError) -> None:
    assert "\n" not in str(error)


def assert_problems(error: LegacyInputError) -> None:
    assert error.problems
    assert all("\n" not in problem for problem in error.problems)


def assert_findings(findings: Iterable[Finding]) -> None:
    assert all(isinstance(finding, Finding) and "\n" not in finding.message for finding in findings)


@RELAXED
@given(st.binary(max_size=400))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(data)
    try:
        assert_findings(examine(read(path), "bytes", region=None, today=TODAY).findings)
    except UserError as error:
        assert_one_line(error)


@RELAXED
@given(st.text(alphabet="-:[]{}&*!|>?#'\"\n\t ,.abNaN019~<=@`%\u00e9", max_size=200))
def test_any_yaml_like_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.yaml"
    path.write_text(text, "utf-8")
    try:
        document = read(path)
    except UserError as error:
        assert_one_line(error)
        return
    for use in (check_any, convert_any):
        use(document)


def check_any(document: Any) -> None:
    try:
        assert_findings(examine(document, "file", region="europe-west4", today=TODAY).findings)
    except UserError as error:
        assert_one_line(error)


def convert_any(document: Any) -> None:
    try:
        yaml.dump(convert(document, today=TODAY).job, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    except LegacyInputError as error:
        assert_problems(error)


@RELAXED
@given(anything)
def test_any_value(value: Any) -> None:
    check_any(value)
    check_any({"worker_pool_specs": value})
    check_any({"jobSpec": value})
    check_any([value, {"machine_spec": value}])
    assert_findings(check_worker_pools(value, today=TODAY))


@RELAXED
@given(anything)
def test_any_pipeline(value: Any) -> None:
    for spec in (
        {"root": value},
        {"root": {"dag": {"tasks": {"t": value}}}, "components": value, "deploymentSpec": value},
    ):
        assert_findings(check_pipeline(spec, today=TODAY))


LEGACY_NAMES = [
    *LEGACY["TrainingInput"],
    *(f"{role}Config" for role in ROLES),
    "count",
    "type",
    "imageUri",
    "acceleratorConfig",
]
legacy_values = st.one_of(
    scalars,
    st.sampled_from(["CUSTOM", "BASIC", "standard_gpu", "cloud_tpu", "n1-standard-4", "nvidia-tesla-t4", "2.11", "5s"]),
)
legacy = st.recursive(
    legacy_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(LEGACY_NAMES), inner, max_size=6),
    max_leaves=20,
)


@RELAXED
@given(st.dictionaries(st.sampled_from(sorted(LEGACY["TrainingInput"])), legacy, max_size=8))
def test_any_config(training: dict[str, Any]) -> None:
    convert_any({"trainingInput": training})


WORDS = (
    "gcloud ai-platform jobs submit training j --region --region=x -- --worker-count=2 --scale-tier=custom ... $JOB "
    "--worker-machine-type=n1-standard-4 --master-machine-type=standard_v100 --master-accelerator --labels=a "
    "count=1,type=nvidia-tesla-k80"
).split()


@RELAXED
@given(st.lists(st.sampled_from(["", *WORDS]) | st.text(max_size=8), max_size=14))
def test_any_command_line(words: list[str]) -> None:
    report = Report()
    try:
        command = read_command(words, report)
        convert(None, command, report=report, today=TODAY)
    except LegacyInputError as error:
        assert_problems(error)


def normalised(job: dict[str, Any]) -> dict[str, Any]:
    """Return the job as `check` reads it, in the spelling of the API's Python types."""
    reading = Reading()
    kind = "CustomJob" if "job_spec" in {snake(key) for key in job} else "CustomJobSpec"
    fields = reading.message(job, kind, "")
    return fields if kind == "CustomJob" else {"job_spec": fields}


@pytest.mark.slow
def test_what_passes_is_accepted_by_the_api_types() -> None:
    """No job passes that `aiplatform_v1.CustomJob` rejects, and the table of fields equals that of the API."""
    with warnings.catch_warnings():
        # google-cloud packages deprecate their own dependencies on import.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        from google.cloud import aiplatform_v1

    assert_same_schema(aiplatform_v1.CustomJob.pb().DESCRIPTOR)
    seen = {"passed": 0, "rejected": 0}

    @settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(custom_jobs)
    def rejects_what_the_api_rejects(job: Any) -> None:
        has_errors = any(f.severity == "error" for f in check_custom_job(job | {}, today=TODAY))
        spec = job.get("job_spec", job.get("jobSpec", job))
        # No job passes without machines; this test is about the other fields.
        key = "workerPoolSpecs" if "workerPoolSpecs" in spec else "worker_pool_specs"
        repaired = spec | {key: [pool()]} if isinstance(spec, dict) else spec
        for candidate, errors in ((job, has_errors), (repaired, None)):
            if errors is None:
                errors = any(f.severity == "error" for f in check_custom_job(candidate, today=TODAY))
            if not errors:
                aiplatform_v1.CustomJob(normalised(candidate))
            seen["rejected" if errors else "passed"] += 1

    rejects_what_the_api_rejects()
    assert min(seen.values()) > 100, seen


def assert_same_schema(descriptor: Any) -> None:
    kind = descriptor.name
    theirs = {}
    for one in descriptor.fields:
        inner = one.message_type
        if inner is not None and inner.GetOptions().map_entry:
            theirs[one.name] = "map"
        elif inner is not None:
            name = {"Duration": "duration", "Timestamp": "output", "Status": "output"}.get(inner.name, inner.name)
            theirs[one.name] = "*" * one.is_repeated + name
            if name in MESSAGES:
                assert_same_schema(inner)
        elif one.enum_type is not None:
            name = {"Type": "ReservationType"}.get(one.enum_type.name, one.enum_type.name)
            theirs[one.name] = f"enum:{name}"
            if name in ENUMS:
                assert {value.name: value.number for value in one.enum_type.values} == ENUMS[name]
        else:
            kinds = {one.TYPE_STRING: "string", one.TYPE_BOOL: "bool", one.TYPE_INT32: "int32", one.TYPE_INT64: "int64"}
            theirs[one.name] = "*" * one.is_repeated + kinds[one.type]
    known = MESSAGES[kind]
    assert set(known) == set(theirs)
    assert {name: kind for name, kind in known.items() if kind != "output"} == {
        name: kind for name, kind in theirs.items() if known[name] != "output"
    }
