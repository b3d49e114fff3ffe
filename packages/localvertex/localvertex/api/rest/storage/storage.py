"""The requests of google-cloud-storage: buckets are folders, and objects are their files.

A client that has `STORAGE_EMULATOR_HOST` in its environment sends them here. The SDK compares the number of a bucket's
project with that of its own, which `localvertex.client.init` answers: it would ask Google.
"""

import re
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex.api.rest.errors import ApiError, Status, error_body, invalid, not_written
from localvertex.api.rest.json_response import JsonResponse
from localvertex.api.rest.storage.objects import Objects, PreconditionFailed

_OBJECT, _UPLOADS = "/storage/v1/b/{bucket}/o/{name:path}", "/upload/storage/v1/b/{bucket}/o"

_BUCKETS = "/storage/v1/b"

_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)")

_BOUNDARY = re.compile(r"""boundary="?([\w'()+,./:=?-]{1,70})"?""")
"""Separator of the parts of a body."""

_MAX_UPLOADS = 100
"""Resumable uploads that are not complete; the oldest one is given up for a new one."""

_FINAL = {Status.RESOURCE_EXHAUSTED: 403, Status.INTERNAL: 400}
"""Codes in place of those for which google-cloud-storage repeats a request for two minutes."""

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, kw_only=True)
class _Upload:
    """A resumable upload that is not complete."""

    bucket: str
    name: str
    query: Mapping[str, str]
    file: Path


class Storage:
    """The objects in the folders of the buckets.

    Args:
        root: The folder that has one folder per bucket.
        private: A folder for uploads that are not complete.
    """

    def __init__(self, root: Path, private: Path) -> None:
        self._objects, self._private = Objects(root=root), private
        self._uploads: dict[str, _Upload] = {}
        self._lock = threading.Lock()

    def open(self) -> None:
        """Remove the uploads that an earlier server left, which only the holder of the work folder may do."""
        self._objects.remove_left(self._private)
        shutil.rmtree(self._private, ignore_errors=True)

    @property
    def routes(self) -> list[Route]:
        """The routes of the API."""
        return [
            Route(_UPLOADS, _endpoint(self._begin), methods=["POST"]),
            Route(_UPLOADS, _endpoint(self._continue), methods=["PUT"]),
            Route("/download" + _OBJECT, _endpoint(self._read), methods=["GET"]),
            Route(_OBJECT, _endpoint(self._read), methods=["GET"]),
            Route(_OBJECT, _endpoint(self._delete), methods=["DELETE"]),
            Route("/storage/v1/b/{bucket}/o", _endpoint(self._list), methods=["GET"]),
            Route(_BUCKETS, _endpoint(self._list_buckets), methods=["GET"]),
            Route(_BUCKETS, _endpoint(self._make_bucket), methods=["POST"]),
            Route(f"{_BUCKETS}/{{bucket}}", _endpoint(self._bucket), methods=["GET"]),
            Route(f"{_BUCKETS}/{{bucket}}", _endpoint(self._remove_bucket), methods=["DELETE"]),
            Route(f"{_BUCKETS}/{{bucket}}/iam", _endpoint(self._policy), methods=["GET", "PUT"]),
            Route("/{any:path}/v1/b{rest:path}", _endpoint(_refuse), methods=_METHODS),
        ]

    def _begin(self, request: Request, body: bytes) -> Response:
        """Take a whole upload, or the description of a resumable one."""
        query, bucket = dict(request.query_params), request.path_params["bucket"]
        # gcsfs continues by POST.
        if "upload_id" in query:
            return self._continue(request, body)
        kind = query.get("uploadType")
        if kind not in ("media", "multipart", "resumable"):
            raise invalid(f"uploadType {str(kind)[:40]!r}: expected media, multipart or resumable")
        described, data = (b"{}", body) if kind == "media" else (body, b"")
        if kind == "multipart":
            described, data = _parts(request, body)
        name = query.get("name") or _name_in(described)
        self._objects.path(bucket, name)
        self._objects.check_bucket(bucket)
        self._private.mkdir(parents=True, exist_ok=True)
        number = uuid4().hex
        upload = _Upload(bucket=bucket, name=name, query=query, file=self._private / number)
        try:
            upload.file.write_bytes(data)
        except OSError:
            upload.file.unlink(missing_ok=True)
            raise
        if kind != "resumable":
            return self._complete(upload)
        with self._lock:
            self._uploads[number] = upload
            for oldest in [*self._uploads][:-_MAX_UPLOADS]:
                self._uploads.pop(oldest).file.unlink(missing_ok=True)
        place = f"http://{request.headers['host']}{request.url.path}?uploadType=resumable&upload_id={number}"
        return JsonResponse({}, headers={"Location": place})

    def _continue(self, request: Request, body: bytes) -> Response:
        """Take the next part of a resumable upload, and report how much there is."""
        number = request.query_params.get("upload_id", "")
        with self._lock:
            upload = self._uploads.get(number)
            if upload is None:
                raise ApiError(Status.NOT_FOUND, "this upload does not exist, or it is complete; start it again")
            size, total = upload.file.stat().st_size, len(body)
            if header := request.headers.get("content-range"):
                parts = _RANGE.fullmatch(header)
                if parts is None:
                    raise invalid(f"Content-Range {header[:80]!r}: expected bytes FIRST-LAST/SIZE")
                first, last = int(parts[1] or size), int(parts[2] or size - 1)
                if first != size or last - first + 1 != len(body):
                    raise invalid(f"Content-Range {header[:80]!r}: {size} bytes are here, and {len(body)} arrived")
                total = int(parts[3]) if parts[3] != "*" else -1
            with upload.file.open("ab") as file:
                file.write(body)
            size += len(body)
            if size != total:
                return Response(status_code=308, headers={"Range": f"bytes=0-{size - 1}"} if size else {})
            del self._uploads[number]
        return self._complete(upload)

    def _complete(self, upload: _Upload) -> Response:
        try:
            path = self._objects.put(upload.file, upload.bucket, upload.name, upload.query)
        finally:
            upload.file.unlink(missing_ok=True)
        return JsonResponse(self._objects.resource(upload.bucket, upload.name, path))

    def _read(self, request: Request, _: bytes) -> Response:
        """Return an object, or its resource."""
        bucket, name = (request.path_params[key] for key in ("bucket", "name"))
        path = self._objects.find(bucket, name, request.query_params)
        found = self._objects.resource(bucket, name, path)
        if request.query_params.get("alt") != "media":
            return JsonResponse(found)
        headers = {"x-goog-hash": f"crc32c={found['crc32c']},md5={found['md5Hash']}"}
        headers |= {"x-goog-generation": found["generation"], "X-Content-Type-Options": "nosniff"}
        # Never as a page: the browser pages of this server have the same origin.
        return FileResponse(path, media_type="application/octet-stream", headers=headers)

    def _delete(self, request: Request, _: bytes) -> Response:
        self._objects.delete(**request.path_params, query=request.query_params)
        return Response(status_code=204)

    def _list_buckets(self, request: Request, _: bytes) -> Response:
        prefix = request.query_params.get("prefix", "")
        found = []
        for each in self._objects.buckets():
            # The user's folder may also have folders that are not buckets, and a bucket may be removed meanwhile.
            with suppress(ApiError, FileNotFoundError):
                found += [self._objects.bucket(each)] if each.startswith(prefix) else []
        return JsonResponse({"kind": "storage#buckets", "items": found})

    def _make_bucket(self, _: Request, body: bytes) -> Response:
        return JsonResponse(self._objects.make_bucket(_name_in(body)))

    def _bucket(self, request: Request, _: bytes) -> Response:
        return JsonResponse(self._objects.bucket(request.path_params["bucket"]))

    def _remove_bucket(self, request: Request, _: bytes) -> Response:
        self._objects.remove_bucket(request.path_params["bucket"])
        return Response(status_code=204)

    def _policy(self, request: Request, _: bytes) -> Response:
        """Return a policy without entries, whatever is set: the files belong to this user."""
        self._objects.bucket(request.path_params["bucket"])
        return JsonResponse({"kind": "storage#policy", "version": 1, "etag": "1", "bindings": []})

    def _list(self, request: Request, _: bytes) -> Response:
        return JsonResponse(self._objects.page(request.path_params["bucket"], request.query_params))


