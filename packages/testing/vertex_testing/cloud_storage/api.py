"""The requests that clients of Cloud Storage make: the JSON API, its uploads, and downloads by the XML API."""

import dataclasses
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from vertex_testing.cloud_storage.buckets import ApiError, Buckets, crc32c
from vertex_testing.cloud_storage.faults import Faults

_TOKEN_PATH = "/oauth2/tests/token"
"""Where the key of a service account that a test made gets a token."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Call:
    """A parsed request."""

    method: str
    path: str
    """As sent, without the query; still percent-encoded, so that a slash in an object's name stays one name."""
    origin: str
    """Scheme and host that the client speaks to."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclasses.dataclass(kw_only=True)
class _Session:
    """A resumable upload."""

    bucket: str
    name: str
    query: Mapping[str, str]
    data: bytearray = dataclasses.field(default_factory=bytearray)
    finished: Answer | None = None
    """The final answer, repeated for a client that did not receive it."""


class Api:
    """The API over the buckets."""

    def __init__(self, buckets: Buckets, faults: Faults) -> None:
        self._buckets = buckets
        self._faults = faults
        self._sessions: dict[str, _Session] = {}
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., Answer]]] = [
            ("POST", re.compile(r"/upload/storage/v1/b/([^/]+)/o"), self._upload),
            ("PUT", re.compile(r"/upload/storage/v1/b/([^/]+)/o"), self._resume),
            ("GET", re.compile(r"(?:/download)?/storage/v1/b/([^/]+)/o/([^/]+)"), self._read),
            ("DELETE", re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)"), self._delete),
            ("POST", re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)/compose"), self._compose),
            (
                "POST",
                re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)/(?:rewriteTo|copyTo)/b/([^/]+)/o/([^/]+)"),
                self._copy,
            ),
            ("GET", re.compile(r"/storage/v1/b/([^/]+)/o"), self._list),
            ("GET", re.compile(r"/storage/v1/b/([^/]+)"), lambda call, bucket: _json(self._buckets.resource(bucket))),
            ("GET", re.compile(r"/([^/]+)/(.+)"), self._download),
            ("HEAD", re.compile(r"/([^/]+)/(.+)"), self._download),
        ]

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, origin: str, is_emulator: bool
    ) -> Answer:
        """Answer one request; errors are also answers. An emulator asks for no credentials, and expects none."""
        split = urlsplit(target)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        call = Call(method=method, path=split.path, query=query, headers=headers, body=body, origin=origin)
        try:
            if is_emulator and "Authorization" in headers:
                raise ApiError(400, "invalid", "An emulator was sent credentials")
            if (method, split.path) == ("POST", _TOKEN_PATH):
                return _json({"access_token": uuid.uuid4().hex, "expires_in": 3600, "token_type": "Bearer"})
            if not is_emulator and not headers.get("Authorization", "").removeprefix("Bearer").strip():
                raise ApiError(401, "required", "Anonymous caller does not have access to the Google Cloud Storage")
            for verb, pattern, action in self._routes:
                if verb == method and (match := pattern.fullmatch(split.path)):
                    return action(call, *(unquote(group) for group in match.groups()))
            raise ApiError(400, "invalid", f"{method} {target} is not known to this server")
        except ApiError as error:
            return failure(error)

    def keep(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Keep what has arrived of a piece of a resumable upload whose connection was cut."""
        session = self._sessions.get(dict(parse_qsl(urlsplit(target).query)).get("upload_id", ""))
        sent = re.fullmatch(r"bytes (\d+)-\d+/.*", headers.get("Content-Range", ""))
        if method == "PUT" and session and sent:
            session.data[int(sent[1]) :] = body

    def _list(self, call: Call, bucket: str) -> Answer:
        query = call.query
        page = self._buckets.page(
            bucket,
            prefix=query.get("prefix", ""),
            delimiter=query.get("delimiter", ""),
            page_token=query.get("pageToken", ""),
            max_results=int(query.get("maxResults") or 1000),
            start_offset=query.get("startOffset", ""),
            end_offset=query.get("endOffset", ""),
        )
        return _json(page)

    def _read(self, call: Call, bucket: str, name: str) -> Answer:
        if call.query.get("alt") == "media":
            return self._download(call, bucket, name)
        return _json(self._buckets.get(bucket, name, call.query).resource(bucket, name))

    def _download(self, call: Call, bucket: str, name: str) -> Answer:
        found = self._buckets.get(bucket, name, call.query)
        headers = {
            "x-goog-generation": str(found.generation),
            "x-goog-hash": f"crc32c={crc32c(found.data)}",
            "x-goog-stored-content-length": str(len(found.data)),
            "Content-Type": found.content_type,
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("Range", ""))
        if not wanted:
            return Answer(body=found.data, headers=headers)
        start = int(wanted[1])
        if call.query.get("alt") != "media" and not found.data:
            return Answer(body=b"", headers=headers)
        end = min(int(wanted[2] or len(found.data)), len(found.data) - 1)
        if start > end:
            return failure(ApiError(416, "requestedRangeNotSatisfiable", "The requested range cannot be satisfied."))
        headers["Content-Range"] = f"bytes {start}-{end}/{len(found.data)}"
        return Answer(status=206, body=found.data[start : end + 1], headers=headers)

    def _delete(self, call: Call, bucket: str, name: str) -> Answer:
        self._buckets.delete(bucket, name, call.query)
        return Answer(status=204)

    def _compose(self, call: Call, bucket: str, name: str) -> Answer:
        sources = json.loads(call.body)["sourceObjects"]
        return _json(self._buckets.compose(bucket, name, sources, call.query).resource(bucket, name))

    def _copy(self, call: Call, bucket: str, name: str, to_bucket: str, to_name: str) -> Answer:
        wanted = {
            f"if{rest}": value for key, value in call.query.items() if (rest := key.removeprefix("ifSource")) != key
        }
        found = self._buckets.get(bucket, name, wanted)
        data, token = found.data, call.query.get("rewriteToken", "")
        if "/rewriteTo/" in call.path:
            # A token belongs to one content of one object.
            number, _, of = token.partition(":") if token else ("0", "", f"{name}#{found.generation}")
            if of != f"{name}#{found.generation}":
                raise ApiError(400, "invalid", "The rewrite token is not valid for this request")
            if int(number) + 1 < self._faults.num_rewrite_calls:
                done, size = str(len(data) * (int(number) + 1) // self._faults.num_rewrite_calls), str(len(data))
                answer = {"done": False, "objectSize": size, "totalBytesRewritten": done}
                return _json(answer | {"rewriteToken": f"{int(number) + 1}:{of}"})
        self._refuse_beyond_quota(data)
        resource = self._buckets.put(to_bucket, to_name, data, call.query).resource(to_bucket, to_name)
        if "/copyTo/" in call.path:
            return _json(resource)
        size = str(len(data))
        return _json({"done": True, "objectSize": size, "totalBytesRewritten": size, "resource": resource})

    def _upload(self, call: Call, bucket: str) -> Answer:
        kind, name = call.query.get("uploadType"), call.query.get("name", "")
        self._buckets.resource(bucket)
        if kind == "resumable":
            described = json.loads(call.body or b"{}")
            upload_id = uuid.uuid4().hex
            self._sessions[upload_id] = _Session(bucket=bucket, name=name or described["name"], query=call.query)
            place = f"{call.origin}/upload/storage/v1/b/{quote(bucket)}/o?uploadType=resumable&upload_id={upload_id}"
            return Answer(headers={"Location": place, "X-GUploader-UploadID": upload_id})
        if kind == "multipart":
            described, data = _parts(call.headers["Content-Type"], call.body)
            name = name or described["name"]
        elif kind == "media":
            described, data = {}, call.body
        else:
            raise ApiError(400, "invalid", f"uploadType {kind!r}")
        return self._put(bucket, name, data, call.query, described)

    def _resume(self, call: Call, bucket: str) -> Answer:
        """Take a piece of a resumable upload, or answer how much has arrived (`bytes */N`)."""
        del bucket
        session = self._sessions.get(call.query.get("upload_id", ""))
        if session is None:
            raise ApiError(404, "notFound", "No such upload session")
        sent = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", call.headers.get("Content-Range", ""))
        if session.finished:
            return session.finished
        if sent and sent[1] is not None:
            session.data[int(sent[1]) :] = call.body
        elif not sent:
            session.data[:] = call.body
        if sent and (sent[3] == "*" or len(session.data) < int(sent[3])):
            arrived = {"Range": f"bytes=0-{len(session.data) - 1}"} if session.data else {}
            return Answer(status=308, headers=arrived)
        given = call.headers.get("x-goog-hash", "").removeprefix("crc32c=")
        described = {"crc32c": given} if given else {}
        session.finished = self._put(session.bucket, session.name, bytes(session.data), session.query, described)
        return session.finished

    def _put(self, bucket: str, name: str, data: bytes, query: Mapping[str, str], described: dict[str, Any]) -> Answer:
        self._refuse_beyond_quota(data)
        if described.get("crc32c", crc32c(data)) != crc32c(data):
            raise ApiError(400, "invalid", f"Provided CRC32C {described['crc32c']!r} doesn't match the calculated one")
        stored = self._buckets.put(
            bucket,
            name,
            data,
            query,
            metadata=described.get("metadata"),
            content_type=described.get("contentType", "application/octet-stream"),
        )
        return _json(stored.resource(bucket, name))

    def _refuse_beyond_quota(self, data: bytes) -> None:
        if self._faults.refuses(len(data)):
            raise ApiError(403, "quotaExceeded", "The quota of this project is exceeded.")


def unpacked(target: str, headers: Mapping[str, str], body: bytes) -> tuple[str, int]:
    """Return a target with the name of the object, which may be in the body, and the size of the data."""
    query = dict(parse_qsl(urlsplit(target).query))
    if "uploadType" not in query or "name" in query or "upload_id" in query:
        return target, len(body)
    if query["uploadType"] == "multipart":
        described, data = _parts(headers["Content-Type"], body)
    else:
        described, data = json.loads(body), b""
    return f"{target}&name={quote(described['name'], safe='')}", len(data)


def damaged(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a body whose data has another last byte."""
    is_multipart = "multipart" in headers.get("Content-Type", "")
    last = (body.rindex(b"\r\n--") if is_multipart else len(body)) - 1
    return body[:last] + bytes([body[last] ^ 1]) + body[last + 1 :]


def failure(error: ApiError) -> Answer:
    """Return the JSON that Google's services send with an error."""
    detail = {"domain": "global", "reason": error.reason, "message": error.message}
    content = {"error": {"code": error.status, "message": error.message, "errors": [detail]}}
    return Answer(status=error.status, body=json.dumps(content).encode(), headers={"Content-Type": "application/json"})


def _json(content: dict[str, Any]) -> Answer:
    return Answer(body=json.dumps(content).encode(), headers={"Content-Type": "application/json; charset=UTF-8"})


def _parts(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the description and the data of a multipart upload."""
    # Not with Python's parser for e-mails, which changes the ends of lines in the data.
    if not (found := re.search(r'boundary="?([^";]+)"?', content_type)):
        raise ApiError(400, "invalid", f"Content-Type {content_type!r} has no boundary")
    mark = f"--{found[1]}".encode()
    described, data = (part.partition(b"\r\n\r\n")[2] for part in body.split(mark)[1:3])
    return json.loads(described), data.removesuffix(b"\r\n")
