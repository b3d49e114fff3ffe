"""Check the content of the registry and the endpoint of a work folder."""

import json
from pathlib import Path
from typing import Any


class ReleaseRecords:
    """The records of one model, which is on one endpoint.

    Args:
        work_dir: The work folder.
        name: The model's.
    """

    def __init__(self, work_dir: Path, name: str) -> None:
        self.work_dir, self._name = work_dir, name

    @property
    def champion(self) -> str:
        """The number of the version in use."""
        return str(self._aliases()["champion"])

    def check(self) -> None:
        """Check what may never happen, in the records."""
        aliases = self._aliases()
        assert aliases.keys() == {"champion", "default"}, aliases
        assert len(set(aliases.values())) == 1, aliases
        checkpoints = [self._checkpoint(number) for number in self.versions]
        assert len(set(checkpoints)) == len(checkpoints), "a run is registered twice"
        assert aliases["champion"] in self.versions, "the champion has no model"
        endpoint = self.endpoint
        deployed = {each["id"]: each["modelVersionId"] for each in endpoint["deployedModels"]}
        assert sum(endpoint["trafficSplit"].values()) == 100, endpoint
        assert endpoint["trafficSplit"].keys() <= deployed.keys(), endpoint
        assert set(deployed.values()) <= set(self.versions), "a deployed version has no model"

    @property
    def versions(self) -> list[str]:
        """The numbers of all versions."""
        return sorted(path.parent.name for path in self._model.glob("[0-9]*/model.json"))

    @property
    def served(self) -> dict[str, int]:
        """The numbers of the deployed versions with their traffic."""
        endpoint = self.endpoint
        split = endpoint["trafficSplit"]
        return {each["modelVersionId"]: split.get(each["id"], 0) for each in endpoint["deployedModels"]}

    def check_end(self) -> None:
        """Check that version 2 is the champion and has all traffic."""
        assert (self.versions, self.champion, self.served) == (["1", "2"], "2", {"2": 100})

    @property
    def _model(self) -> Path:
        return self.work_dir / "models" / self._name

    def _aliases(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self._model / "aliases.json").read_text())
        return found

    def _checkpoint(self, number: str) -> tuple[str, str]:
        """Return what a version, whose files must be there, was made of."""
        content = json.loads((self._model / number / "model.json").read_text())
        files = Path(content["artifact_uri"])
        assert files.is_relative_to(self._model / number), content
        names = ("saved_model.pb", "variables/variables.index", "assets.extra/seen_images")
        assert all((files / name).is_file() for name in names), f"version {number} has no model"
        labels = content["labels"] | content.get("version_labels", {})
        return labels["run-id"], labels["checkpoint"]

    @property
    def endpoint(self) -> dict[str, Any]:
        """The record of the endpoint."""
        (path,) = self.work_dir.glob("endpoints/*/endpoint.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found
