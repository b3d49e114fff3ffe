"""500 hostile requests with a fixed seed: whatever arrives, the server answers with a code of the API and stays up."""

import copy
import http.client
import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from vertex_testing.server import PARENT, Server

NUM_REQUESTS = 500

SEED = 13

VALUES: list[Any] = [
    *[None, True, -1, 0, 2**31, 2**63, 2**64, 1e308, 0.5, "", "x", "*", "0", "-1", "NaN", "gs://../../x", "gs://"],
    *["../../etc/passwd", "/dev/full", "\x00", "a\x00b", "\ud800", "\u202e", "\n", "{{$.x}}", "%s%n", "projects/p"],
    *["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1969-01-01T00:00:00Z", "2024-02-30T00:00:00Z"],
    *["9" * 5000 + " * * * *", "* * * * 9", "0 0 30 2 *", "*/0 * * * *", "TZ=/etc/passwd * * * * *", "TZ= * * * * *"],
    *[[], {}, [[]], [None], {"": ""}, {"a": None}, {"name": 3}, "y" * 20000, "JOB_STATE_RUNNING", "604800.5s", "-1s"],
]
"""What is put at any place of a request; `\\ud800` is half of a character."""

METHODS = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD"]

QUERIES = ["filter", "orderBy", "pageSize", "pageToken", "readMask", "updateMask", "pipelineJobId", "$alt", "x"]

QUERIES += ["contextId", "executionId", "artifactId", "maxHops", "etag", "allowMissing"]

TEXTS = [
    *[
        "",
        "*",
        "name",
        "display_name",
        "create_time desc",
        "a=b",
        'display_name:"x*"',
        "(" * 60,
        "NOT" * 9,
        "-1",
        "1e9",
    ],
    *[
        'name="' + "\\" * 9,
        "create_time>9999-99-99",
        "labels.x=1 OR state:*",
        'in_context("x") AND metadata.a.number_value>1',
        'parent_contexts:"x","y"',
        "\x00",
        "W10=",
        "bnVsbA==",
        "[]",
        "9" * 5000,
    ],
]


