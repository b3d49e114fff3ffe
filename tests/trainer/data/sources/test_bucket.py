"""A folder of images in a bucket."""

import io

import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from trainer.data.sources import remarks
from trainer.data.sources.factory import list_objects
from trainer.data.sources.layout import ListedSource
from vertex_testing.cloud_storage.server import CloudStorage


def test_a_source_in_a_bucket_is_that_of_a_folder(server: CloudStorage) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (5, 5)).save(buffer, "PNG")
    for name in ("train/a/1.png", "train/b/1.png", "test/a/1.png", "__MACOSX/train/a/1.png", "train/a/.DS_Store"):
        server.buckets.put("b", f"data/{name}", buffer.getvalue())
    # The console of Cloud Storage makes such objects for folders.
    for name in ("", "train/", "train/a/", "train/empty/", "empty/"):
        server.buckets.put("b", f"data/{name}", b"")
    source = ListedSource(list_objects("gs://b/data/"))
    assert [(image.name, image.split, image.label) for image in source.images()] == [
        ("test/a/1.png", "test", 0),
        ("train/a/1.png", "train", 0),
        ("train/b/1.png", "train", 1),
    ]
    assert {image.read() for image in source.images()} == {buffer.getvalue()}
    assert source.remarks.to_list()[0] == (remarks.SYSTEM, 2, ["__MACOSX", "train/a/.DS_Store"])
    server.buckets.put("b", "data/labels/1.png", buffer.getvalue())
    with pytest.raises(
        UserError, match=r"gs://b/data has split folders \('test', 'train'\) beside other folders \(labels"
    ):
        ListedSource(list_objects("gs://b/data"))
