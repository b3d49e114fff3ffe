"""The page of a run whose names, values and files try to become part of the page."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import HTML, Artifact, ClassificationMetrics, Markdown, Metrics, Output

import localvertex
from vertex_testing.html import Page
from vertex_testing.runs import STEP

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onfocus='alert(3)' autofocus='",
    "javascript:alert(4)",
    "</style></script><!--navigation-->",
    "{{ 7 * 7 }}{% endraw %}",
    "&lt;b&gt;",
    "x" * 3000,
]
REORDERING = "safe\u202etxt.exe\u2066\x1b[31m"

TAGS = set(
    "html head meta title style body main h1 h2 h3 h4 h5 h6 p span strong section pre a code div dl dt dd ul ol li"
    " details summary table caption thead tbody tr th td em i b br wbr iframe script svg g rect path polyline text"
    " tspan figure figcaption".split()
)

LINK = re.compile(r"#[a-z]+-\d+|\./[^\"<>]*|run\.json|\.\./models/[\w-]+/\d+/|https://.*")


@dsl.component(**STEP)
def emit(
    texts: list,
    metrics: Output[Metrics],
    markdown: Output[Markdown],
    matrix: Output[ClassificationMetrics],
    page: Output[HTML],
    other: Output[Artifact],
    script: Output[Artifact],
    secret: Output[Artifact],
) -> str:
    for text in texts:
        metrics.metadata[text] = text
        other.metadata[text] = {text: [text]}
    matrix.log_confusion_matrix(texts[:3], [[1, 2, 3]] * 3)
    images = "![image](https://tracker.example/x.png) <img src=https://tracker.example/y.png> [file](../../secret.txt)"
    with open(markdown.path, "w") as file:
        file.write("\n\n".join([*texts, f"[click]({texts[3]}) [site](https://example.com/a)", "# Title", images]))
    with open(page.path, "w") as file:
        file.write("<h1>Of the step</h1>" + "".join(texts))
    other.uri = 'https://example.com/" onclick="alert(5)'
    script.uri = texts[3]
    secret.uri = "/etc/passwd"
    return "".join(texts)


@dsl.component(**STEP)
def fail(texts: list) -> None:
    print("\n".join(texts))
    raise ValueError(" ".join(texts))


@dsl.pipeline(name="hostile")
def hostile(texts: list, items: list) -> None:
    emit(texts=texts).set_display_name(HOSTILE[0] + REORDERING)
    with dsl.ParallelFor(items=items, name=HOSTILE[1]) as item:
        emit(texts=[item, item, item, item]).set_display_name("javascript:alert(6)")
    fail(texts=texts).set_display_name(HOSTILE[2])


@pytest.fixture(scope="module")
def run_dir(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the hostile pipeline."""
    folder = tmp_path_factory.mktemp("hostile")
    file = compile_pipeline(hostile, folder / "<b>hostile.json")
    texts = [*HOSTILE, REORDERING]
    how = localvertex.Options(work_dir=folder / "runs", run_id="hostile", max_backoff_seconds=0.05)
    record = localvertex.run(file, parameters={"texts": texts, "items": HOSTILE[:4]}, options=how)
    assert (record["state"], record["failed_task"]) == ("FAILED", "fail")
    return folder / "runs" / "hostile"


@pytest.fixture(scope="module")
def page(run_dir: Path) -> Page:
    """Its page."""
    return Page((run_dir / "run.html").read_text())


def test_no_value_becomes_an_element_an_attribute_or_a_comment(page: Page) -> None:
    assert page.unbalanced == []
    assert {tag for tag, _ in page.elements} <= TAGS
    assert page.comments == ["navigation"]
    names = {name for _, attributes in page.elements for name in attributes}
    assert names.isdisjoint({"autofocus", "src", "action", "formaction"})
    assert [name for name in names if name.startswith("on")] == []
    styles = [attributes["style"] for _, attributes in page.elements if "style" in attributes]
    assert [each for each in styles if not re.fullmatch(r"left:[\d.]+%;width:[\d.]+%", each)] == []


def test_only_the_style_and_script_of_the_package_are_in_the_page(page: Page) -> None:
    folder = Path(templates.__file__).parent
    assert page.raw == {"style": (folder / "run.css").read_text(), "script": (folder / "run.js").read_text()}
    (policy,) = [each["content"] for each in page.attributes("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "https:" not in policy


def test_links_lead_to_files_of_the_run_parts_of_the_page_and_https(page: Page, run_dir: Path) -> None:
    links = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    assert [each for each in links if not LINK.fullmatch(each)] == []
    assert {each.partition("#")[2] for each in links if each.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    targets = [(run_dir / each).resolve() for each in links if each.startswith("./")]
    assert [each for each in targets if not each.is_relative_to(run_dir)] == []
    assert "https://example.com/a" in links


def test_every_value_is_there_to_be_read(page: Page) -> None:
    record = " ".join(page.text.split())
    for text in HOSTILE[:-1]:
        assert text in record
    # Of a long text the beginning.
    assert "x" * 900 in record
    assert "2,000 more characters" in record


def test_characters_that_would_reorder_or_hide_text_are_shown_as_escapes(page: Page, run_dir: Path) -> None:
    attributes = [pair for _, found in page.elements for pair in found.items()]
    shown = page.text + "".join(value for name, value in attributes if name != "srcdoc")
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", shown)
    assert "safe\\u202etxt.exe\\u2066\\u001b[31m" in page.text
    assert REORDERING in json.loads((run_dir / "run.json").read_text())["parameters"]["texts"]


def test_pages_of_steps_are_in_frames_that_run_nothing(page: Page) -> None:
    frames = page.attributes("iframe")
    assert [set(each) for each in frames] == [{"title", "sandbox", "srcdoc"}] * 5
    assert {each["sandbox"] for each in frames} == {"allow-same-origin"}
    assert "<h1>Of the step</h1><script>alert(1)</script>" in frames[0]["srcdoc"]


def test_markdown_is_rendered_without_its_tags_images_and_other_addresses(page: Page) -> None:
    assert [attributes for tag, attributes in page.elements if tag == "h4"]
    assert "[click](javascript:alert(4))" in page.text
    assert "[file](../../secret.txt)" in page.text
    assert page.attributes("img") == []
    assert "<img src=https://tracker.example/y.png>" in page.text


def test_files_of_pages_and_markdown_have_the_endings_that_programs_know(run_dir: Path) -> None:
    record = json.loads((run_dir / "run.json").read_text())
    (outputs,) = [task["outputs"]["artifacts"] for task in record["tasks"] if task["path"] == "emit"]
    files = {name: Path(outputs[name][0]["uri"]) for name in ("page", "markdown", "metrics")}
    assert {name: file.name for name, file in files.items()} == {
        "page": "page.html",
        "markdown": "markdown.md",
        "metrics": "metrics",
    }
    assert files["page"].read_text().startswith("<h1>Of the step</h1>")
    assert not files["page"].with_suffix("").exists()