@pytest.fixture
def messages(light_pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return a valid body for each collection; their jobs end at once."""
    job = {"displayName": "fuzz", "labels": {"a": "b"}, "pipelineSpec": light_pipeline}
    job["runtimeConfig"] = {"parameterValues": {"x": "z"}, "gcsOutputDirectory": "gs://b"}
    container = {"imageUri": "python:3.11", "command": ["true"], "args": [], "env": [{"name": "A", "value": "b"}]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    scheduling = {"timeout": "60s", "disableRetries": True}
    request = {"parent": PARENT, "pipelineJob": job}
    times = {"startTime": "2030-01-01T00:00:00Z", "endTime": "2031-01-01T00:00:00Z"}
    times |= {"maxRunCount": "3", "maxConcurrentRunCount": "1", "allowQueueing": True}
    spec = {"workerPoolSpecs": [pool], "scheduling": scheduling, "baseOutputDirectory": {"outputUriPrefix": "gs://b/o"}}
    model = {"displayName": "model", "labels": {"a": "b"}, "versionAliases": ["best"], "artifactUri": ""}
    return {
        "pipelineJobs": job,
        "customJobs": {"displayName": "fuzz", "jobSpec": spec, "labels": {"a": "b"}},
        **_other_jobs(spec),
        "schedules": {
            "displayName": "fuzz",
            "cron": "0 3 * * *",
            "createPipelineJobRequest": request,
            **times,
        },
        "models:upload": {"model": model, "parentModel": "", "modelId": ""},
        **_metadata(),
    }


def _other_jobs(spec: dict[str, Any]) -> dict[str, Any]:
    """Return valid bodies for jobs that run custom jobs or containers."""
    container = {"imageUri": "serving:1", "command": ["false"], "ports": [{"containerPort": 8080}]}
    model = {"displayName": "model", "containerSpec": container, "versionAliases": ["best"]}
    units = {"parameterId": "units", "integerValueSpec": {"minValue": "1", "maxValue": "3"}}
    rate = {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 0.2}}
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": [units, rate]}
    machines = {"machineSpec": {"machineType": "n1-standard-4"}, "startingReplicaCount": 1}
    return {
        "trainingPipelines": {
            "displayName": "fuzz",
            "trainingTaskDefinition": "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
            "trainingTaskInputs": spec,
            "modelToUpload": model,
            "modelId": "",
            "parentModel": "",
            "labels": {"a": "b"},
        },
        "hyperparameterTuningJobs": {
            "displayName": "fuzz",
            "studySpec": study | {"algorithm": "RANDOM_SEARCH"},
            "trialJobSpec": spec,
            "maxTrialCount": 1,
            "parallelTrialCount": 1,
            "maxFailedTrialCount": 1,
        },
        "batchPredictionJobs": {
            "displayName": "fuzz",
            "model": "",
            "unmanagedContainerModel": {"containerSpec": container},
            "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://bucket/*"]}},
            "outputConfig": {"predictionsFormat": "jsonl", "gcsDestination": {"outputUriPrefix": "gs://bucket/out"}},
            "dedicatedResources": machines,
            "modelParameters": {"a": [1]},
            "manualBatchTuningParameters": {"batchSize": 2},
        },
    }


def _metadata() -> dict[str, Any]:
    """Return valid bodies for the collections of a metadata store, which the runs create."""
    store = f"{PARENT}/metadataStores/default"
    node = {"displayName": "n", "schemaTitle": "system.Run", "metadata": {"a": {"b": 1}}, "labels": {"a": "b"}}
    node |= {"etag": "", "description": "d"}
    members = {"artifacts": [f"{store}/artifacts/x"], "executions": [f"{store}/executions/x"]}
    event = {"artifact": f"{store}/artifacts/x", "type": "INPUT", "labels": {"a": "b"}}
    return {
        "metadataStores/default/contexts": node,
        "metadataStores/default/executions": node | {"state": "RUNNING"},
        "metadataStores/default/artifacts": node | {"state": "LIVE", "uri": "gs://b"},
        "metadataStores/default/contexts/x:addContextArtifactsAndExecutions": members,
        "metadataStores/default/contexts/x:addContextChildren": {"childContexts": [f"{store}/contexts/y"]},
        "metadataStores/default/executions/x:addExecutionEvents": {"events": [event]},
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a message."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def damaged(message: Any, chance: random.Random) -> Any:
    """Return a copy in which one to three values are hostile or missing."""
    result = copy.deepcopy(message)
    for _ in range(chance.randint(1, 3)):
        found = list(places(result))
        # Places near the root are as likely as those in the pipeline, which is much larger.
        found = [each for each in found if len(each) <= chance.randint(1, 8)] or [("x",)]
        *parents, last = chance.choice(found)
        target = result
        for key in parents:
            target = target[key]
        if chance.random() < 0.2 and isinstance(target, dict):
            target.pop(last, None)
        else:
            target[last] = copy.deepcopy(chance.choice(VALUES))
    return result


class Fuzzer:
    """Builds requests; ids that the server has returned are used again."""

    def __init__(self, messages: dict[str, Any]) -> None:
        self._messages, self._chance = messages, random.Random(SEED)
        self.ids = ["1", "x", "a%00b", "%2e%2e", "x@default", "@", "%ff", "..", "x:y", "%F0%9F%98%80", "a" * 3000]

    def request(self) -> tuple[str, str, bytes]:
        """Return method, path with query, and body."""
        chance = self._chance
        collection = chance.choice(list(self._messages))
        path, method = f"/{chance.choice(['v1', 'v1', 'v1beta1'])}/{PARENT}/{collection}", "POST"
        body = self._body(damaged(self._messages[collection], chance))
        if chance.random() < 0.5:
            method, base = chance.choice(METHODS), path.removesuffix(":upload")
            verbs = ["", "", ":cancel", ":pause", ":resume", ":listVersions", ":mergeVersionAliases", ":deleteVersion"]
            verbs += [":queryContextLineageSubgraph", ":addContextChildren"]
            path = f"{base}/{chance.choice(self.ids)}{chance.choice(verbs)}" if chance.random() < 0.7 else base
        if chance.random() < 0.1:
            method, path = "GET", f"/runs/{chance.choice(self.ids)}/{chance.choice(self.ids)}"
        if chance.random() < 0.4:
            given = {chance.choice(QUERIES): chance.choice(TEXTS) for _ in range(2)}
            path += "?" + "&".join(f"{quote(name)}={quote(value)}" for name, value in given.items())
        return method, path, body

    def _body(self, message: Any) -> bytes:
        text = json.dumps(message).encode()
        if self._chance.random() < 0.15:
            position = self._chance.randrange(len(text))
            hostile = [b"\xff", b"[" * 500, b"NaN", b"-Infinity", b'"', b"", b"\x00", b'"a":1,"a":2', b"9" * 5000]
            text = text[:position] + self._chance.choice(hostile) + text[position + 1 :]
        return text


def test_no_request_is_an_internal_error(start_server: Callable[..., Server], messages: dict[str, Any]) -> None:
    server = start_server()
    fuzzer, codes, wrong = Fuzzer(messages), set(), []
    requests = [("GET", f"/v1/{PARENT}/{name}".removesuffix(":upload"), b"") for name in messages] + [("GET", "/", b"")]
    for index in range(NUM_REQUESTS):
        is_looking = index % 25 == 24 or index > NUM_REQUESTS - len(requests)
        method, path, body = requests[index % len(requests)] if is_looking else fuzzer.request()
        with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)) as connection:
            connection.request(method, path, body, {"Content-Type": "application/json"} | server.headers)
            answer = connection.getresponse()
            text = answer.read()
        codes.add(answer.status)
        if answer.status >= 500 and answer.status != 501:
            wrong.append((answer.status, method, path[:300], body[:2000], text[:500]))
        elif text and answer.headers["Content-Type"] == "application/json":
            name = str(json.loads(text).get("name", ""))
            fuzzer.ids += [name.rpartition("/")[2]] if name else []
    assert not wrong, f"{len(wrong)} answers: {wrong[:3]}"
    assert {200, 400, 404, 405} <= codes
    assert "Traceback" not in server.text
    assert server.process.poll() is None
