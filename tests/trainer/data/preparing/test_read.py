"""Reading: few images take all connections, and the order of many is that of the source."""

import io

from trainer.data.preparing.read import examine_images
from trainer.data.sources.source import SourceImage

_SECONDS = 60
"""Until a thread that waits for the others gives up, which fails the test."""


def test_many_images_come_in_their_order_and_each_once() -> None:
    images = [SourceImage(name=str(n), label=0, split="", read=bytes, identity=dict, location="") for n in range(1500)]
    rows = [row for some in examine_images(images, 8, io.BytesIO()) for row in some]
    assert [row.name for row in rows] == [image.name for image in images]
