"""The settings of `prepare` that are fixed for a project."""

import dataclasses

from trainer.data.preparing.dataflow import settings as dataflow
from trainer.settings import BELOW_ONE, check_all, setting

_PREFIX = "dataflow_"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """Limits for the images, and the Dataflow workers that may read them."""

    max_bad_fraction: float = setting(
        "Fraction of unreadable images (0 to 1) above which the run fails.", BELOW_ONE, default=0.1
    )
    strict: str = setting("Warnings about images that count as errors, e.g. leaks,label-conflicts.", default="")
    dataflow_machine_type: str = setting("Machine type of each Dataflow worker.", default="e2-standard-4")
    dataflow_max_workers: int = setting("Maximum number of Dataflow workers, 1 to 4000.", dataflow.WORKERS, default=10)
    dataflow_disk_size_gb: int = setting("Disk of each Dataflow worker, 30 to 65536.", dataflow.DISK_GB, default=50)
    dataflow_subnetwork: str = setting("Subnetwork of the workers: regions/R/subnetworks/NAME.", default="")
    dataflow_service_account: str = setting("Service account of the workers; empty for the default one.", default="")

    def __post_init__(self) -> None:
        """Refuse values that the step would refuse.

        Raises:
            UserError: A value is wrong.
        """
        check_all(self)
        if self.strict:
            # It imports NumPy, which a compilation does not need.
            from trainer.data.preparing.quality.kinds import parse_strict

            parse_strict(self.strict)
        dataflow.check_texts(self.workers)

    @property
    def workers(self) -> dict[str, str | int]:
        """The fields of the Dataflow job, under the names that it gives them."""
        values = dataclasses.asdict(self).items()
        return {name.removeprefix(_PREFIX): value for name, value in values if name.startswith(_PREFIX)}
