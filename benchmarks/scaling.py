"""One device against several at the same global batch: the same steps, and how much sooner they are done.

Run it as `python benchmarks/scaling.py`, as the 2018 article on several GPUs did (its network, 28x28 pixels; an epoch
in 21 seconds on one GPU, in 9 on several). Devices are the machine's GPUs. Where there are none, the processor is
divided into logical devices, which share its cores: then the figures show what the distribution costs, not what it
gains, and are marked so.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from train import trainer_rate

from trainer.prepare import prepare

ONE_DEVICE = "--distribution-strategy=one-device"
MIRRORED = "--distribution-strategy=mirrored"


def num_gpus() -> int:
    """GPUs that TensorFlow sees; asked in a process of its own, because whoever asks keeps their memory."""
    code = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout.split()[-1])


def main() -> None:
    """Prints images per second, and the seconds of an epoch of MNIST's 60,000 images at that rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="mnist-cnn")
    parser.add_argument("--image-size", type=int, default=28)
    parser.add_argument("--global-batch-size", type=int, default=64)
    parser.add_argument("--devices", type=int, default=2, help="logical ones, where there are no GPUs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement, without warm-up")
    options = parser.parse_args()
    gpus = num_gpus()
    num_devices = gpus or options.devices
    several = [MIRRORED] if gpus > 1 else [MIRRORED, f"--logical-cpu-devices={num_devices}"]
    kind = (
        "GPUs" if gpus > 1 else f"logical devices of {os.cpu_count()} CPU cores: they share these, no gain is possible"
    )
    if gpus == 1:
        raise SystemExit("one GPU is visible; there is nothing to compare (CUDA_VISIBLE_DEVICES= takes the processor)")
    rates: dict[int, list[float]] = {1: [], num_devices: []}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        prepare(source="digits", output_directory=str(data), report_path=f"{data}.html", image_size=options.image_size)
        for _ in range(options.repeats):
            for count, flags in ((1, [ONE_DEVICE]), (num_devices, several)):
                steps = trainer_rate(
                    data, options.model, options.global_batch_size, options.seconds, 1, *flags, "--xla=off"
                )
                rates[count].append(steps * options.global_batch_size)
    print(f"{options.model}, global batch {options.global_batch_size}, medians of {options.repeats} turns; {kind}")
    medians = {count: statistics.median(found) for count, found in rates.items()}
    for count, rate in medians.items():
        print(f"{count} device(s) {rate:9,.0f} img/s   {60_000 / rate:8.1f} s for 60,000 images")
    print(f"{num_devices} devices are {medians[num_devices] / medians[1]:.2f} times as fast as one")


if __name__ == "__main__":
    main()