def _endpoint(method: Callable[[Request, bytes], Response]) -> Any:
    """Build an endpoint that answers errors as Google's APIs do."""

    def answer(request: Request, body: bytes) -> Response:
        try:
            return method(request, body)
        except PreconditionFailed as error:
            return JsonResponse(error_body(412, error.status.name, str(error)), 412)
        except ApiError as error:
            refused = error
        except OSError as error:
            refused = not_written(error)
        code = _FINAL.get(refused.status, refused.status.http_code)
        return JsonResponse(error_body(code, refused.status.name, str(refused)), code)

    async def respond(request: Request) -> Response:
        return await run_in_threadpool(answer, request, await request.body())

    return respond


def _refuse(request: Request, _: bytes) -> Response:
    text = f"localvertex serve does not implement {request.method} {request.url.path[:200]} of Cloud Storage"
    raise ApiError(Status.UNIMPLEMENTED, f"{text}: a bucket is a folder, and objects are its files")


def _parts(request: Request, body: bytes) -> tuple[bytes, bytes]:
    """Return the description and the data of a multipart upload.

    Raises:
        ApiError: The body has other parts.
    """
    boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
    pieces = body.split(b"--" + boundary[1].encode()) if boundary else []
    if len(pieces) != 4:
        raise invalid("the body must have two parts: the description of the object, and its data")
    # gcsfs ends its lines as text does, which Cloud Storage accepts.
    end = b"\r\n" if pieces[1].startswith(b"\r\n") else b"\n"
    described, data = (each.removesuffix(end).partition(end + end)[2] for each in pieces[1:3])
    return described, data


def _name_in(described: bytes) -> str:
    """Return the name in the description of an object.

    Raises:
        ApiError: No object has this name.
    """
    try:
        content = parse_json(described.decode(), "the description of the object")
    except (UnicodeDecodeError, UserError) as error:
        raise invalid(str(error)) from None
    name = content.get("name") if isinstance(content, dict) else None
    if not isinstance(name, str):
        raise invalid("the description of the object has no name")
    return name
