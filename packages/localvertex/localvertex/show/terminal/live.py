"""The live view: the running steps, drawn on a terminal at most four times per second.

The drawing thread also prints what happened in between, so that a run of thousands of steps never waits for it.
"""

import math
import threading
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.text import Text

from localvertex._base.json_object import JsonObject
from localvertex.processes import logs
from localvertex.runner.display import Display
from localvertex.show.terminal.forecast import Forecast
from localvertex.show.terminal.lines import describe, opening_line
from localvertex.show.terminal.rows import align, between_words
from localvertex.show.terminal.summary import duration, state_text
from localvertex.store.task import State, Task

_SECONDS_BETWEEN_DRAWINGS = 0.25

_MAX_BAR_WIDTH, _MIN_BAR_WIDTH = 40, 8

_FIGURES = (
    ("loss", "loss {:.4g}"),
    ("accuracy", "accuracy {:.4f}"),
    ("images_per_second", "{:,.0f} images/s"),
)


class Live(Display):
    """Draws the running steps below the events so far."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._root: Task | None = None
        self._forecast: Forecast | None = None
        self._lock = threading.Lock()
        self._happened: list[Text] = []
        self._drawn: list[Text] = []
        self._has_ended = threading.Event()
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)
        self._thread = threading.Thread(target=self._keep_drawing, name="live view", daemon=True)

    def on_start(self, run_dir: Path, root: Task) -> None:
        """Start drawing."""
        self._root, self._forecast = root, Forecast.of(run_dir)
        self._print(Text(opening_line(run_dir, root)))
        self._live.start()
        self._thread.start()

    def on_change(self, task: Task) -> None:
        """Print a finished step above the running ones, where it stays on the screen."""
        if task.state.is_final and task.is_step and task.path:
            self._print(Text(f"{task.title}: {describe(task)}"))

    def on_warning(self, text: str) -> None:
        """Print it above the steps."""
        self._print(Text(between_words(f"warning: {text}", self._console.width), style="yellow"))

    def on_report(self, text: str) -> None:
        """Print it above the steps."""
        self._print(Text(between_words(text, self._console.width)))

    def on_end(self, record: JsonObject) -> None:
        """Stop drawing; the summary follows."""
        self._has_ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._root = None
        self._draw()
        self._live.stop()

    def _print(self, text: Text) -> None:
        if self._root is None and not self._has_ended.is_set():
            # The checks before the run take longest.
            return self._console.print(text, soft_wrap=True)
        with self._lock:
            self._happened.append(text)

    def _keep_drawing(self) -> None:
        while not self._has_ended.wait(_SECONDS_BETWEEN_DRAWINGS):
            self._draw()

    def _draw(self) -> None:
        """Print the events since the last drawing, and draw the steps if they have changed."""
        with self._lock:
            happened, self._happened = self._happened, []
        steps = Steps(self._root, self._console.size.width, self._console.size.height, self._forecast)
        if not happened and steps.lines == self._drawn:
            return
        self._drawn = steps.lines
        self._live.update(Group(*steps.lines))
        # One write, so that nothing flickers.
        with self._console:
            self._live.refresh()
            if happened:
                # If the terminal itself wraps a path, the path can be copied as a whole.
                self._console.print(Text("\n").join(happened), soft_wrap=True)


def _last_line(log: Path | None) -> str:
    """Return the last line that a program wrote; empty if there is none."""
    try:
        return logs.last_line(log) if log else ""
    except OSError:
        return ""


class Steps:
    """The running steps as lines that fit a terminal of this size, the steps that follow, and the time left."""

    def __init__(self, root: Task | None, width: int, height: int, forecast: Forecast | None = None) -> None:
        self._width = width
        steps = [task for task in _unfinished_tasks(root) if task.is_step] if root else []
        shown = [task for task in steps if task.state is State.RUNNING or task.note]
        self.lines: list[Text] = []
        heads = [
            (Text(each.title), state_text(each.state), Text(duration(each.seconds) if each.started_at else ""))
            for each in shown
        ]
        for number, (task, head) in enumerate(zip(shown, align(heads, width=width, right=2), strict=True)):
            block = [*head, *self._below(task)]
            if len(self.lines) + len(block) + 2 + bool(forecast) > height:
                left = f"{len(shown) - number}{' more' if number else ''} steps"
                self.lines.append(Text(left, style="dim"))
                break
            self.lines += block
        waiting = [task.title for task in steps if task not in shown]
        num_closed = forecast.num_closed(root) if forecast and root else 0
        if num_more := len(waiting) + num_closed:
            # A closed dag may have a condition that skips it.
            count = "more" if num_more == math.inf else f"{'up to ' * bool(num_closed)}{num_more - bool(waiting)} more"
            text = " and ".join([*waiting[:1], *[count] * (num_more > 1 or not waiting)])
            self.lines.append(Text(f"PENDING: {text}", style="dim"))
        if root and forecast and (seconds := forecast.seconds_left(root)) is not None:
            self.lines.append(Text(f"about {duration(seconds)} left, as in run {forecast.run_id}", style="dim"))

    def _below(self, task: Task) -> list[Text]:
        """Return the lines of one step: its last log line, or its replicas, all in one form, and the latest figures."""
        if task.state is not State.RUNNING:
            return [self._line(task.note)]
        replicas = (task.custom_job or {}).get("replicas", [])
        if not replicas:
            return [self._line(text) for text in [_last_line(task.log)] if text]
        is_plain = len(replicas) == 1 and replicas[0]["num_starts"] < 2
        lines = []
        for each in replicas:
            name, state = "" if is_plain else f"{each['name']}: ", replica_state(each)
            if each["num_steps"]:
                lines.append(self._bar(each, name, state))
            elif news := _last_line(task.folder / f"{each['name']}.log"):
                lines.append(self._line(news if is_plain else f"{name}{state}: {news}"))
            elif not is_plain:
                lines.append(self._line(f"{name}{state}"))
        trained = max(replicas, key=lambda each: bool(each["num_steps"]))
        figures = [
            form.format(trained[field])
            for field, form in _FIGURES
            if trained["num_steps"] and trained.get(field) is not None
        ]
        lines += [self._line(", ".join(figures))] if figures else []
        stalled = between_words(f"  {(task.custom_job or {}).get('stalled', '')}", self._width).splitlines()
        return lines + [Text(line, style="yellow") for line in stalled if line.strip()]

    def _bar(self, replica: JsonObject, name: str, text: str) -> Text:
        """Return the progress of a replica's training as a bar, with its state and the time left."""
        step, num_steps = replica["step"], replica["num_steps"]
        if left := replica["is_running"] and replica.get("seconds_left"):
            text += f", {duration(left)} left"
        size = min(_MAX_BAR_WIDTH, self._width - cell_len(name) - len(text) - 4)
        if size < _MIN_BAR_WIDTH:
            return self._line(f"{name}{text}")
        filled = min(size, size * step // num_steps)
        return Text.assemble(f"  {name}", ("━" * filled, "blue"), ("─" * (size - filled), "dim"), f"  {text}")

    def _line(self, text: str) -> Text:
        """Return an indented line, cut at the width of the terminal."""
        line = Text(f"  {text}", style="dim", no_wrap=True)
        line.truncate(self._width, overflow="ellipsis")
        return line


def _unfinished_tasks(task: Task) -> list[Task]:
    """Return the tasks of a dag that have not ended; in an ended dag there are none."""
    open_tasks = [child for child in task.children.values() if not child.state.is_final]
    return [each for child in open_tasks for each in (child, *_unfinished_tasks(child))]


def replica_state(replica: JsonObject) -> str:
    """Describe a replica of a custom job: its step, and how often it was started."""
    if not replica["is_running"]:
        return f"exit code {replica['exit_code']}" if replica["exit_code"] is not None else "not started"
    step = f"step {replica['step']} of {replica['num_steps']}" if replica["num_steps"] else "running"
    return f"{step}, start {replica['num_starts']}" if replica["num_starts"] > 1 else step
