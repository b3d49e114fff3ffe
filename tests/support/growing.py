"""A source of images that grows, shrinks and changes at random, on this machine or in the tests' bucket."""

import io
import pathlib
import random
import shutil
from typing import Any, Protocol

import numpy as np
from PIL import Image

from trainer.prepare import prepare
from vertex_testing.cloud_storage.server import CloudStorage


def png(seed: int) -> bytes:
    """An image of random pixels; about as many bytes for each seed."""
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 11, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


class Place(Protocol):
    """The location of the source and the datasets."""

    address: str

    def write(self, path: str, data: bytes) -> None: ...
    def read(self, path: str) -> bytes: ...
    def remove(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def paths(self, below: str) -> list[str]: ...
    def copy_tree(self, old: str, new: str) -> None: ...


class Local:
    """A folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.address = str(folder)

    def write(self, path: str, data: bytes) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def remove(self, path: str) -> None:
        (self.folder / path).unlink()
        if not any((self.folder / path).parent.iterdir()):
            (self.folder / path).parent.rmdir()

    def rename(self, old: str, new: str) -> None:
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / old).rename(self.folder / new)
        if not any((self.folder / old).parent.iterdir()):
            (self.folder / old).parent.rmdir()

    def paths(self, below: str) -> list[str]:
        root = self.folder / below
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def copy_tree(self, old: str, new: str) -> None:
        if (self.folder / old).exists():
            shutil.copytree(self.folder / old, self.folder / new)


class InBucket:
    """A bucket of the server."""

    address = "gs://growing"

    def __init__(self, server: CloudStorage) -> None:
        self.buckets = server.buckets
        self.buckets.create("growing")
        for name in self.buckets.names("growing"):
            self.buckets.delete("growing", name)

    def write(self, path: str, data: bytes) -> None:
        self.buckets.put("growing", path, data)

    def read(self, path: str) -> bytes:
        return self.buckets.get("growing", path).data

    def remove(self, path: str) -> None:
        self.buckets.delete("growing", path)

    def rename(self, old: str, new: str) -> None:
        self.write(new, self.read(old))
        self.remove(old)

    def paths(self, below: str) -> list[str]:
        return [name.removeprefix(f"{below}/") for name in self.buckets.names("growing", f"{below}/")]

    def copy_tree(self, old: str, new: str) -> None:
        for path in self.paths(old):
            self.write(f"{new}/{path}", self.read(f"{old}/{path}"))


def fill(place: Place, num_images: int = 12, classes: tuple[str, ...] = ("a", "b")) -> None:
    """Write a source of several classes."""
    for label, name in enumerate(classes):
        for number in range(num_images):
            place.write(f"source/{name}/{number}.png", png(1000 * label + number))


def change(place: Place, rng: random.Random) -> str:
    """Change the source by one step and return which."""
    paths = [path for path in place.paths("source")]
    kind = rng.choice(["add", "add", "remove", "rename", "relabel", "replace", "repeat", "spoil", "new class"])
    chosen, label, name = rng.choice(paths), rng.choice("ab"), f"{rng.randrange(10**9)}.png"
    folder = chosen.rpartition("/")[0]
    # Each class keeps enough images for three splits.
    if kind in ("remove", "relabel") and sum(path.startswith(f"{folder}/") for path in paths) < 6:
        kind = "add"
    if kind == "add":
        place.write(f"source/{label}/{name}", png(rng.randrange(10**9)))
    elif kind == "remove":
        place.remove(f"source/{chosen}")
    elif kind == "rename":
        place.rename(f"source/{chosen}", f"source/{folder}/{name}")
    elif kind == "relabel":
        place.rename(f"source/{chosen}", f"source/{label}/{name}")
    elif kind == "replace":
        place.write(f"source/{chosen}", png(rng.randrange(10**9)))
    elif kind == "repeat":
        place.write(f"source/{label}/{name}", place.read(f"source/{chosen}"))
    elif kind == "spoil":
        place.write(f"source/{label}/{name}", b"not an image")
    else:
        for number in range(4):
            place.write(f"source/{rng.choice('0z')}{name[:3]}/{number}.png", png(rng.randrange(10**9)))
    return kind


def run(place: Place, name: str, /, **options: Any) -> dict[str, Any]:
    """Prepare the source at 16x16 pixels, beside the state in `root`, and return the metadata."""
    return prepare(
        **{
            "source": f"{place.address}/source",
            "output_directory": f"{place.address}/{name}",
            "report_path": f"{place.address}/{name}.html",
            "image_size": 16,
            "pipeline_root": f"{place.address}/root",
            "max_bad_fraction": 0.9,
            **options,
        }
    )


def content(place: Place, name: str) -> dict[str, bytes]:
    """Name -> bytes of all files of a dataset, and its report."""
    return {path: place.read(f"{name}/{path}") for path in place.paths(name)} | {"report": place.read(f"{name}.html")}
