#!/bin/sh
# A step of kfp 2.17.0 (@dsl.component) does not get the SIGTERM of a container that is stopped. The command that the
# compiler writes is `sh -ec SCRIPT`, whose last line starts python3 without `exec`. As process 1, the shell has no
# handling of SIGTERM and the kernel drops it, so a handler in the component's code never runs, and what it would have
# released (a job elsewhere, a lock) stays until the SIGKILL. With `exec` before python3 the handler runs.
#
# Seen on 2026-11-29 with kfp 2.17.0, dash 0.5.12, bubblewrap 0.8.0: "as compiled: no handler ran", "with exec: handler
# ran". Exits with 1 if that changes, with 2 without bubblewrap. Python 3.11 to 3.13.
set -eu
command -v bwrap > /dev/null || { echo "bubblewrap was not found" >&2; exit 2; }
python=$(command -v python3) || { echo "python3 was not found" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check kfp==2.17.0
PATH="$folder/env/bin:$PATH"
cd "$folder"
cat > program.py <<'PROGRAM'
import pathlib
import signal
import subprocess
import sys
import time

from kfp import dsl


@dsl.component(install_kfp_package=False)
def wait(folder: str) -> None:
    import pathlib
    import signal
    import sys
    import time

    def stop(number, frame):
        pathlib.Path(folder, "handled").touch()
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)
    pathlib.Path(folder, "started").touch()
    time.sleep(60)


container = wait.component_spec.implementation.container


def is_handled(name, command):
    folder = pathlib.Path(name).absolute()
    folder.mkdir()
    given = '{"inputs": {"parameterValues": {"folder": "%s"}}, "outputs": {"outputFile": "%s/out.json"}}'
    words = [*command, "--executor_input", given % (folder, folder), "--function_to_execute", "wait"]
    mask = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--as-pid-1", "--die-with-parent"]
    process = subprocess.Popen([*mask, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if (folder / "started").exists():
                break
            time.sleep(0.1)
        else:
            sys.exit(f"{name}: the step did not start")
        # Process 1 of the container is the child of bubblewrap.
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        subprocess.run(["kill", "-TERM", children[0]], check=True)
        time.sleep(3)
        return (folder / "handled").exists()
    finally:
        process.kill()
        process.wait()


compiled = list(container.command)
started = [word.replace("_KFP_RUNTIME=true python3", "_KFP_RUNTIME=true exec python3") for word in compiled]
found = [is_handled("compiled", compiled), is_handled("exec", started)]
for name, is_there in zip(("as compiled", "with exec"), found):
    print(f"{name}: {'handler ran' if is_there else 'no handler ran'}")
sys.exit(0 if found == [False, True] else 1)
PROGRAM
python program.py
