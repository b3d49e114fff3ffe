"""Contexts, executions and artifacts without a server: relations, updates, filters, and records that are damaged."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status
from localvertex.commands.service import Service

LOCATION = Location(project="p", region="r")

ROOT = "projects/p/locations/r/metadataStores/default"

KINDS = {"Context": "contexts", "Execution": "executions", "Artifact": "artifacts"}

Ask = Callable[..., dict[str, Any]]


def asking(work_dir: Path, project: str = "p") -> Ask:
    """Return a function that calls a method by its name, as the API's routes do."""
    every = Service(work_dir, time_factor=1, log=print).collections
    stores = "metadataStores/{store:id}/"
    methods = dict(every["metadataStores"])
    for kind, collection in KINDS.items():
        methods |= {f"{name}{kind}": method for name, method in every[stores + collection].items()}

    def ask(name: str, node_id: str = "", body: Any = None, *, store: str = "default", **query: str) -> dict[str, Any]:
        location = Location(project=project, region="r")
        method = methods[name][2]
        return method(
            Call(
                location=location,
                resource_id=node_id,
                parents={"store": store},
                query=query,
                body=body or {},
            )
        )

    return ask


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Call the methods of a server."""
    return asking(tmp_path)


def names(ask: Ask, kind: str, **query: str) -> list[str]:
    """Return the ids that a list contains, in alphabetical order."""
    (found,) = ask(f"list{kind}", **query).values()
    return sorted(each["name"].rpartition("/")[2] for each in found)


def refused(ask: Ask, *call: Any, **query: str) -> tuple[str, str]:
    """Return the status and the text of a refusal."""
    with pytest.raises(ApiError) as caught:
        ask(*call, **query)
    return caught.value.status.name, str(caught.value)


def test_the_default_metadata_store_exists_and_no_other(ask: Ask) -> None:
    assert ask("get", "default")["name"] == ROOT
    assert ask("listContext") == {"contexts": []}
    other = ROOT.replace("default", "second")
    assert refused(ask, "get", store="second") == ("NOT_FOUND", f"{other} is not found")
    for name in ("listContext", "createContext"):
        assert refused(ask, name, store="second") == ("NOT_FOUND", f"{other} is not found")


def test_what_is_deleted_leaves_no_relation_to_its_successor(ask: Ask) -> None:
    for name in ("parent", "child"):
        ask("createContext", contextId=name)
    ask("createArtifact", artifactId="a")
    ask("createExecution", executionId="e")
    artifact, execution = f"{ROOT}/artifacts/a", f"{ROOT}/executions/e"
    ask("addChildrenContext", "parent", {"childContexts": [f"{ROOT}/contexts/child"]})
    ask("addContext", "child", {"artifacts": [artifact], "executions": [execution]})
    ask("addEventsExecution", "e", {"events": [{"artifact": artifact, "type": "INPUT"}]})
    assert len(ask("lineageContext", "child")["events"]) == 1
    for kind, name in (("Context", "parent"), ("Artifact", "a"), ("Execution", "e")):
        ask(f"delete{kind}", name)
        ask(f"create{kind}", **{f"{kind.lower()}Id": name})
    assert ask("getContext", "child").get("parentContexts", []) == []
    assert ask("lineageExecution", "e")["events"] == []
    assert ask("lineageContext", "child") == {"artifacts": [], "executions": [], "events": []}
    assert names(ask, "Artifact", filter=f'in_context("{ROOT}/contexts/child")') == []


def test_concurrent_changes_lose_nothing(ask: Ask) -> None:
    ask("createContext", contextId="c")

    def add(number: int) -> None:
        ask("createArtifact", artifactId=f"a{number}")
        ask("addContext", "c", {"artifacts": [f"{ROOT}/artifacts/a{number}"]})
        while not patched(number):
            pass

    def patched(number: int) -> bool:
        present = ask("getContext", "c")
        metadata = present.get("metadata", {}) | {f"k{number}": number}
        try:
            ask("patchContext", "c", {"metadata": metadata, "etag": present["etag"]})
        except ApiError as error:
            if error.status is not Status.ABORTED:
                raise
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(ask("getContext", "c")["metadata"]) == 40
    assert len(names(ask, "Artifact", filter=f'in_context("{ROOT}/contexts/c")')) == 40


def test_an_update_of_an_old_state_is_refused_in_the_words_that_the_sdk_reads(ask: Ask) -> None:
    old = ask("createContext", body={"displayName": "one"}, contextId="c")
    new = ask("patchContext", "c", {"displayName": "two", "etag": old["etag"]})
    assert new["etag"] > old["etag"]
    text = f"Specified Context `etag`: `{old['etag']}` does not match server `etag`: `{new['etag']}`"
    assert refused(ask, "patchContext", "c", {"displayName": "three", "etag": old["etag"]}) == ("ABORTED", text)
    assert refused(ask, "deleteContext", "c", etag=old["etag"]) == ("ABORTED", text)
    assert ask("getContext", "c") == new
    # A relation is no update: the SDK goes on with the etag that it has.
    ask("createContext", contextId="parent")
    ask("addChildrenContext", "parent", {"childContexts": [new["name"]]})
    ask("patchContext", "c", {"displayName": "four", "etag": new["etag"]})


def test_an_update_changes_the_fields_that_it_contains(ask: Ask) -> None:
    given = {"displayName": "d", "description": "x", "metadata": {"a": 1}, "schemaTitle": "system.Dataset"}
    ask("createArtifact", body=given, artifactId="a")
    changed = ask("patchArtifact", "a", {"displayName": "e"}, updateMask="*")
    assert (changed["displayName"], changed["description"], changed["metadata"]) == ("e", "x", {"a": 1.0})
    changed = ask("patchArtifact", "a", {"uri": "gs://b", "schemaTitle": "other", "metadata": {"b": 2}})
    assert (changed["uri"], changed["metadata"], changed["schemaTitle"]) == ("gs://b", {"b": 2.0}, "system.Dataset")
    assert refused(ask, "patchArtifact", "a", {"displayName": "f"}, updateMask="uri")[0] == "INVALID_ARGUMENT"
    assert ask("getArtifact", "a") == changed
    assert refused(ask, "patchArtifact", "b", {})[0] == "NOT_FOUND"
    assert ask("getArtifact", "a")["schemaVersion"] == "0.0.1"


def test_a_context_is_never_its_own_ancestor(ask: Ask) -> None:
    every = [f"c{number}" for number in range(12)]
    for each in every:
        ask("createContext", contextId=each)
    ask("addChildrenContext", "c0", {"childContexts": [f"{ROOT}/contexts/c1"]})
    ask("addChildrenContext", "c1", {"childContexts": [f"{ROOT}/contexts/c2"]})
    for child in ("c0", "c1", "c2"):
        assert (
            "its own ancestor"
            in refused(ask, "addChildrenContext", "c2", {"childContexts": [f"{ROOT}/contexts/{child}"]})[1]
        )
    for parent in every[:10]:
        ask("addChildrenContext", parent, {"childContexts": [f"{ROOT}/contexts/c11"]})
    assert "more than 10" in refused(ask, "addChildrenContext", "c10", {"childContexts": [f"{ROOT}/contexts/c11"]})[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('schema_title="system.Dataset"', ["a", "b"]),
        ('(schema_title="system.Model" OR schema_title="x") AND uri="gs://b/c"', ["c"]),
        (f'in_context("{ROOT}/contexts/one")', ["a", "c"]),
        (f'schema_title="system.Dataset" AND in_context("{ROOT}/contexts/one")', ["a"]),
        (f'in_context("{ROOT}/contexts/one") AND in_context("{ROOT}/contexts/two")', ["c"]),
        (f'in_context("{ROOT}/contexts/two") OR display_name="first"', ["a", "b", "c"]),
        (f'NOT in_context("{ROOT}/contexts/one")', ["b"]),
        ('in_context("elsewhere")', []),
        ('create_time>"2020-01-01T00:00:00Z" AND state=LIVE', ["b"]),
    ],
)
def test_filters_of_artifacts(ask: Ask, text: str, expected: list[str]) -> None:
    dataset = {"schemaTitle": "system.Dataset"}
    given = {
        "a": dataset | {"displayName": "first", "metadata": {"rows": 3}},
        "b": dataset | {"state": "LIVE", "metadata": {"name": "x", "input:n": 2}},
        "c": {"schemaTitle": "system.Model", "uri": "gs://b/c", "metadata": {"good": True, "deep": {"k": "v"}}},
    }
    for name, body in given.items():
        ask("createArtifact", body=body, artifactId=name)
    for name, members in (("one", "ac"), ("two", "bc")):
        ask("createContext", contextId=name)
        artifacts = [f"{ROOT}/artifacts/{each}" for each in members]
        ask("addContext", name, {"artifacts": artifacts})
    assert names(ask, "Artifact", filter=text) == expected


def test_filters_of_contexts(ask: Ask) -> None:
    for name in ("grand", "parent", "child", "other"):
        ask("createContext", body={"schemaTitle": "system.Experiment"}, contextId=name)
    of = {name: f"{ROOT}/contexts/{name}" for name in ("grand", "parent", "child")}
    ask("addChildrenContext", "grand", {"childContexts": [of["parent"]]})
    ask("addChildrenContext", "parent", {"childContexts": [of["child"]]})
    title = 'schema_title="system.Experiment"'
    assert names(ask, "Context", filter=f'({title}) AND parent_contexts:"{of["parent"]}"') == ["child"]
    assert names(ask, "Context", filter=f'parent_contexts: "{of["parent"]}","{of["grand"]}"') == ["child", "parent"]
    for text in ("in_context(x)", "metadata.rows.number_value=3", f'child_contexts:"{of["parent"]}"'):
        assert refused(ask, "listContext", filter=text)[0] == "INVALID_ARGUMENT"


def test_projects_do_not_mix(ask: Ask, tmp_path: Path) -> None:
    ask("createContext", body={"displayName": "mine"}, contextId="c")
    other = asking(tmp_path, "q")
    assert other("listContext") == {"contexts": []}
    other("createContext", body={"displayName": "theirs"}, contextId="c")
    other("deleteContext", "c")
    assert ask("getContext", "c")["displayName"] == "mine"
    foreign = {"childContexts": ["projects/q/locations/r/metadataStores/default/contexts/c"]}
    assert refused(ask, "addChildrenContext", "c", foreign)[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 3}', '{"etag": 1}', '{"metadata": []}', '{"_events": [{}]}'])
def test_a_damaged_record_hurts_no_other(ask: Ask, tmp_path: Path, text: str) -> None:
    for kind, collection in KINDS.items():
        for name in ("good", "bad"):
            ask(f"create{kind}", body={"schemaTitle": "x"}, **{f"{kind.lower()}Id": name})
        path = tmp_path / "api/metadata/p/r/metadataStores/default" / collection / "bad.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | json.loads(text)) if text[1:2] == '"' else text)
    for kind in KINDS:
        assert names(ask, kind) == ["bad", "good"]
        assert names(ask, kind, filter='schema_title="x"') == ["good"]
        assert refused(ask, f"get{kind}", "bad")[0] == "FAILED_PRECONDITION"
    for _ in range(2):
        ask("addEventsExecution", "good", {"events": [{"artifact": f"{ROOT}/artifacts/good", "type": "OUTPUT"}]})
    assert len(ask("lineageExecution", "good")["events"]) == 1
    missing = {"events": [{"artifact": f"{ROOT}/artifacts/none", "type": "INPUT"}]}
    assert refused(ask, "addEventsExecution", "good", missing)[0] == "NOT_FOUND"
    for kind in KINDS:
        ask(f"delete{kind}", "bad")
        assert names(ask, kind) == ["good"]
