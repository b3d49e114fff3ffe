"""Write TensorBoard logs besides the curves: hyperparameters, images and a profile."""

import dataclasses
from typing import Any

from exact_resume.events.observers import Observer
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner
from trainer.loop.board import hyperparameters, images
from trainer.loop.board.board import TRAIN, VALIDATION, NoBoard
from trainer.loop.board.profile import Profiler, parse


@dataclasses.dataclass(frozen=True, kw_only=True)
class Logs:
    """Adds them; a failure costs the logs and never the run."""

    board: NoBoard
    """Of the process, which receives the curves as an observer."""
    identity: dict[str, Any]
    run_id: str
    exact: bool
    augment: str
    """A name of `trainer.data.augmentation.AUGMENTATIONS`."""
    class_names: tuple[str, ...]
    profile_steps: str
    """Value of --profile-steps."""

    def show_start(self, examples: Examples, sampler: Sampler) -> None:
        """Add hyperparameters and training images, if no earlier attempt has."""

        def show() -> None:
            shown = hyperparameters.summary(self.identity, self.run_id, exact=self.exact)
            self.board.add_once(VALIDATION, "hparams", lambda: shown, step=0)
            taken = images.training_images(examples, sampler, self.augment)
            self.board.add_once(TRAIN, "images", lambda: images.labelled_grid(*taken, self.class_names), step=0)

        self.board.attempt(show)

    def show_end(self, learner: Learner, validation: Examples) -> None:
        """Add predictions of the final weights."""

        def show() -> None:
            found = images.predictions(learner.model, validation)
            self.board.add(VALIDATION, lambda: images.prediction_grid(*found, self.class_names), step=learner.step)

        self.board.attempt(show)

    def profiler(self, log_event: Observer) -> Profiler:
        """Make the profiler of the requested steps, on the chief."""
        folder = self.board.folder(TRAIN)
        return Profiler(parse(self.profile_steps), folder, submit=self.board.submit, log_event=log_event)
