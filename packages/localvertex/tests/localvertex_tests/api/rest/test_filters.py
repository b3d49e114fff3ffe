"""Filters and pages of lists, without a server."""

from typing import Any

import pytest

from localvertex.api.rest import filters
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.listing import page

FIELDS = {"name", "displayName", "state", "labels", "createTime", "startedRunCount", "allowQueueing", "tags"}

LOCATION = Location(project="p", region="r")


def resource(number: int, **fields: Any) -> dict[str, Any]:
    """Build a resource; a larger number means a later creation time."""
    return {"name": LOCATION.child("things", str(number)), "createTime": f"2026-01-{number:02d}T12:00:00Z", **fields}


ONE = resource(
    1, displayName="train-a", state="RUNNING", labels={"team": "vision", "Cased": "x"}, startedRunCount="9", tags=["t"]
)
TWO = resource(
    2,
    displayName='say "hi" [x]',
    state="FAILED",
    startedRunCount="10",
    allowQueueing=True,
    labels={"a key": "a value"},
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [ONE, TWO]),
        ('display_name="train-a"', [ONE]),
        ("displayName = train-a", [ONE]),
        ('display_name="train-*"', [ONE]),
        ('display_name="*[x]"', [TWO]),
        (r'display_name="say \"hi\" [x]"', [TWO]),
        ('state!="RUNNING"', [TWO]),
        ("NOT state=RUNNING", [TWO]),
        ("-state=RUNNING", [TWO]),
        ("labels.team=vision", [ONE]),
        ("labels.Cased=x", [ONE]),
        ('started_run_count="9"', [ONE]),
        ('started_run_count="09"', []),
        ("labels:team", [ONE]),
        ("-labels:team", [TWO]),
        ("labels:*", [ONE, TWO]),
        ("tags:t", [ONE]),
        ("display_name:HI", [TWO]),
        # The service's own examples; with `*` it is a pattern of the whole name.
        ('display_name:"train-*"', [ONE]),
        ('display_name:"*HI*"', [TWO]),
        ('display_name:"rain*"', []),
        ('labels:"a key"', [TWO]),
        # Compared as numbers: as strings, "10" would come before "9".
        ("started_run_count>9", [TWO]),
        ("started_run_count<=9", [ONE]),
        ("allow_queueing=true", [TWO]),
        # Compared as times, in any zone.
        ('create_time>"2026-01-01T13:00:00+01:00"', [TWO]),
        ('create_time>="2026-01-01T13:00:00+01:00"', [ONE, TWO]),
        ("create_time<2026-01-02", [ONE]),
        # OR binds tighter than AND, and juxtaposition means AND.
        ("state=FAILED AND state=RUNNING OR display_name:hi", [TWO]),
        ("(state=FAILED AND state=RUNNING) OR display_name=train-a", [ONE]),
        ("state=RUNNING labels:team", [ONE]),
        ("state=RUNNING labels:other", []),
    ],
)
def test_a_filter_selects_resources(text: str, found: list[dict[str, Any]]) -> None:
    test = filters.parse(text, FIELDS)
    assert [each for each in (ONE, TWO) if test(each)] == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour=red", "unknown field 'colour'"),
        (".=x", "unknown field '.'"),
        ("state", "expected field, operator and value"),
        ("state=", "expected field, operator and value"),
        ("state=(", "expected a value"),
        ("(state=RUNNING", "'\\)' is missing"),
        ("state=RUNNING)", "unexpected '\\)'"),
        ('state="RUNNING', "cannot read"),
        ("state=RUNNING AND", "expected field, operator and value"),
        ("(" * 50 + "state=x" + ")" * 50, "nested too deeply"),
    ],
)
def test_a_malformed_filter_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        filters.parse(text, FIELDS)


def listed(resources: list[dict[str, Any]], **query: str) -> dict[str, Any]:
    return page(Call(location=LOCATION, query=query), "things", resources, fields=FIELDS)


