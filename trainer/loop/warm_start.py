"""Gives a training that begins at step 0 the weights of another run or of a registered model."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import seen, starting_weights, variables
from trainer.learner import class_rows
from trainer.learner.learner import Learner
from trainer.models import references


@dataclasses.dataclass(frozen=True, kw_only=True)
class WarmStart:
    """The classes of the run, and where its starting weights are."""

    class_names: tuple[str, ...] = ()
    image_size: int = 0
    folder: str = ""
    """Value of --starting-weights; empty: the configuration names no weights of another run."""

    def apply(self, learner: Learner, identity: Mapping[str, Any]) -> str:
        """Assign the weights that the identity names to the network; return what was taken, empty if it names none.

        Raises:
            UserError: The weights are missing, damaged or do not fit.
        """
        wanted = str(identity.get("weights", ""))
        if not references.is_reference(wanted):
            return ""
        found = starting_weights.read(self.folder, wanted)
        if found.model != learner.config.model:
            raise UserError(
                f"the starting weights are of the network {found.model}, this run trains {identity['model']}"
            )
        name = learner.config.model
        values = class_rows.fit(
            found.arrays,
            found.class_names,
            learner.model.variables,
            self.class_names,
            name=name,
            image_size=self.image_size,
        )
        variables.assign(learner.model.variables, values)
        learner.refresh()
        return f"starting from {wanted[:19]}... ({name}): {class_rows.describe(found.class_names, self.class_names)}"

    def describe(self, learner: Learner) -> dict[str, Any]:
        """Return what another run has to know to start from this one's checkpoints."""
        return {
            "class_names": list(self.class_names),
            "image_size": self.image_size,
            "num_variables": len(learner.model.variables),
        }


def records_of_seen_images(weights: str, folder: str) -> list[str]:
    """Return the files with the images of the models that a training starts from.

    Args:
        weights: Field of the configuration. A file of weights counts as trained on other images, such as ImageNet's,
            unless a record is beside it, as in an exported model.
        folder: Value of --starting-weights.
    """
    if references.is_reference(weights):
        return [storage.join(folder, seen.FILE)]
    beside = storage.join(os.path.dirname(weights) or ".", seen.FILE)
    return [beside] if references.is_file(weights) and storage.exists(beside) else []
