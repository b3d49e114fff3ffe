"""Make report.png, the screenshot in the README: run the demo and capture the top of its `run.html` with Chromium.

Usage: `python docs/images/report.py`. It needs Chromium or Chrome on the PATH and takes about a minute.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH_PIXELS, HEIGHT_PIXELS = 1180, 1270
RUN_ID = "demo"


def run_demo(folder: pathlib.Path) -> pathlib.Path:
    """Compile the pipeline, run the compiled file in `folder`, and return the path of its report."""
    compile_it = [sys.executable, "compile.py", "--output-dir", str(folder)]
    subprocess.run(compile_it, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    compiled = str(folder / "image_training.json")
    run_it = ["localvertex", "run", compiled, "--work-dir", str(folder / "runs"), "--run-id", RUN_ID]
    subprocess.run([sys.executable, "-m", *run_it], cwd=ROOT, check=True)
    return folder / "runs" / RUN_ID / "run.html"


def take_screenshot(page: pathlib.Path, image: pathlib.Path, profile: pathlib.Path) -> None:
    """Write a screenshot of a local page; the browser's profile is kept out of the user's own."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"error: found none of {', '.join(BROWSERS)}; install Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    options += [f"--user-data-dir={profile}", f"--window-size={WIDTH_PIXELS},{HEIGHT_PIXELS}"]
    subprocess.run([browser, *options, f"--screenshot={image}", page.as_uri()], check=True, capture_output=True)


def main() -> None:
    """Write report.png next to this file."""
    with tempfile.TemporaryDirectory() as folder:
        page = run_demo(pathlib.Path(folder))
        take_screenshot(page, pathlib.Path(__file__).with_name("report.png"), pathlib.Path(folder) / "profile")


if __name__ == "__main__":
    main()
