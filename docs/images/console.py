"""Make console.png, the image in the README: run the demo and capture its page in the console with Chromium.

Usage: `python docs/images/console.py`. It needs Chromium or Chrome on the PATH and takes about a minute.
"""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH_PIXELS, HEIGHT_PIXELS = 1280, 860
SHOWN_PIXELS = 1700
RUN_ID = "demo"


def run_demo(folder: pathlib.Path) -> None:
    """Compile the pipeline into `folder`, and run the compiled file with the work folder `folder/runs`."""
    compile_it = [sys.executable, "compile.py", "--output-dir", str(folder)]
    subprocess.run(compile_it, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    run_it = ["run", "image_training.json", "--work-dir", "runs", "--run-id", RUN_ID]
    subprocess.run([sys.executable, "-m", "localvertex", *run_it], cwd=folder, check=True)


@contextlib.contextmanager
def console(folder: pathlib.Path) -> Iterator[str]:
    """Serve the work folder `folder/runs`, and return the address of the console."""
    words = ["-m", "localvertex", "serve", "--port", "0", "--work-dir", "runs"]
    process = subprocess.Popen([sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stdout or ())))
        token = (folder / "runs" / "api" / "token").read_text().strip()
        yield f"{found[0]}/#token={token}"
    finally:
        process.terminate()
        process.wait()


def take_screenshot(address: str, step: str, image: pathlib.Path) -> None:
    """Write a screenshot of the run with the step of this path selected."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"error: found none of {', '.join(BROWSERS)}; install Chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = launched.new_page(viewport={"width": WIDTH_PIXELS, "height": HEIGHT_PIXELS})
        page.goto(address)
        page.get_by_role("link", name=RUN_ID).first.click()
        page.get_by_role("tab", name="Graph").wait_for()
        page.goto(f"{page.url}/{urllib.parse.quote(step, safe='')}")
        page.wait_for_timeout(3_000)  # the curves are drawn
        page.screenshot(
            path=image, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH_PIXELS, "height": SHOWN_PIXELS}
        )
        launched.close()


def main() -> None:
    """Write console.png next to this file."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run_demo(folder)
        with console(folder) as address:
            record = json.loads((folder / "runs" / RUN_ID / "run.json").read_text())
            step = next(each["path"] for each in record["tasks"] if each["custom_job"])
            take_screenshot(address, step, pathlib.Path(__file__).with_name("console.png"))


if __name__ == "__main__":
    main()
