"""BigQuery for a step, from files that the user names for its queries and tables: `[step.NAME] bigquery`.

The answers of the REST API that google-cloud-bigquery reads, given in the step's own process: nothing is sent. What is
not named is refused, and noted for the proposal at the end of the run.

Standard library only, no import of this package, nothing newer than Python 3.7: a step may have its own interpreter.
"""

from __future__ import annotations  # noqa: TID251 - older interpreters also run this file

import base64
import csv
import datetime
import decimal
import json
import os
import re
import uuid
from urllib.parse import parse_qs, urlsplit

TYPE_CHECKING = False  # typing's own would be imported in every step
if TYPE_CHECKING:
    from typing import Any

VARIABLE, _FILE = "LOCALVERTEX_STEP", "bigquery.json"
"""The folder of the step, and the JSON file in it: files of rows by the text of a query or the name of a table."""

_PATH = re.compile(r"/bigquery/v2/projects/([^/]+)/(?:jobs|queries|datasets/([^/]+)/tables/([^/]+))(?:/([^/]+))?$")

_WHOLE_TABLE = re.compile(r"select \* from `?([\w.-]+)`?(?: limit (\d+))?;?", re.IGNORECASE)

_TABLE = re.compile(r"[\w-]+(?:\.[\w-]+)+")

_KINDS = (
    (bool, "BOOLEAN"),
    (int, "INTEGER"),
    (float, "FLOAT"),
    (decimal.Decimal, "NUMERIC"),
    (datetime.datetime, "DATETIME"),
    (datetime.date, "DATE"),
    (bytes, "BYTES"),
    (str, "STRING"),
)

_MAX_ROWS = 50_000
"""Rows in an answer; a client asks for the next page."""

_jobs: dict[str, tuple[dict[str, Any], list[list[Any]]]] = {}
"""The results of this process: schema and rows by the number of the job."""


class Unnamed(Exception):
    """No file is named for a query or a table, `name`, or it cannot be one; the text says what to do."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


def answer(method: str, address: str, body: Any) -> Any:
    """Return the JSON of the answer to a request.

    Raises:
        Unnamed: There is none.
    """
    url = urlsplit(address)
    query = {name: values[-1] for name, values in parse_qs(url.query).items()}
    found = _PATH.match(url.path)
    if found is None:
        raise Unnamed("only queries are answered, and the reading of tables")
    project, dataset, table, last = found.groups()
    if dataset and method == "GET":
        schema, rows = _jobs[table] if table in _jobs else _read(f"{project}.{dataset}.{table}")
        if last == "data":
            return _page(schema, rows, query)
        reference = {"projectId": project, "datasetId": dataset, "tableId": table}
        return {"tableReference": reference, "schema": schema, "numRows": str(len(rows)), "type": "TABLE"}
    if method == "POST" and not dataset and last is None:
        content = json.loads(body or b"{}")
        return _run(project, content, is_job=url.path.endswith("/jobs"))
    if method == "GET" and last in _jobs:
        if "/jobs/" in url.path:
            return _job(project, last, {"query": {"query": ""}})
        return _results(project, last, query)
    raise Unnamed("only queries are answered, and the reading of tables")


def _run(project: str, content: dict[str, Any], *, is_job: bool) -> dict[str, Any]:
    configuration = content.get("configuration", {"query": content}) if is_job else {"query": content}
    text = configuration.get("query", {}).get("query")
    if not text or configuration["query"].get("queryParameters"):
        raise Unnamed("only queries without parameters are answered")
    number = content.get("jobReference", {}).get("jobId") or str(uuid.uuid4())
    _jobs[number] = _jobs[_table_of(number)] = _read(text)
    if is_job:
        return _job(project, number, configuration)
    return _results(project, number, {"maxResults": str(content.get("maxResults", _MAX_ROWS))})


def _job(project: str, number: str, configuration: dict[str, Any]) -> dict[str, Any]:
    table = {"projectId": project, "datasetId": "_localvertex", "tableId": _table_of(number)}
    query = {**configuration["query"], "destinationTable": table}
    return {
        "kind": "bigquery#job",
        "id": f"{project}:local.{number}",
        "jobReference": {"projectId": project, "jobId": number, "location": "local"},
        "configuration": {**configuration, "jobType": "QUERY", "query": query},
        "status": {"state": "DONE"},
        "statistics": {"query": {"statementType": "SELECT", "totalBytesProcessed": "0"}},
    }


def _table_of(number: str) -> str:
    """Return the table into which a job writes; earlier clients read that."""
    return f"anon{number.replace('-', '')}"


def _results(project: str, number: str, query: dict[str, str]) -> dict[str, Any]:
    schema, rows = _jobs[number]
    reference = {"projectId": project, "jobId": number, "location": "local"}
    return {"jobReference": reference, "jobComplete": True, "schema": schema, **_page(schema, rows, query)}


def _page(schema: dict[str, Any], rows: list[list[Any]], query: dict[str, str]) -> dict[str, Any]:
    start = int(query.get("pageToken") or query.get("startIndex") or 0)
    end = start + min(int(query.get("maxResults") or _MAX_ROWS), _MAX_ROWS)
    chosen = query.get("selectedFields", "").split(",")
    wanted = [number for number, each in enumerate(schema["fields"]) if chosen == [""] or each["name"] in chosen]
    page = [{"f": [{"v": _encode(row[number])} for number in wanted]} for row in rows[start:end]]
    # A client that asks for no rows takes an empty list for all of them.
    found = {"rows": page} if start < end else {}
    return {"totalRows": str(len(rows)), **found, **({"pageToken": str(end)} if start < end < len(rows) else {})}


def _read(name: str) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return schema and rows for a query or a table.

    Raises:
        Unnamed: No file is named for it.
    """
    name = " ".join(name.split())
    try:
        with open(os.path.join(os.environ[VARIABLE], _FILE), encoding="utf-8") as file:
            known = json.load(file)
    except (KeyError, OSError):
        known = {}
    whole = _WHOLE_TABLE.fullmatch(name)
    table = whole.group(1) if whole else name
    for each, path in known.items():
        each = " ".join(each.split())
        # A table may be named without its project; a query is not a table, whatever it ends with.
        is_table = _TABLE.fullmatch(table) and _TABLE.fullmatch(each) and f".{table}".endswith(f".{each}")
        if each == name or is_table:
            schema, rows = _of_file(path)
            return schema, (rows[: int(whole.group(2))] if whole and whole.group(2) and is_table else rows)
    raise Unnamed(f"no file is named for {table[:300]!r}", table)


