"""The server's content: buckets of objects with generations, under the rules of the JSON API."""

import base64
import dataclasses
import datetime
import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import google_crc32c


class ApiError(Exception):
    """An error as the API reports it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredObject:
    data: bytes
    generation: int
    updated: str
    content_type: str = "application/octet-stream"
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    num_missing: int = 0
    """Bytes that only the size has, for an object that no test reads."""

    def resource(self, bucket: str, name: str) -> dict[str, Any]:
        """Return the object resource of the JSON API, in which numbers are strings."""
        return {
            "kind": "storage#object",
            "id": f"{bucket}/{name}/{self.generation}",
            "bucket": bucket,
            "name": name,
            "generation": str(self.generation),
            "metageneration": "1",
            "size": str(len(self.data) + self.num_missing),
            "contentType": self.content_type,
            "metadata": dict(self.metadata),
            "storageClass": "STANDARD",
            "timeCreated": self.updated,
            "updated": self.updated,
            "etag": str(self.generation),
            "md5Hash": base64.b64encode(hashlib.md5(self.data).digest()).decode(),
            "crc32c": crc32c(self.data),
        }


class Buckets:
    """Buckets for several threads: each call is atomic, as changes of one object are in Cloud Storage."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._buckets: dict[str, dict[str, StoredObject]] = {}
        self._generation = 1_700_000_000_000_000

    def create(self, bucket: str) -> None:
        with self._lock:
            self._buckets.setdefault(bucket, {})

    def resource(self, bucket: str) -> dict[str, Any]:
        self._objects(bucket)
        return {
            "kind": "storage#bucket",
            "id": bucket,
            "name": bucket,
            "location": "US-CENTRAL1",
            "locationType": "region",
            "storageClass": "STANDARD",
            "projectNumber": "1",
            "metageneration": "1",
        }

    def get(self, bucket: str, name: str, conditions: Mapping[str, str] | None = None) -> StoredObject:
        with self._lock:
            found = self._objects(bucket).get(name)
            if found is None:
                raise ApiError(404, "notFound", f"No such object: {bucket}/{name}")
            _check(found.generation, conditions or {})
            if (wanted := (conditions or {}).get("generation")) and int(wanted) != found.generation:
                raise ApiError(404, "notFound", f"No such object: {bucket}/{name}#{wanted}")
            return found

    def put(
        self,
        bucket: str,
        name: str,
        data: bytes,
        conditions: Mapping[str, str] | None = None,
        *,
        content_type: str = "application/octet-stream",
        metadata: Mapping[str, str] | None = None,
    ) -> StoredObject:
        with self._lock:
            objects = self._objects(bucket)
            if not name:
                raise ApiError(400, "required", "Required")
            _check(objects[name].generation if name in objects else 0, conditions or {})
            self._generation += 1
            now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            objects[name] = StoredObject(
                data=data, generation=self._generation, updated=now, content_type=content_type, metadata=metadata or {}
            )
            return objects[name]

    def enlarge(self, bucket: str, name: str, num_bytes: int) -> None:
        """Add bytes to the size of an object alone."""
        with self._lock:
            self._objects(bucket)[name] = dataclasses.replace(self.get(bucket, name), num_missing=num_bytes)

    def delete(self, bucket: str, name: str, conditions: Mapping[str, str] | None = None) -> None:
        with self._lock:
            self.get(bucket, name, conditions)
            del self._objects(bucket)[name]

    def compose(
        self, bucket: str, name: str, sources: list[dict[str, Any]], conditions: Mapping[str, str]
    ) -> StoredObject:
        with self._lock:
            if not 1 <= len(sources) <= 32:
                raise ApiError(400, "invalid", f"The number of source components provided ({len(sources)}) exceeds 32")
            parts = [
                self.get(bucket, part["name"], part.get("objectPreconditions") or part.get("objectPrecondition")).data
                for part in sources
            ]
            return self.put(bucket, name, b"".join(parts), conditions)

    def page(
        self,
        bucket: str,
        *,
        prefix: str = "",
        delimiter: str = "",
        page_token: str = "",
        max_results: int = 1000,
        start_offset: str = "",
        end_offset: str = "",
    ) -> dict[str, Any]:
        """Return one page: objects with the prefix, and their names up to the next delimiter as `prefixes`."""
        with self._lock:
            objects = dict(self._objects(bucket))
        after = base64.urlsafe_b64decode(page_token).decode() if page_token else ""
        items: list[dict[str, Any]] = []
        prefixes: list[str] = []
        for name in sorted(n for n in objects if n.startswith(prefix)):
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            entry = name if cut < 0 else name[: cut + len(delimiter)]
            outside = name < start_offset or (end_offset and name >= end_offset)
            if outside or (page_token and entry <= after) or (prefixes and prefixes[-1] == entry):
                continue
            if len(items) + len(prefixes) == max_results:
                last = max([*prefixes, *(item["name"] for item in items)])
                token = base64.urlsafe_b64encode(last.encode()).decode()
                return {"kind": "storage#objects", "items": items, "prefixes": prefixes, "nextPageToken": token}
            if cut < 0:
                items.append(objects[name].resource(bucket, name))
            else:
                prefixes.append(entry)
        return {"kind": "storage#objects", "items": items, "prefixes": prefixes}

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        return sorted(name for name in self._objects(bucket) if name.startswith(prefix))

    def _objects(self, bucket: str) -> dict[str, StoredObject]:
        if bucket not in self._buckets:
            raise ApiError(404, "notFound", "The specified bucket does not exist.")
        return self._buckets[bucket]


def crc32c(data: bytes) -> str:
    """Return the checksum as the API writes it."""
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def _check(generation: int, conditions: Mapping[str, str]) -> None:
    """Raise unless the preconditions hold; generation 0 is an object that does not exist."""
    for name, holds in (("ifGenerationMatch", True), ("ifGenerationNotMatch", False)):
        if name in conditions and (int(conditions[name]) == generation) is not holds:
            raise ApiError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
