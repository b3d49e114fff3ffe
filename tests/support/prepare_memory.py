"""Prepares a folder of images twice in a process of its own and prints its peak memory in KiB."""

import resource
import sys

from trainer.prepare import prepare

if __name__ == "__main__":
    source, output = sys.argv[1:]
    for name in ("full", "again"):
        prepare(
            source=source,
            output_directory=f"{output}-{name}",
            report_path=f"{output}-{name}.html",
            image_size=8,
            pipeline_root=f"{output}-root",
        )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
