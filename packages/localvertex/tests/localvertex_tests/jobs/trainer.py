"""A small synchronous trainer: chief and workers synchronise over sockets, and write event logs as in docs/events.md.

`python trainer.py NUM_STEPS SECONDS_PER_STEP SAVE_EVERY [PATIENCE [STAYS]]`; the seconds may be the path of a file that
contains them, and the last step waits until they are 0. While the file PATIENCE exists, processes wait for a silent
peer. With STAYS, such as `8,20`, the first process of each replica trains up to step 8 and the second up to step 20,
and the notice of a maintenance permits 5 steps more; there they stay, in contact with their peers. A preempted process
trains no further: it could reach the step of the next fault, which then finds no process. The chief saves the step in
the checkpoint folder; all restore it. A process that loses a peer exits with 134, like the real trainer. The "weights"
are the sum of squares of all steps that were trained and kept.
"""

import json
import math
import os
import pathlib
import signal
import socket
import sys
import time
import urllib.request
from typing import Any

patience = pathlib.Path(sys.argv[4] if len(sys.argv) > 4 else "none")
stays = [int(step) for step in sys.argv[5].split(",")] if len(sys.argv) > 5 else []
num_steps, save_every = int(sys.argv[1]), int(sys.argv[3])
replica = json.loads(os.environ["CLUSTER_SPEC"])["task"]
config = json.loads(os.environ.get("TF_CONFIG") or '{"cluster": {}, "task": {"type": "chief", "index": 0}}')
checkpoints = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"])
events = checkpoints / "events" / f"{replica['type']}-{replica['index']}.jsonl"
events.parent.mkdir(parents=True, exist_ok=True)
is_chief = config["task"]["type"] == "chief"
PEER_SECONDS = 3


def write(event: str, **fields: Any) -> None:
    with events.open("a") as file:
        file.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")


def pace() -> float:
    """Return the seconds per step."""
    return float(pathlib.Path(sys.argv[2]).read_text() if "/" in sys.argv[2] else sys.argv[2])


def leave(*_: object) -> None:
    write("exit", code=143)
    os._exit(143)


def metadata(name: str) -> str:
    url = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/{name}"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})) as answer:
        return str(answer.read().decode())


def connect() -> list[socket.socket]:
    """Connect the chief to each worker, a worker to the chief."""
    addresses = {role: [each.rpartition(":") for each in found] for role, found in config["cluster"].items()}
    workers = addresses.get("worker", [])
    if is_chief:
        if not workers:
            return []
        server = socket.create_server(("127.0.0.1", int(addresses["chief"][0][2])))
        return [server.accept()[0] for _ in workers]
    host, _, port = addresses["chief"][0]
    while True:
        try:
            return [socket.create_connection((host, int(port)))]
        except OSError:
            time.sleep(0.02)


def heard(peer: socket.socket) -> bytes:
    """Return what a peer sends."""
    while True:
        peer.settimeout(PEER_SECONDS)
        try:
            return peer.recv(1)
        except TimeoutError:
            if not patience.exists():
                raise


def meet(peers: list[socket.socket], *, is_held: bool) -> bool:
    """Return when all processes are at the same step, and whether the chief holds the training there."""
    answer = b"h" if is_held else b"x"
    for peer in peers:
        if not is_chief:
            peer.sendall(b"x")
        word = heard(peer)
        if word not in (b"x", b"h"):
            raise OSError("lost the peer")
        answer = answer if is_chief else word
    for peer in peers if is_chief else []:
        peer.sendall(answer)
    return answer == b"h"


signal.signal(signal.SIGTERM, leave)
saved = checkpoints / "saved.json"
step, weights = json.loads(saved.read_text()) if saved.exists() else (0, 0)
num_earlier = events.read_text().count('"event": "start"') if events.exists() else 0
last_step = stays[num_earlier] if num_earlier < len(stays) else math.inf
write("start", num_steps=num_steps, pid=os.getpid())
peers = connect()
if step:
    # Only a process with peers has restored: one that is frozen before is not missed, because they wait for it.
    write("restore", step=step, seconds=0.0)
noticed = False
try:
    while step < num_steps:
        begin = time.time()
        time.sleep(pace())
        is_last = "/" in sys.argv[2] and step == num_steps - 1
        stays_here = meet(peers, is_held=is_last and pace() > 0) or step >= last_step
        if not stays_here:
            step, weights = step + 1, weights + (step + 1) ** 2
            took = time.time() - begin
            figures = {"loss": 2 / (step + 1), "accuracy": step / num_steps, "images_per_second": 32 / max(took, 1e-3)}
            write("steps", first_step=step, last_step=step, num_steps=num_steps, seconds=took, **figures)
        is_in_maintenance = metadata("maintenance-event") != "NONE"
        warned = is_in_maintenance or metadata("preempted") == "TRUE"
        if warned and not noticed:
            noticed, last_step = True, last_step + 5 * is_in_maintenance
            write("notice", message="the machine will be lost")
        if is_chief and not stays_here and (step % save_every == 0 or step == num_steps or warned):
            begin = time.time()
            staged = saved.with_suffix(".tmp")
            staged.write_text(json.dumps([step, weights]))
            staged.replace(saved)
            write("save", step=step, seconds=time.time() - begin)
except OSError:
    os._exit(134)
if is_chief:
    (checkpoints / "result.json").write_text(json.dumps({"final_step": step, "weights": weights}))
write("exit", code=0)