def numbers(response: dict[str, Any]) -> list[int]:
    return [int(each["name"].rpartition("/")[2]) for each in response["things"]]


def test_pages_contain_everything_once_the_newest_first() -> None:
    resources = [resource(number) for number in range(1, 8)]
    seen, token = [], ""
    for size in (3, 3, 1):
        response = listed(resources, pageSize="3", pageToken=token)
        assert len(response["things"]) == size
        seen += numbers(response)
        token = response.get("nextPageToken", "")
        # Resources created meanwhile are newer, and shift nothing.
        resources.append(resource(20 + len(seen)))
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    assert token == ""


def test_a_page_begins_after_a_resource_that_was_deleted_meanwhile() -> None:
    resources = [resource(number, state="AB"[number % 2]) for number in range(1, 7)]
    for order, expected in (
        ("", [6, 5, 4, 3, 2, 1]),
        ("state", [6, 4, 2, 5, 3, 1]),
        ("state desc", [5, 3, 1, 6, 4, 2]),
    ):
        first = listed(resources, pageSize="2", orderBy=order)
        assert numbers(first) == expected[:2]
        kept = [each for each in resources if each not in first["things"]]
        second = listed(kept, pageSize="2", orderBy=order, pageToken=first["nextPageToken"])
        assert numbers(second) == expected[2:4]
        assert numbers(listed(kept, orderBy=order, pageToken=second["nextPageToken"])) == expected[4:]


def test_a_token_of_another_query_is_refused() -> None:
    resources = [resource(number) for number in range(1, 5)]
    token = listed(resources, pageSize="2")["nextPageToken"]
    with pytest.raises(ApiError, match="another filter or order"):
        listed(resources, pageSize="2", pageToken=token, filter="state=FAILED")
    with pytest.raises(ApiError, match="another filter or order"):
        listed(resources, pageSize="2", pageToken=token, orderBy="state")
    for wrong in ("x", "bnVsbA==", "W10=", "é", "W1sxXSwiIiwiIl0=", "W1tdLCIiLCIiXQ=="):
        with pytest.raises(ApiError, match="pageToken"):
            listed(resources, pageToken=wrong)


def test_order_other_locations_and_masks() -> None:
    resources = [resource(1, state="B"), resource(2, state="A"), resource(3, state="B")]
    assert numbers(listed(resources, orderBy="state, create_time desc")) == [2, 3, 1]
    assert numbers(listed(resources, orderBy="state desc,create_time")) == [1, 3, 2]
    with pytest.raises(ApiError, match="orderBy"):
        listed(resources, orderBy="state upwards")
    elsewhere = {"name": "projects/p/locations/other/things/9"}
    assert numbers(listed([*resources, elsewhere])) == [3, 2, 1]
    assert listed([ONE], readMask="display_name,labels.team")["things"] == [
        {"displayName": "train-a", "labels": {"team": "vision"}}
    ]
    assert listed([ONE], readMask="*")["things"] == [ONE]
    with pytest.raises(ApiError, match="readMask"):
        listed([], readMask="colour")
    with pytest.raises(ApiError, match="pageSize"):
        listed([ONE], pageSize="-1")


def test_a_mask_goes_through_the_elements_of_a_list() -> None:
    tasks = [{"taskName": "a", "execution": {"name": "x", "metadata": {"k": 1}}}, {"taskName": "b", "state": "FAILED"}]
    one = resource(1, tags=tasks)

    def masked(mask: str) -> Any:
        return listed([one], readMask=mask)["things"]

    assert masked("tags.task_name") == [{"tags": [{"taskName": "a"}, {"taskName": "b"}]}]
    assert masked("tags.execution.name,tags.state") == [{"tags": [{"execution": {"name": "x"}}, {"state": "FAILED"}]}]
    assert masked("tags.execution,tags.execution.name,name") == [
        {"name": one["name"], "tags": [{"execution": tasks[0]["execution"]}, {}]}
    ]
    assert masked("tags.taskName,tags") == [{"tags": tasks}]
