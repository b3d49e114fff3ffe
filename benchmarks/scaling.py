"""One device compared with several at the same global batch size.

Run it as `python -m benchmarks.scaling`. The network and the 28x28 pixels are from the 2018 article on several GPUs
(an epoch in 21 seconds on one GPU, in 9 on several). Devices are the machine's GPUs. Without GPUs, the CPU is split
into logical devices that share its cores: the figures then show the cost of the distribution, and are marked.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.measuring import Clock, Took, median, num_gpus, parse
from benchmarks.train import trainer_rate
from trainer.prepare import prepare


def main() -> None:
    """Print images per second, and the seconds for an epoch of MNIST's 60,000 images at that rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mnist-cnn")
    parser.add_argument("--image-size", type=int, default=28)
    parser.add_argument("--global-batch-size", type=int, default=64)
    parser.add_argument("--devices", type=int, default=2, help="logical devices, if there are no GPUs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="duration of each measurement, without warm-up")
    options = parse(parser, repeats=1, seconds=0.1)
    gpus = num_gpus()
    num_devices = gpus or options.devices
    several = [] if gpus > 1 else [f"--logical-cpu-devices={num_devices}"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus))))
    kind = "GPUs" if gpus > 1 else f"logical devices share {os.cpu_count()} CPU cores: no gain is possible"
    if gpus == 1:
        raise SystemExit("only one GPU is visible, so there is nothing to compare; CUDA_VISIBLE_DEVICES= uses the CPU")
    rates: dict[int, list[float]] = {1: [], num_devices: []}
    costs: dict[int, list[Took]] = {1: [], num_devices: []}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        prepare(source="digits", output_directory=str(data), report_path=f"{data}.html", image_size=options.image_size)
        for _ in range(options.repeats):
            for count, flags in ((1, []), (num_devices, several)):
                os.environ["CUDA_VISIBLE_DEVICES"] = visible.partition(",")[0] if count == 1 else visible
                clock = Clock()
                steps = trainer_rate(
                    data, options.model, options.global_batch_size, options.seconds, 1, *flags, "--xla=off"
                )
                rates[count].append(steps * options.global_batch_size)
                costs[count].append(clock.took())
    print(f"{options.model}, global batch {options.global_batch_size}, medians of {options.repeats} rounds; {kind}")
    medians = {count: statistics.median(found) for count, found in rates.items()}
    for count, rate in medians.items():
        unit = "devices" if count > 1 else "device"
        print(f"{count} {unit:<7} {rate:9,.0f} img/s   {60_000 / rate:8.1f} s for 60,000 images")
        print(f"  the processes of the trainer, imports included: {median(costs[count])}")
    print(f"{num_devices} devices are {medians[num_devices] / medians[1]:.2f} times as fast as one")


if __name__ == "__main__":
    main()
