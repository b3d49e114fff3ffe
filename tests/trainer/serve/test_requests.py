"""Requests are read strictly: reasons name the instance, and the header of an image is checked before it is decoded."""

import asyncio
import base64
import io
import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trainer.data import images
from trainer.data.images import Pixels
from trainer.serve import requests
from trainer.serve.requests import Refused


def encoded(kind: str = "PNG", mode: str = "RGB", size: tuple[int, int] = (20, 12)) -> bytes:
    """The bytes of an image file."""
    pixels = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def b64(data: bytes) -> dict[str, str]:
    """An instance."""
    return {"b64": base64.b64encode(data).decode()}


def bomb(edge: int) -> bytes:
    """A PNG whose header promises many pixels."""
    header = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


GOOD = b64(encoded())


def parse(body: bytes, image_size: int) -> list[Pixels]:
    """Parse a body and decode its images as the server does."""
    return [decode() for decode in asyncio.run(requests.parse(body, image_size))]


def test_both_forms_of_an_instance_are_read_with_and_without_parameters() -> None:
    expected = images.to_pixels(encoded(), 16)
    for more in ({}, {"parameters": None}, {"parameters": {}}):
        found = parse(json.dumps({"instances": [GOOD, {"image_bytes": GOOD}], **more}).encode(), 16)
        assert [each.shape for each in found] == [(16, 16, 3)] * 2
        assert all(np.array_equal(each, expected) for each in found)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not"),
        (b'{"instances": [], "instances": []}', "the body"),
        (b"[" * 100_000, "the body"),
        ([], "the body must be a JSON object with instances or parameters, found list"),
        ({}, '"instances" must be a list of 1 to 1,024'),
        ({"instances": []}, '"instances" must be a list of 1 to 1,024'),
        ({"instances": [GOOD] * 1025}, '"instances" must be a list of 1 to 1,024'),
        ({"instances": GOOD}, '"instances" must be a list'),
        ({"instances": [GOOD], "signature_name": "x"}, "the body has the unknown key 'signature_name'"),
        ({"instances": [GOOD, "text"]}, "instance 1 must be a JSON object with b64, found str"),
        ({"instances": [GOOD, {}]}, "instance 1 has no image"),
        ({"instances": [GOOD, {"b64": 1}]}, "instance 1 has no image"),
        ({"instances": [GOOD, {**GOOD, "key": 1}]}, "instance 1 has the unknown key 'key'"),
        ({"instances": [{"image_bytes": GOOD, "b64": ""}]}, "instance 0 has the unknown key 'b64'"),
        ({"instances": [{"image_bytes": GOOD["b64"]}]}, "instance 0 must be a JSON object with b64, found str"),
        ({"instances": [GOOD, {"b64": "a*b="}]}, "instance 1 is not valid base64"),
        ({"instances": [GOOD, {"b64": "ä"}]}, "instance 1 is not valid base64"),
        ({"instances": [{"b64": f"data:image/png;base64,{GOOD['b64']}"}]}, "instance 0 is a data URL; "),
        ({"instances": [{"b64": f"{GOOD['b64'][:76]}\n{GOOD['b64'][76:]}"}]}, "instance 0 is base64 with line breaks"),
        ({"instances": [{"b64": "_-8="}]}, "instance 0 is web-safe base64"),
        ({"instances": [{"b64": "abc"}]}, "instance 0 is web-safe base64 or without its padding"),
        ({"instances": [GOOD, b64(b"text")]}, "instance 1: not an image"),
        *(({"instances": [GOOD], "parameters": value}, '"parameters" is not empty') for value in ([1], {"top_k": 3})),
        ({"instances": [GOOD, b64(encoded()[:60] + b"x" * 20 + encoded()[80:])]}, "instance 1: "),
    ],
)
def test_what_is_not_valid_is_refused_with_a_reason(body: Any, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(body if isinstance(body, bytes) else json.dumps(body).encode(), 16)
    assert refused.value.status == 400
    assert str(refused.value).startswith(reason)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("edge", [8193, 20_000, 2**31 - 1])
def test_an_image_of_too_many_pixels_is_refused_by_its_header(edge: int) -> None:
    with pytest.raises(Refused, match=r"^instance 1: .*pixels"):
        parse(json.dumps({"instances": [GOOD, b64(bomb(edge))]}).encode(), 16)


@pytest.mark.parametrize("kind", [b"zTXt", b"iCCP"])
def test_a_long_text_or_profile_is_not_a_way_around_the_limit_of_pixels(kind: bytes) -> None:
    content = b"k\0\0" + zlib.compress(bytes(3 << 20))
    extra = struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    large = bomb(9000)
    with pytest.raises(Refused, match=r"^instance 0: 9000x9000 is more than 67,108,864 pixels"):
        parse(json.dumps({"instances": [b64(large[:33] + extra + large[33:])]}).encode(), 16)
    small = encoded()
    (found,) = parse(json.dumps({"instances": [b64(small[:33] + extra + small[33:])]}).encode(), 16)
    assert np.array_equal(found, parse(json.dumps({"instances": [GOOD]}).encode(), 16)[0])


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("JPEG", "RGB"), ("PNG", "RGBA"), ("TIFF", "CMYK"), ("PNG", "I;16"), ("WEBP", "RGB"), ("GIF", "P"), ("BMP", "1")],
)
def test_a_file_becomes_the_pixels_that_prepare_makes_of_it(kind: str, mode: str) -> None:
    image = Image.open(io.BytesIO(encoded()))
    deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    buffer = io.BytesIO()
    (deep if mode == "I;16" else image.convert(mode)).save(buffer, kind)
    (found,) = parse(json.dumps({"instances": [b64(buffer.getvalue())]}).encode(), 16)
    assert np.array_equal(found, np.asarray(images.stretch(images.decode(buffer.getvalue()), 16)))
