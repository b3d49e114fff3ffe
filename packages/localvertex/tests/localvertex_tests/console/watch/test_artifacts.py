"""Artifacts: only files of the work folder and its buckets, nothing that could run, and what run.html shows."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.rest.errors import ApiError
from localvertex.console.runs.routes import file_of_artifact, find_artifact
from localvertex.show.view.artifacts import ShownArtifact

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def artifact(tmp_path: Path) -> Callable[..., ShownArtifact]:
    """Build an output artifact of the only step of a run."""
    run_dir = tmp_path / "work" / "run"
    run_dir.mkdir(parents=True)
    (tmp_path / "work" / "api").mkdir()
    (tmp_path / "work" / "api" / "token").write_text("secret")

    def new(uri: str | Path, kind: str = "system.Artifact", **fields: Any) -> ShownArtifact:
        found = {"name": "", "type": {"schemaTitle": kind}, "uri": str(uri), "metadata": fields.pop("metadata", {})}
        task = run_records.TASK | {"outputs": {"parameters": {}, "artifacts": {"out": [found]}}}
        content = run_records.run_record(run_dir.parent, "run", "2026-01-01T00:00:00.000Z", tasks=[task], **fields)
        return find_artifact(run_dir, content, {"task": "train", "name": "out"})

    return new


@pytest.mark.parametrize("kind", ["system.HTML", "system.Markdown", "system.Artifact"])
def test_no_artifact_shows_a_file_outside_the_runs(
    artifact: Callable[..., ShownArtifact], tmp_path: Path, kind: str
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    work_dir = tmp_path / "work"
    (work_dir / "run" / "link").symlink_to(secret)
    (work_dir / "run" / "folder").symlink_to(work_dir / "api")
    (work_dir / ".localvertex").mkdir()
    (work_dir / ".localvertex" / "index").write_text("secret")
    outside = [secret, "/etc/hostname", work_dir / "api", work_dir / "api" / "token", work_dir / "run" / "link"]
    outside += [work_dir / "run" / "folder", work_dir / "run/../../secret.md", work_dir / ".localvertex" / "index"]
    for uri in [*outside, work_dir, "secret.md", "gs://bucket/x", "https://example.com/x", "\0", "a" * 5000, ""]:
        found = artifact(uri, kind)
        view = found.view()
        assert (view["files"], view["is_page"], view["markdown"]) == ([], False, None), uri
        for name in ("", "token", "../secret.md"):
            with pytest.raises(ApiError, match="is not found"):
                file_of_artifact(found, name, is_download=True)


def test_a_folder_lists_its_files_and_none_of_another_folder(
    artifact: Callable[..., ShownArtifact], tmp_path: Path
) -> None:
    folder = tmp_path / "work" / "run" / "train" / "out"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "picture").write_bytes(PNG)
    (folder / "text.txt").write_text("text")
    (folder / "link").symlink_to(tmp_path / "work" / "api" / "token")
    (folder / ".hidden").write_text("hidden")
    found = artifact(folder)
    files = found.view()["files"]
    assert files == [
        {"name": "inner/picture", "size": 28, "is_image": True},
        {"name": "text.txt", "size": 4, "is_image": False},
    ]
    for name in ("link", ".hidden", "../../run.json", "inner", "/etc/hostname", "inner/../../out/.hidden"):
        with pytest.raises(ApiError, match="is not found"):
            file_of_artifact(found, name, is_download=True)
    shown = file_of_artifact(found, "inner/picture", is_download=False)
    assert shown.media_type == "image/png"
    with pytest.raises(ApiError, match="neither a page nor an image"):
        file_of_artifact(found, "text.txt", is_download=False)


def test_text_is_previewed_whatever_its_size_and_nothing_else_is(
    artifact: Callable[..., ShownArtifact], tmp_path: Path
) -> None:
    path = tmp_path / "work" / "run" / "table.csv"
    path.write_text("name,n\n<b>ü</b>,1\n")
    assert artifact(path).view()["text"] == {"text": "name,n\n<b>ü</b>,1\n", "is_cut": False}
    path.write_text("ü" * 40_000)
    shown = artifact(path, "system.Dataset").view()["text"]
    assert (shown["text"], shown["is_cut"]) == ("ü" * 32_768, True)
    path.write_text("x" + "ü" * 40_000)
    assert artifact(path).view()["text"]["text"] == "x" + "ü" * 32_767
    with path.open("r+b") as file:
        file.truncate(2 << 30)
    view = artifact(path).view()
    assert (view["text"]["is_cut"], view["files"][0]["size"]) == (True, 2 << 30)
    for content in (b"", b" \n", b"a\0b", b"\xff\xfe", b"text \xc3", PNG, b"<svg xmlns='x'/>"):
        path.write_bytes(content)
        assert artifact(path).view()["text"] is None, content


def test_a_page_or_an_image_of_2_gb_is_only_downloaded(artifact: Callable[..., ShownArtifact], tmp_path: Path) -> None:
    path = tmp_path / "work" / "run" / "large"
    for kind, content in (("system.HTML", b"<h1>"), ("system.Artifact", PNG)):
        path.write_bytes(content)
        found = artifact(path, kind)
        assert file_of_artifact(found, "", is_download=False).status_code == 200
        with path.open("r+b") as file:
            file.truncate(2 << 30)
        view = found.view()
        assert (view["is_page"], view["files"][0]["is_image"]) == (False, False)
        with pytest.raises(ApiError, match="larger than 67108864 bytes; download it"):
            file_of_artifact(found, "", is_download=False)
        assert file_of_artifact(found, "", is_download=True).headers["Content-Length"] == str(2 << 30)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"<svg onload='alert(1)'><script>alert(1)</script></svg>", "image/svg+xml"),
        (b'<?xml version="1.0"?>\n<!-- made by -->\n<!DOCTYPE svg PUBLIC "x"\n "y">\n<svg>', "image/svg+xml"),
        (b"<html><svg></svg></html>", None),
        (b"<" * 5000, None),
        (b"<!--" * 500, None),
    ],
)
def test_images_are_known_by_their_content_and_svg_runs_nothing(
    artifact: Callable[..., ShownArtifact], tmp_path: Path, content: bytes, kind: str | None
) -> None:
    path = tmp_path / "work" / "run" / "picture"
    path.write_bytes(content)
    found = artifact(path)
    assert found.view()["files"][0]["is_image"] == bool(kind)
    if not kind:
        with pytest.raises(ApiError, match="neither a page nor an image"):
            file_of_artifact(found, "", is_download=False)
        return
    headers = file_of_artifact(found, "", is_download=False).headers
    assert headers["Content-Type"] == kind
    assert headers["Content-Security-Policy"].startswith("sandbox; default-src 'none';")


def test_what_is_not_on_this_machine_is_explained(artifact: Callable[..., ShownArtifact], tmp_path: Path) -> None:
    notes = [artifact(uri).view()["note"] for uri in ("gs://bucket/x", "https://example.com/x", "", "/etc/hostname")]
    assert notes[0] == notes[1] == "It is not on this machine. The console contacts no other host."
    assert notes[2:] == ["", "It does not exist, or it is outside the work folder and the folders of buckets."]
    assert artifact("gs://bucket/x", gcs_root=str(tmp_path)).view()["note"] == notes[3]
    (tmp_path / "work" / "run" / "here").write_text("here")
    assert artifact(tmp_path / "work" / "run" / "here").view()["note"] == ""


def test_all_files_of_a_large_folder_are_counted(artifact: Callable[..., ShownArtifact], tmp_path: Path) -> None:
    folder = tmp_path / "work" / "run" / "many"
    folder.mkdir()
    first = folder / "0"
    first.write_text("")
    for number in range(1, 10_000):
        os.link(first, folder / str(number))
    view = artifact(folder).view()
    assert (len(view["files"]), view["num_more"]) == (200, 9_800)


def test_a_page_gets_no_script_and_a_download_is_never_shown(
    artifact: Callable[..., ShownArtifact], tmp_path: Path
) -> None:
    page = tmp_path / "work" / "run" / "report.html"
    page.write_text("<script>alert(1)</script>")
    found = artifact(page, "system.HTML")
    assert found.view()["is_page"]
    headers = file_of_artifact(found, "", is_download=False).headers
    assert headers["Content-Type"].startswith("text/html")
    assert headers["Content-Security-Policy"].startswith("sandbox; default-src 'none';")
    assert "script" not in headers["Content-Security-Policy"]
    headers = file_of_artifact(found, "", is_download=True).headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith("attachment")
    # The same file as another kind of artifact is no page.
    with pytest.raises(ApiError, match="neither a page nor an image"):
        file_of_artifact(artifact(page), "", is_download=False)


def test_a_bucket_of_the_run_is_read(artifact: Callable[..., ShownArtifact], tmp_path: Path) -> None:
    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    (tmp_path / "buckets" / "bucket" / "notes.md").write_text("# Notes\n<b>bold</b>")
    found = artifact("gs://bucket/notes.md", "system.Markdown", gcs_root=str(tmp_path / "buckets"))
    view = found.view()
    assert "&lt;b&gt;bold" in view["markdown"]
    assert [each["size"] for each in view["files"]] == [19]


@pytest.mark.parametrize("query", [{"index": "1"}, {"index": "-1"}, {"name": "x"}, {"task": "x"}, {"side": "x"}])
def test_what_does_not_exist_is_refused(tmp_path: Path, query: dict[str, str]) -> None:
    content = run_records.run_record(tmp_path, "run", "2026-01-01T00:00:00.000Z")
    with pytest.raises(ApiError):
        find_artifact(tmp_path / "run", content, {"task": "train", "name": "out"} | query)
