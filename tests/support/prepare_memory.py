"""Prepares a folder of images in a process of its own and prints its peak memory in KiB."""

import resource
import sys

from trainer.prepare import prepare

if __name__ == "__main__":
    source, output = sys.argv[1:]
    prepare(source=source, output_directory=output, report_path=f"{output}.html", image_size=8)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
