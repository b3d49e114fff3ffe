"""Runs a job on Beam's FnApiRunner (python -m ... FOLDER), and ends when its stdin is closed."""

import os
import shlex
import signal
import sys
import threading

from trainer.data.preparing.engines import beam

_NUM_WORKERS = 2


def main() -> None:
    """Run the pipeline; the process ends with an error if it fails, at once if a worker or the caller ends."""
    threading.Thread(target=_end_with_caller, daemon=True).start()
    # If a worker fails, its thread in Beam raises, and the pipeline would wait forever.
    threading.excepthook = _end
    _run(sys.argv[1])


def _run(folder: str) -> None:
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import SubprocessSDKEnvironment

    # The command of direct_running_mode=multi_processing, which does not quote the interpreter's path.
    command = f"exec {shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main"
    # By its class: DirectRunner may download another runner.
    runner = FnApiRunner(default_environment=SubprocessSDKEnvironment.from_command_string(command))
    # Without flags, because the arguments of this process are not for Beam.
    options = PipelineOptions(flags=[], direct_num_workers=_NUM_WORKERS)
    with apache_beam.Pipeline(runner=runner, options=options) as pipeline:
        beam.build(pipeline, folder)


def _end(details: threading.ExceptHookArgs) -> None:
    # Beam's threads may notice it in any order and raise different errors.
    print("a worker process has ended", file=sys.stderr, flush=True)
    os._exit(1)


def _end_with_caller() -> None:
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
