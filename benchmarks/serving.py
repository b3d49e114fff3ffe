"""The prediction server: requests per second and their latency, with one image per request.

    python -m benchmarks.serving [--model convnet] [--image-size 32] [--seconds 5]

The server, which runs the model on all images that wait, is compared with the same server that runs it on one image at
a time, and with a loop of TensorFlow calls in one process, without a server. The limit is that call and a server that
reads the body and answers with a constant. The loop has TensorFlow's default number of threads, because the export in
the same process has started it.
"""

import argparse
import base64
import http.client
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence

import numpy as np
from PIL import Image

from benchmarks.measuring import Clock, parse
from trainer.data.images import to_pixels
from trainer.serve import model as models
from trainer.serve.batches import MAX_IMAGES

_CLIENTS = (1, 8, 32)
_SERVE = """
import sys
from trainer.serve import contract, model, server
free = contract.of_environment({"AIP_HTTP_HOST": "127.0.0.1", "AIP_HTTP_PORT": "0"})
server.serve(free, lambda: model.load(sys.argv[1]), max_images=int(sys.argv[2]))
"""
_NOTHING = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def predict(request):
    await request.body()
    return JSONResponse({"predictions": [{"probabilities": [0.1] * 10, "label": "0"}]})
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(f"on :{listener.getsockname()[1]}", "ready", sep="\\n", flush=True)
application = Starlette(routes=[Route("/predict", predict, methods=["POST"])])
config = uvicorn.Config(application, http="h11", ws="none", lifespan="off", log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
"""
"""A server that does nothing, with the same packages."""
_EDGE = 300
"""Of the images, in pixels, which are JPEGs."""


def _export(directory: str, name: str, image_size: int) -> None:
    from trainer.models import models as networks
    from trainer.results import saved_model

    network = networks.build(name, image_size=image_size, num_classes=10)
    names = [str(number) for number in range(10)]
    saved_model.write(
        network, directory, class_names=names, image_size=image_size, metadata={"model": name}, seen_images=None
    )


def _image() -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (_EDGE // 8, _EDGE // 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((_EDGE, _EDGE), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _without_server(directory: str, image: bytes, seconds: float) -> list[float]:
    """Return the seconds of each call."""
    loaded = models.load(directory)
    taken, end = [], time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        loaded.predict(to_pixels(image, loaded.image_size)[np.newaxis])
        taken.append(time.perf_counter() - start)
    return taken


def _with_server(port: int, image: bytes, seconds: float, num_clients: int) -> list[float]:
    """Return the seconds of each request of all clients."""
    body = json.dumps({"instances": [{"b64": base64.b64encode(image).decode()}]})
    taken: list[float] = []
    end = time.perf_counter() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while (start := time.perf_counter()) < end:
            connection.request("POST", "/predict", body)
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                raise RuntimeError(content[:200])
            taken.append(time.perf_counter() - start)

    threads = [threading.Thread(target=client) for _ in range(num_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def _served(code: str, image: bytes, seconds: float, *arguments: str) -> dict[int, list[float]]:
    """Return number of clients -> the seconds of each request to the server that some code starts."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            assert process.stdout.readline() == "ready\n"
            return {clients: _with_server(port, image, seconds, clients) for clients in _CLIENTS}
        finally:
            process.kill()


def _row(name: str, seconds: float, taken: Sequence[float], base: float) -> float:
    rate = len(taken) / seconds
    p95 = statistics.quantiles(taken, n=20)[-1]
    ratio = f"{rate / base:5.2f} x" if base else ""
    median = statistics.median(taken) * 1e3
    print(f"{name:<34} {rate:8.0f} /s   median {median:7.1f} ms   95% {p95 * 1e3:7.1f} ms   {ratio}")
    return rate


def main() -> None:
    """Print a row per way and number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parse(parser, seconds=0.2)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as scratch:
        directory, image = str(pathlib.Path(scratch, "model")), _image()
        _export(directory, options.model, options.image_size)
        print(f"{options.model} at {options.image_size} pixels, JPEGs of {_EDGE} pixels, {os.cpu_count()} cores")
        calls = _without_server(directory, image, options.seconds)
        base = _row("TensorFlow, no server", options.seconds, calls, 0)
        nothing = _served(_NOTHING, image, options.seconds)
        clock = Clock()
        single = _served(_SERVE, image, options.seconds, directory, "1")
        of_single, clock = clock.took(), Clock()
        batched = _served(_SERVE, image, options.seconds, directory, str(MAX_IMAGES))
        print(f"server and clients, imports included: one image per call{of_single}, all that wait{clock.took()}")
        for clients in _CLIENTS:
            rows = (("a server that does nothing", nothing), ("one image per call", single), ("all that wait", batched))
            for name, taken in rows:
                _row(f"{name}, {clients} clients", options.seconds, taken[clients], base)
        limit = statistics.median(calls) + statistics.median(nothing[1])
        more = (statistics.median(batched[1]) - limit) * 1e3
        print(
            f"1 client: {more:.2f} ms more than TensorFlow's call and the server that does nothing, one after the other"
        )


if __name__ == "__main__":
    main()
