"""Which worker does what when: the tasks of a run as they were done, and how long workers had nothing to do.

On a busy machine the clock says little. There the same tasks are laid out again by the processor time of each, on so
many cores that nobody else uses: the order is that of the pipeline itself.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from vivarig.jobs.job import Job
from vivarig.pipeline import tasks
from vivarig.pipeline.schedule import Waiting, nodes_of
from vivarig.pipeline.workers import LocalWorkers

__all__ = ["TaskTime", "WatchedWorkers", "idle_share", "laid_out", "print_timelines", "timeline"]

START_S = 0.9
"""What a worker's process takes to start, by processor time."""
_WORTH_A_LINE_S = 0.05


@dataclass(frozen=True)
class TaskTime:
    """One task: its worker's process, what it was, when it began and ended, and its processor time, s."""

    worker: int
    name: str
    begun: float
    ended: float
    cpu_seconds: float


class WatchedWorkers(LocalWorkers):
    """Workers that note when each task began and ended; times count from when they were made."""

    def __init__(self, count: int) -> None:
        self.made = time.monotonic()
        self.log: list[TaskTime] = []
        self.job: Job | None = None
        super().__init__(count)

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Hand out a task, and note it when it is done."""
        future = super().submit(function, *args, **named)
        if function is tasks.timed:
            self.job = args[1]
            name = name_of(args)
            future.add_done_callback(lambda done: self._note(name, done))
        return future

    def _note(self, name: str, future: Future[Any]) -> None:
        if future.exception() is None:
            done: tasks.Done = future.result()
            begun = done.begun - self.made
            self.log.append(TaskTime(done.worker, name, begun, begun + done.seconds, done.cpu_seconds))


def name_of(call: tuple[Any, ...]) -> str:
    """Return a few words for a task as the pipeline hands it out: (function, job, stage, ...)."""
    function, _, stage, *more = call
    return " ".join([stage, function.__name__, *(str(one) for one in more)])


def laid_out(log: list[TaskTime], job: Job, workers: int) -> list[TaskTime]:
    """Return the tasks of a run as so many workers with a core each would do them, by their processor time."""
    took = {task.name: task.cpu_seconds for task in log}
    stages = {task.name.split()[0] for task in log}
    waiting = Waiting([node for node in nodes_of(job, stages, workers) if name_of(node.call) in took])
    free = [(START_S, worker) for worker in range(workers)]
    running: list[tuple[float, int, tuple[str, str, str]]] = []
    done: list[TaskTime] = []
    now = START_S
    while waiting or running:
        while free and (node := waiting.next()) is not None:
            worker = heapq.heappop(free)[1]
            name = name_of(node.call)
            done.append(TaskTime(worker, name, now, now + took[name], took[name]))
            heapq.heappush(running, (now + took[name], worker, node.key))
        if not running:
            break
        now, worker, key = heapq.heappop(running)
        heapq.heappush(free, (now, worker))
        waiting.done(key)
    return done


def idle_share(log: list[TaskTime], workers: int, seconds: float) -> float:
    """Return the share of the workers' time in which they had no task."""
    return 1.0 - sum(task.ended - task.begun for task in log) / (workers * seconds)


def timeline(log: list[TaskTime], workers: int, seconds: float) -> list[str]:
    """Return lines to print: each task and each gap in the order of time, then what was idle."""
    lines = ["   from      to  seconds  processor s  worker  what"]
    numbers = {process: number for number, process in enumerate(dict.fromkeys(task.worker for task in log))}
    rows = [(task.begun, task.ended, task.cpu_seconds, numbers[task.worker], task.name) for task in log]
    for worker in range(workers):
        at = 0.0
        own = sorted((begun, ended) for begun, ended, _, who, _ in rows[: len(log)] if who == worker)
        for begun, ended in [*own, (seconds, seconds)]:
            rows.append((at, begun, 0.0, worker, "- idle" if at else "- starting"))
            at = ended
    for begun, ended, cpu, worker, name in sorted(rows):
        if ended - begun >= _WORTH_A_LINE_S:
            lines.append(f"{begun:7.2f} {ended:7.2f}  {ended - begun:7.2f}  {cpu:11.2f}  {worker:6d}  {name}")
    cpu = sum(task.cpu_seconds for task in log)
    share = 100 * idle_share(log, workers, seconds)
    lines.append(f"{seconds:.1f} s, {cpu:.1f} s of processor time, {workers} workers idle {share:.1f} % of the time")
    return lines


def print_timelines(log: list[TaskTime], quiet: list[TaskTime], workers: int, seconds: float) -> dict[str, float]:
    """Print what was done when, by the clock and laid out by processor time; return times and what was idle of them."""
    end = max(task.ended for task in quiet)
    print("\n".join(["By the clock:", *timeline(log, workers, seconds)]))
    print("\n".join(["By processor time, a core for each worker:", *timeline(quiet, workers, end)]))
    return {
        "seconds": seconds,
        "idle_share": idle_share(log, workers, seconds),
        "seconds_by_processor_time": end,
        "idle_share_by_processor_time": idle_share(quiet, workers, end),
    }
