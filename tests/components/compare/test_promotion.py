"""The step `compare` with the registry of a server: what is promoted, why, and what the next run reads about it."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from components.compare.criteria import Criteria
from components.compare.promotion import Outcome, compare
from components.export.exported import export as released
from components.names import model_name_for
from components.registry import labels
from components.registry.registry import Registry
from components.release.registration import Recorded, labels_at_upload, record
from exact_resume.checkpoints import seal
from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import StepEndpoint
from localvertex._base.userinput.errors import UserError
from tests.support.finished import note_evaluation, write_finished_run
from trainer.checkpoints import seen
from trainer.checkpoints.identity import identity, run_id
from trainer.config import TrainConfig
from trainer.data import dataset
from trainer.data.preparing import image_list
from trainer.export import export
from trainer.prepare import prepare
from trainer.results import exported, outcome
from vertex_testing.html import Page
from vertex_testing.server import Server

pytestmark = pytest.mark.slow
CONFIG = TrainConfig(epochs=1, max_steps=1, global_batch_size=8)


def expected(is_promoted: bool, registered_version: str, champion: str) -> Outcome:
    """Return the outcome of a model that is either promoted or refused, in a run without an endpoint."""
    return Outcome(
        next=("record" if registered_version else "export") if is_promoted else "",
        is_promoted=is_promoted,
        deploy_endpoint="",
        registered_version=registered_version,
        champion=champion,
    )


class Release:
    """Runs on one dataset, in a pipeline root, and the registry."""

    def __init__(self, folder: Path, server: Server, model_name: str) -> None:
        self.folder, self.server, self.model_name = folder, server, model_name
        self.data = dataset.load(str(folder / "dataset"))
        self.metrics: dict[str, Any] = {}

    def checkpoints(self, favourite: str) -> Path:
        """Return the finished run of a network that answers one class, whatever the image."""
        from trainer.checkpoints import variables
        from trainer.models import models

        directory = self.folder / favourite
        if not directory.exists():
            network = models.build("convnet", image_size=self.data.image_size, num_classes=2)
            arrays = variables.values(network.variables)
            arrays[-1] = np.where(np.array(self.data.class_names) == favourite, 1000, 0).astype(np.float32)
            write_finished_run(
                str(directory),
                run_id=run_id(CONFIG, self.data.fingerprint, favourite),
                identity=identity(CONFIG, self.data.fingerprint, favourite),
                accuracy=0.5,
                arrays=arrays,
                model={"class_names": list(self.data.class_names), "image_size": 8, "num_variables": len(arrays)},
            )
            assert seen.record(str(directory), self.data, []) == ""
            note_evaluation(str(directory), 0.5)
        return directory

    def register(self, favourite: str, parent: str = "") -> tuple[str, Path]:
        """Export and register a run as champion; return the name of its model and the registry's copy of its files."""
        files = self.folder / f"{favourite}-model"
        if not files.exists():
            checkpoints = str(self.checkpoints(favourite))
            folders = {"dataset_directory": str(self.folder / "dataset"), "output_directory": str(files)}
            export(checkpoint_directory=checkpoints, **folders)
        model = {
            "displayName": self.model_name,
            "artifactUri": str(files),
            "containerSpec": {"imageUri": "serving:1"},
            "labels": labels_at_upload(str(self.checkpoints(favourite))),
            "versionAliases": list(labels.ALIASES),
        }
        body = {"model": model} | ({"parentModel": parent} if parent else {})
        answer = self.server.call("POST", "models:upload", body)
        answer.raise_for_status()
        name = answer.json()["response"]["model"].partition("@")[0]
        champion = Registry(region="us-central1", pipeline_root=str(self.folder)).champion(name)
        assert champion
        return name, Path(champion.artifact_uri)

    def rename_classes(self, files: Path, names: list[str]) -> None:
        """Export the champion again: the same network, with other names of its classes."""
        from trainer.checkpoints import best, restored
        from trainer.results import saved_model

        chosen = best.find(str(self.checkpoints("many")), self.data)
        seen_images = seen.read(files / exported.SEEN_FILE)
        shutil.rmtree(files)
        saved_model.write(
            restored.model_of(chosen, self.data).model,
            str(files),
            class_names=names,
            image_size=8,
            metadata={},
            seen_images=seen_images,
        )

    def compare(
        self, favourite: str, *, serving_image: str = "serving:1", deploy_endpoint: str = "", **criteria: Any
    ) -> Outcome:
        """Call the step for a run."""
        return compare(
            dataset=str(self.folder / "dataset"),
            comparison=str(self.folder / "page.html"),
            metrics=self.metrics,
            checkpoint_directory=str(self.checkpoints(favourite)),
            source="no-such-source",
            model_name=self.model_name,
            serving_image=serving_image,
            region="us-central1",
            pipeline_root=str(self.folder),
            deploy_endpoint=deploy_endpoint,
            **vars(Criteria(min_compared_images=10, **criteria)),
        )

    def page(self) -> str:
        """Return the visible text of the page."""
        return " ".join(" ".join(Page((self.folder / "page.html").read_text()).texts).split())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with many images of one class and fewer of another."""
    folder = tmp_path_factory.mktemp("release")
    random = np.random.default_rng(0)
    for number in range(400):
        path = folder / "images" / ("few" if number % 4 == 0 else "many") / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (8, 8), np.uint8)).save(path)
    prepare(
        source=str(folder / "images"),
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        image_size=8,
    )
    return folder


@pytest.fixture
def release(
    prepared: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Release:
    """An empty registry, as far as the model of this test goes."""
    endpoint = StepEndpoint(address=server.url, token=server.headers["Authorization"].partition(" ")[2])
    step_endpoint.write(tmp_path / "endpoint.json", endpoint)
    monkeypatch.setenv(step_endpoint.VARIABLE, str(tmp_path / "endpoint.json"))
    return Release(prepared, server, request.node.name.partition("[")[0][5:60])


def test_the_first_model_has_no_champion(release: Release) -> None:
    assert release.compare("few") == expected(True, "", "")
    assert "here is no champion" in release.page()
    assert outcome.notes(str(release.checkpoints("few"))).comparison["champion"] == ""


def test_a_champion_that_another_run_made_meanwhile_is_not_replaced_uncompared(release: Release) -> None:
    promoted = release.compare("few")
    model, _ = release.register("many")
    folders = {"dataset": str(release.folder / "dataset"), "source": "no-such-source"}
    common = {
        "checkpoint_directory": str(release.checkpoints("few")),
        "model_name": release.model_name,
        "region": "us-central1",
        "pipeline_root": str(release.folder),
        "serving_image": "serving:1",
    }
    made = released(
        **common,
        dataset=folders["dataset"],
        own_image="own:1",
        model=str(release.folder / "next-model"),
    )
    assert (made.parent_model, made.container) == (model, {"imageUri": "serving:1"})
    release.register("few", model)
    registry = Registry(region="us-central1", pipeline_root=str(release.folder))
    registry.merge_aliases(f"{model}@1", labels.ALIASES)

    decision: dict[str, Any] = {}

    def recorded(**criteria: Any) -> Recorded:
        return record(
            decision=decision,
            registered_version=f"{model}@2",
            metrics={"accuracy": 0.5, "loss": 0.5},
            confusion_matrix={},
            is_promoted=promoted.is_promoted,
            champion=promoted.champion,
            **vars(Criteria(min_compared_images=10, **criteria)),
            deploy_endpoint="live",
            **folders,
            **common,
        )

    assert recorded() == Recorded(f"{model}@2", False, "")
    noted = outcome.notes(str(release.checkpoints("few")))
    assert (noted.comparison["champion"], noted.comparison["is_promoted"]) == (f"{model}@1", False)
    assert "worse by" in noted.comparison["reason"]
    # Not that of `compare`, by which it would be the champion.
    assert decision == {"reason": noted.comparison["reason"]}
    assert registry.get(f"{model}@1").aliases == labels.ALIASES
    assert registry.get(f"{model}@2").labels["promotion"] == "refused"
    # Compared by the user's criteria: the newer version may be worse.
    assert recorded(max_regression=0.9) == Recorded(f"{model}@2", True, "live")
    assert outcome.notes(str(release.checkpoints("few"))).registration["resource_name"] == f"{model}@2"


def test_a_worse_model_is_refused_with_its_table_and_noted_for_the_next_run(release: Release) -> None:
    model, _ = release.register("many")
    assert release.compare("few") == expected(False, "", f"{model}@1")
    assert "Not promoted" in release.page()
    assert "worse by" in release.page()
    noted = outcome.notes(str(release.checkpoints("few"))).comparison
    assert (noted["champion"], noted["is_promoted"]) == (f"{model.partition('@')[0]}@1", False)
    assert noted["criteria"] == dataclasses.asdict(Criteria(min_compared_images=10))
    assert release.metrics["is_promoted"] == 0
    assert release.metrics["reason"] == noted["reason"]
    assert release.metrics["challenger_accuracy"] < release.metrics["champion_accuracy"]
    assert release.metrics["difference"] < 0
    assert release.metrics["num_left_out"] == 0
    forced = release.compare("few", force_promotion=True)
    assert forced == expected(True, "", f"{model}@1")
    assert "by force_promotion" in release.page()


def test_a_champion_stays_when_its_classes_are_spelled_in_another_way(release: Release) -> None:
    """All of its answers would be wrong, and a model that knows nothing but the rare class would replace it."""
    model, files = release.register("many")
    release.rename_classes(files, ["Few", "Many"])
    assert release.compare("few") == expected(False, "", f"{model}@1")
    noted = outcome.notes(str(release.checkpoints("few"))).comparison
    assert "'Few' (now 'few'), 'Many' (now 'many')" in noted["reason"]
    assert "rename the folders back" in noted["reason"]
    assert "force_promotion promotes it anyway" in noted["reason"]
    assert "\n" not in noted["reason"]
    assert noted["reason"] in release.page()
    assert (noted["champion"], noted["is_promoted"]) == (f"{model}@1", False)
    assert "champion_accuracy" not in release.metrics
    assert release.compare("few", force_promotion=True).is_promoted


def test_a_champion_of_other_classes_names_another_model_as_the_way_on(release: Release) -> None:
    _, files = release.register("many")
    release.rename_classes(files, ["cats", "dogs"])
    release.compare("few")
    noted = outcome.notes(str(release.checkpoints("few"))).comparison
    (found,) = re.findall(r", or start another model: --parameter model_name=(\S+);", noted["reason"])
    assert found == model_name_for("no-such-source")
    # A source whose own model knows other classes.
    release.model_name = found
    release.rename_classes(release.register("many")[1], ["cats", "dogs"])
    release.compare("few")
    noted = outcome.notes(str(release.checkpoints("few"))).comparison
    assert f"--parameter model_name={found}-2;" in noted["reason"]
    release.model_name = f"{found}-2"
    assert release.compare("few") == expected(True, "", "")


def test_a_better_model_becomes_a_version_of_the_same_model(release: Release) -> None:
    model, _ = release.register("few")
    assert release.compare("many", must_improve=True) == expected(True, "", f"{model}@1")
    assert release.metrics["p_value"] < 0.05
    # The evaluation of the champion noted more than it has.
    fallen = "the champion had accuracy 50.00% before its export, and has 20.59% now; on 34 of its own test images it"
    assert "79.41% against 20.59% on 34 images: better" in release.page()
    assert f"{fallen} has 20.59%, the new model 79.41%" in release.page()
    assert release.metrics["num_own_test_images"] == 34


@pytest.mark.parametrize("names", [["few", "many", "gone"], ["few", "gone"]])
def test_a_champion_whose_classes_are_lost_is_replaced_by_a_user_only(release: Release, names: list[str]) -> None:
    release.model_name += f"{len(names)}"
    model, files = release.register("many")
    metadata = json.loads((files / exported.METADATA_FILE).read_text())
    (files / exported.METADATA_FILE).write_text(json.dumps(metadata | {"class_names": names}))
    assert release.compare("few") == expected(False, "", f"{model}@1")
    assert "but not 'gone'; rename the folders back if they are the same classes" in release.page()
    assert outcome.notes(str(release.checkpoints("few"))).comparison["champion"] == f"{model}@1"
    assert release.compare("few", force_promotion=True).is_promoted


@pytest.mark.parametrize(
    ("damage", "message", "is_final"),
    [
        (lambda files: (files / exported.SEEN_FILE).unlink(), "which images the champion has seen", True),
        (lambda files: (files / exported.SEEN_FILE).write_bytes(b""), "images the champion has seen", True),
        (lambda files: (files / exported.METADATA_FILE).unlink(), "no exported model at", False),
        # They may come back.
        (lambda files: shutil.rmtree(files), "the champion cannot be evaluated", False),
        # All of today's test images are among those that the champion was trained on.
        (lambda files: None, "only 0 test images were seen by neither model", True),
    ],
)
def test_a_champion_that_cannot_be_compared_stays_unless_a_user_decides_otherwise(
    release: Release, damage: Callable[[Path], object], message: str, is_final: bool
) -> None:
    release.model_name += message[:5].replace(" ", "")
    model, files = release.register("few")
    test = (line for line in image_list.read(release.data.directory) if line["split"] == "test")
    seen.write(files / exported.SEEN_FILE, seen.of_lines(test))
    damage(files)
    assert not release.compare("many").is_promoted
    assert message in release.page()
    noted = outcome.notes(str(release.checkpoints("many"))).comparison
    assert message in noted["reason"]
    assert bool(noted["champion"]) == is_final
    assert release.compare("many", force_promotion=True) == expected(True, "", f"{model}@1")
    assert message in release.page()


def test_a_run_does_not_compete_with_its_own_version(release: Release) -> None:
    """After a kill between upload and record, the version is found again; nothing of it is needed."""
    model, files = release.register("few")
    shutil.rmtree(files)
    assert release.compare("few", must_improve=True) == expected(True, f"{model}@1", f"{model}@1")
    # With another server it is another version, which competes with nothing.
    assert release.compare("few", must_improve=True, serving_image="serving:2") == expected(True, "", f"{model}@1")
    assert "is the champion already" in release.page()
    assert "no champion" not in release.page()


def test_a_registered_run_that_a_better_one_has_replaced_does_not_come_back(release: Release) -> None:
    parent = release.register("few")[0]
    release.register("many", parent)
    assert release.compare("few", force_promotion=True) == expected(False, f"{parent}@1", f"{parent}@2")
    assert "and the newer version 2 is the champion; to promote it, give it the alias" in release.page()


def test_an_undecided_version_that_is_older_than_the_champion_was_not_replaced(release: Release) -> None:
    parent = release.register("few")[0]
    registry = Registry(region="us-central1", pipeline_root=str(release.folder))
    registry.label_version(f"{parent}@1", {labels.PROMOTION: labels.UNDECIDED})
    release.register("many", parent)
    assert not release.compare("few", force_promotion=True).is_promoted
    assert "and the newer version 2 is the champion; to promote it, give it the" in release.page()
    assert "replaced" not in release.page()


def test_a_model_that_is_not_better_than_a_constant_answer_is_not_registered(release: Release) -> None:
    directory = str(release.checkpoints("few"))
    note_evaluation(directory, 0.5, verdict="not-better")
    refused = release.compare("few", deploy_endpoint="live")
    assert refused == expected(False, "", "")
    assert "not-better, says the test; force_promotion promotes it anyway" in release.page()
    forced = release.compare("few", deploy_endpoint="live", force_promotion=True)
    assert forced == expected(True, "", "")._replace(deploy_endpoint="live")
    assert "by force_promotion; not-better, says the test; there is no champion" in release.page()
    assert labels_at_upload(directory)["promotion"] == "forced"
    note_evaluation(directory, 0.5)
    assert release.compare("few", force_promotion=True).is_promoted
    assert labels_at_upload(directory)["promotion"] == "better"


def test_a_better_model_than_the_champion_is_refused_if_it_is_not_better_than_a_constant_answer(
    release: Release,
) -> None:
    model, _ = release.register("few")
    note_evaluation(str(release.checkpoints("many")), 0.75, verdict="not-better")
    assert release.compare("many") == expected(False, "", f"{model}@1")
    assert release.compare("many", force_promotion=True).is_promoted
    assert "by force_promotion; not-better, says the test; 79.41%" in release.page()
    note_evaluation(str(release.checkpoints("many")), 0.75)
    assert release.compare("many").is_promoted


def test_with_few_test_images_a_model_is_registered_without_an_alias(
    release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(release.checkpoints("few"))
    note_evaluation(directory, 1.0, verdict="undecided")
    found = release.compare("few", deploy_endpoint="live")
    assert found == expected(False, "", "")._replace(next="export")
    assert "not deployed to live: the model is not promoted" in capsys.readouterr().out
    assert "registered without the alias champion" in release.page()
    assert labels_at_upload(directory)["promotion"] == "undecided"
    forced = release.compare("few", deploy_endpoint="live", force_promotion=True)
    assert forced.is_promoted


@pytest.mark.parametrize("damage", ["missing", "edited", "without a seal", "of another checkpoint", "no JSON"])
def test_without_an_intact_evaluation_nothing_is_promoted(release: Release, damage: str) -> None:
    directory = release.checkpoints("few")
    path = directory / "evaluation.json"
    note_evaluation(str(directory), 0.5, verdict="not-better")
    content = json.loads(path.read_text())
    edited = {"checkpoint_sha256": "0" * 64} if "another" in damage else {"verdict": "better"}
    path.write_text(json.dumps(seal.add_seal(content | edited) if "another" in damage else content | edited))
    if damage == "without a seal":
        path.write_text(json.dumps(seal.without(content | edited)))
    elif damage == "no JSON":
        path.write_text("{" * 1000)
    elif damage == "missing":
        path.unlink()
    with pytest.raises(UserError, match=r"has no intact evaluation\.json of its best checkpoint; run the"):
        release.compare("few", force_promotion=True)
    note_evaluation(str(directory), 0.5)