def _of_file(path: str) -> tuple[dict[str, Any], list[list[Any]]]:
    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        try:
            from pyarrow import parquet  # type: ignore[import-untyped]
        except ImportError:
            raise Unnamed(f"{path} needs pyarrow in the step; give CSV or JSON Lines") from None
        table = parquet.read_table(path)
        names, columns = table.column_names, [each.to_pylist() for each in table.columns]
    else:
        with open(path, encoding="utf-8-sig", newline="") as file:
            if ending == ".csv":
                names, *lines = [*csv.reader(file)] or [[]]
                lines = [each for each in lines if each]
                if {*map(len, lines)} - {len(names)}:
                    raise Unnamed(f"{path}: a line has another number of columns than the first")
                columns = [[line[number] or None for line in lines] for number in range(len(names))]
            else:
                records = [json.loads(line) for line in file if line.strip()]
                names = [*dict.fromkeys(name for each in records for name in each)]
                columns = [[each.get(name) for each in records] for name in names]
        columns = [_typed(each) for each in columns]
    fields = [
        {"name": name, "type": _kind(name, column, path), "mode": "NULLABLE"}
        for name, column in zip(names, columns)  # noqa: B905 - Python 3.7 has no strict
    ]
    return {"fields": fields}, [list(row) for row in zip(*columns)]  # noqa: B905


def _typed(column: list[Any]) -> list[Any]:
    """Return a column of texts as numbers, truth values, dates or times, if all of it is one of these."""
    texts = [each for each in column if each is not None]
    if texts and all(isinstance(each, str) for each in texts):
        for form, convert in _FORMS:
            if all(re.fullmatch(form, each) for each in texts):
                try:
                    return [None if each is None else convert(each) for each in column]
                except ValueError:
                    return column
    return column


def _time(text: str) -> datetime.datetime:
    text = re.sub(r" UTC$|Z$", "+00:00", text).replace("T", " ")
    form = "%Y-%m-%d %H:%M:%S" + ".%f" * ("." in text) + "%z" * text.endswith("+00:00")
    return datetime.datetime.strptime(text, form)


# 007 is a text.
_FORMS: tuple[tuple[str, Any], ...] = (
    (r"-?(?:0|[1-9]\d{0,17})", int),
    (r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", float),
    (r"(?i)true|false", lambda text: text.lower() == "true"),
    (r"\d{4}-\d\d-\d\d", lambda text: datetime.datetime.strptime(text, "%Y-%m-%d").date()),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?: UTC|Z|\+00:00)?", _time),
)


def _kind(name: str, column: list[Any], path: str) -> str:
    """Return the type of a column.

    Raises:
        Unnamed: It has several types, or one that no plain column has.
    """
    values = [each for each in column if each is not None]
    found = {next((kind for type_, kind in _KINDS if isinstance(each, type_)), "nested") for each in values}
    if found == {"DATETIME"} and all(each.tzinfo for each in values):
        return "TIMESTAMP"
    if found == {"INTEGER", "FLOAT"}:
        return "FLOAT"
    if len(found) > 1 or "nested" in found:
        raise Unnamed(f"{path}: the column {name!r} has {' and '.join(sorted(found))}; give values of one plain type")
    return found.pop() if found else "STRING"


def _encode(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime) and value.tzinfo:
        passed = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017 - Python 3.7
        return str(passed // datetime.timedelta(microseconds=1))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
