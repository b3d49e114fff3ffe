"""An exported model that is tried in the console: the class of an image, by the model's own server."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from localvertex.store import registry
from trainer.data.dataset import Dataset
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]


def test_an_image_gets_the_class_that_the_model_predicts(
    browser: Browser, exported: Path, digits: Dataset, tmp_path: Path
) -> None:
    container = {"image_uri": "trainer:1", "command": ["python", "-m", "trainer.serve"]}
    routes = {"health_route": "/health", "predict_route": "/predict"}
    model = {"display_name": "digits", "artifact_uri": str(exported), "container_spec": container | routes}
    registry.add(tmp_path / "runs", model)
    with Server(tmp_path / "runs") as server, opened(browser, server, "#/models/digits/default?tab=try") as page:
        content = next(digits.records("test")).image_bytes
        image: Any = {"name": "digit.png", "mimeType": "image/png", "buffer": content}
        page.get_by_label("Choose an image").set_input_files(image)
        bars = page.locator(".bars li")
        expect(bars).to_have_count(5, timeout=120_000)
        instances = [{"b64": base64.b64encode(content).decode()}]
        path = "/local/models/digits/1:predict"
        (answer,) = server.request("POST", path, json={"instances": instances}).json()["predictions"]
        best = int(np.argmax(answer["probabilities"]))
        expect(bars.first).to_contain_text(digits.class_names[best])
        expect(bars.first).to_contain_text(f"{100 * answer['probabilities'][best]:.2f}%")
