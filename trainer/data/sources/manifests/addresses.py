"""Where the images of a manifest are, and what they are called in the records.

A manifest may come from anywhere, so what it can make prepare read is limited: objects on gs://, and from a local
manifest also local files, but none of the operating system's.
"""

import functools
import os
import posixpath
import re
import unicodedata
from urllib.parse import unquote

from localvertex._base.userinput.paths import BUCKET_FOLDER
from localvertex._base.userinput.spelling import quote
from trainer.data import images
from trainer.data.sources.folder import printable
from trainer.data.sources.manifests.lines import CONTROL_CHARACTER, BadLine
from trainer.data.sources.opening import is_of_kernel

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20}):/|(gs|file|data):", re.IGNORECASE)
_MAX_OBJECT_BYTES = 1024
_MAX_PATH_BYTES = 4095
_GS = "gs://"
_BUCKETS_VARIABLE = "LOCALVERTEX_GCS_ROOT"
"""Variable with the folder that `localvertex run --gcs-root` uses in place of buckets."""


def resolve(address: str, base: str) -> tuple[str, str]:
    """Return where to read an image, and its name: a path that never leads out of a folder.

    Args:
        address: The address as in the manifest.
        base: Folder of the manifest, where relative addresses start: absolute, or on gs://.

    Raises:
        BadLine: It is not an address, or one that this manifest may not name.
    """
    if CONTROL_CHARACTER.search(address):
        raise BadLine("an address with a control character")
    location, name = _object(address, base) if _is_in_bucket(address, base) else _local_file(address, base)
    if kind := images.NOT_READ.get(os.path.splitext(name)[1].lower()):
        raise BadLine(images.not_read(kind))
    return location, name


def nearest(location: str) -> str:
    """Return the file of this machine that a missing one may mean; empty if there is none.

    It differs only in the Unicode form, in upper and lower case, in backslashes or in escapes such as `%20`.
    """
    found = os.path.dirname(location)
    while found and not os.path.isdir(found):
        found = found.rpartition("/")[0]
    for part in unquote(location[len(found) :]).replace("\\", "/").strip("/").split("/") if found else ():
        name = _folded_names(found).get(_folded(part))
        if name is None:
            return ""
        found = f"{found}/{name}"
    return found


@functools.lru_cache(maxsize=16)
def _folded_names(folder: str) -> dict[str, str]:
    """Return the names in a folder by a form that all their spellings share."""
    try:
        return {_folded(name): name for name in sorted(os.listdir(folder), reverse=True)}
    except OSError:
        return {}


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unquote(name).casefold())


def _is_in_bucket(address: str, base: str) -> bool:
    if address.startswith(_GS):
        return True
    if scheme := _SCHEME.match(address):
        raise BadLine(f"{(scheme[1] or scheme[2]).lower()}: is not read; expected gs://BUCKET/NAME or a path")
    if not base.startswith(_GS):
        return False
    if address.startswith(("/", "~")):
        raise BadLine("a local path in a manifest on gs://; expected gs://BUCKET/NAME or a relative path")
    return True


def _object(address: str, base: str) -> tuple[str, str]:
    if not address.startswith(_GS):
        bucket_name, _, folder = base.removeprefix(_GS).partition("/")
        path = posixpath.normpath(posixpath.join(folder, address))
        if path.startswith(".."):
            raise BadLine(f"{quote(address)} leads out of the bucket")
        address = f"{_GS}{bucket_name}/{path}"
    if not BUCKET_FOLDER.fullmatch(address):
        raise BadLine(f"{quote(address)} names no bucket")
    name = address.removeprefix(_GS).partition("/")[2]
    if not name or name.endswith("/"):
        raise BadLine(f"{quote(address)} names no object")
    if {".", ".."} & set(name.split("/")):
        raise BadLine(f"{quote(address)} has . or .. as a folder")
    if len(name.encode()) > _MAX_OBJECT_BYTES:
        raise BadLine(f"a name of more than {_MAX_OBJECT_BYTES:,} bytes")
    # In a local run, a folder replaces all buckets.
    root = os.environ.get(_BUCKETS_VARIABLE)
    location = f"{root.rstrip('/')}/{address.removeprefix(_GS)}" if root else address
    return location, name.lstrip("/") or name


def _local_file(address: str, base: str) -> tuple[str, str]:
    # Two leading slashes would be kept.
    path = "/" + os.path.normpath(os.path.join(base, address)).lstrip("/")
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise BadLine(f"a path of more than {_MAX_PATH_BYTES:,} bytes")
    if is_of_kernel(path):
        raise BadLine(f"{quote(address)} belongs to the operating system")
    below = f"{base.rstrip('/')}/"
    if not (name := printable(path.removeprefix(below).lstrip("/"))):
        raise BadLine(f"{quote(address)} is a folder")
    return path, name
