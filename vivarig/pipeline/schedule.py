"""The tasks of a job in the order their needs allow: parts of one stage start while another's are still being made."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Protocol

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from skeleton.bodies import BODIES
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import MARGIN, chunk_spans
from vivarig.jobs.first_looks import PHASE, Looked
from vivarig.jobs.job import Job
from vivarig.pipeline import rehearsal, tasks
from vivarig.pipeline.stages import STAGES, Stage
from vivarig.report.groups import GROUPS, needed
from vivarig.stages.options import SilhouetteOptions, SkeletonOptions, TrackOptions

__all__ = ["Node", "Waiting", "Workers", "nodes_of", "rehearsal_nodes", "run_nodes"]

SECTIONS = "sections"
#: Which ready task goes first: what others wait for longest. (Compiling ahead is the longest task of a first run, and
#: cameras that two workers begin to learn at the same time are compiled for twice.)
_LATE = "late"
_TOGETHER = "together"
_ORDER = ("rehearse", "report", "skeleton", SECTIONS, "track", "silhouettes", _LATE, _TOGETHER, "hull")
_LOOKED_AT = 6
"""Stretches that the preparation of a stage looks at: an animal sits in one, walks in another."""
#: Models that must see every image once, in order: their silhouettes cannot be cut.
_IN_ORDER = ("mog2", "knn")
_LEARN = "learn"
_REHEARSE = "rehearse"
_FIRST = (_LEARN, "prepare", PHASE)
"""What the parts of a stage wait for."""
_MANY = 400
"""Tasks of a long recording, at least."""


class Workers(Protocol):
    """Where tasks run: here, in local processes, or on a cluster."""

    @property
    def capacity(self) -> int:
        """How many tasks run at a time."""
        ...

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run a task."""
        ...


@dataclass(frozen=True, eq=False)
class Node:
    """A task with what it waits for.

    Attributes:
        key: (stage, what, part).
        call: function and its arguments.
        needs: keys of the tasks before it.
        frames: that it brings the stage on.
        late: whether it is to wait until silhouettes are cut out, though it could begin.
    """

    key: tuple[str, str, str]
    call: tuple[Any, ...]
    needs: frozenset[tuple[str, str, str]]
    frames: int = 0
    late: bool = False


def nodes_of(job: Job, todo: Iterable[str], threads: int) -> list[Node]:
    """Return the tasks that bring the stages ``todo`` of a job up to date; the others are taken as they are."""
    wanted = [stage for stage in STAGES if stage.name in set(todo)]
    names = {stage.name for stage in wanted}
    nodes: list[Node] = []
    cut = [stage for stage in wanted if stage.phases and not _in_order(job, stage)]
    cut_out = any(stage.name == "silhouettes" for stage in cut)
    for stage in wanted:
        if stage in cut:
            nodes += _shared_nodes(job, stage, threads, _looked_first(job, cut)) if stage.shared else []
            nodes += _part_nodes(job, stage, threads)
        else:
            needs = frozenset((need, "join", "") for need in stage.needs if need in names)
            made = {"skeleton": _skeleton_nodes, "report": _report_nodes}.get(stage.name, _none)(job, needs)
            call = (tasks.whole, job, stage.name)
            nodes += [*made, Node((stage.name, "join", ""), call, _keys(made) | needs, len(job.whole))]
    if any("silhouettes" in stage.needs for stage in cut) and not cut_out:
        before = frozenset({("silhouettes", "join", "")}) if "silhouettes" in names else frozenset()
        nodes += [
            Node(("silhouettes", "masks", str(span)), (tasks.extract, job, "silhouettes", span), before)
            for span in job.spans("silhouettes")
        ]
    return nodes


def rehearsal_nodes(job: Job, todo: Iterable[str]) -> list[Node]:
    """Return the task that compiles ahead what tracking needs, where that was not done and silhouettes come first."""
    if not {"silhouettes", "track"} <= set(todo) or not rehearsal.is_due():
        return []
    subject = str(job.options(TrackOptions).subject or job.recording.subject)
    key = ("track", _REHEARSE, "")
    return [Node(key, (tasks.rehearse, job, "track", subject), frozenset())] if subject in BODIES else []


def _in_order(job: Job, stage: Stage) -> bool:
    return stage.name == "silhouettes" and job.options(SilhouetteOptions).model in _IN_ORDER


def _shared_nodes(job: Job, stage: Stage, threads: int, first: Looked) -> list[Node]:
    """Return the tasks that make what the parts of a stage share.

    Cameras are learnt one by one before they are learnt together. The frames of ``first``, which a preparation looks
    at, are cut out before all others.
    """
    if stage.name == "silhouettes":
        cameras = range(len(job.recording.of_kind("light")))
        learnt = [
            Node((stage.name, _LEARN, f"{k:04d}"), (tasks.learn, job, stage.name, k, first), frozenset())
            for k in cameras
        ]
        return [*learnt, replace(_prepare_node(job, stage.name, threads, Looked()), needs=_keys(learnt))]
    looked = first if first.spans else Looked(_looked_at(job.stretches, job.spans(stage.name)) if _looks(job) else ())
    known = frozenset({("silhouettes", "prepare", "")})
    nodes = [
        Node(("silhouettes", PHASE, str(span)), (tasks.look, job, "silhouettes", span, len(first.spans)), known)
        for span in first.spans
    ]
    return [*nodes, _prepare_node(job, stage.name, threads, looked)]


def _looked_first(job: Job, cut: Sequence[Stage]) -> Looked:
    """Return the stretches of which a few frames are cut out first: where silhouettes and track are made in one run."""
    if not {"silhouettes", "track"} <= {stage.name for stage in cut} or not _looks(job):
        return Looked()
    spans = _looked_at(job.stretches, job.spans("track"))
    return Looked(spans, first=bool(spans))


def _prepare_node(job: Job, stage: str, threads: int, looked: Looked) -> Node:
    """Return the task that makes what the parts of a stage share; it needs the silhouettes that it looks at."""
    if looked.first:
        needs = frozenset(("silhouettes", PHASE, str(span)) for span in looked.spans)
    else:
        parts = job.spans("silhouettes")
        needs = frozenset(
            ("silhouettes", "masks", str(part)) for span in looked.spans for part in _meeting(parts, span)
        )
    return Node((stage, "prepare", ""), (tasks.prepare, job, stage, threads, looked), needs)


def _looks(job: Job) -> bool:
    """Return whether silhouettes are looked at before the subject is tracked: not where size and shape are known."""
    options = job.options(TrackOptions)
    subject = options.subject or job.recording.subject
    return options.scale is None or (options.adapt and str(subject) in BODIES)


def _part_nodes(job: Job, stage: Stage, workers: int) -> list[Node]:
    """Return the parts of a stage and what puts them together.

    Parts of the track are long, and the last of them cannot begin before the last silhouettes are cut out. So these
    come first, and then all workers track; only parts that would be left over in the last round are tracked before.
    """
    name, spans = stage.name, job.spans(stage.name)
    before_silhouettes = len(spans) % workers if name == "track" else len(spans)
    nodes = []
    masks = job.spans("silhouettes")
    for phase_index, phase in enumerate(stage.phases):
        for index, span in enumerate(spans):
            if phase_index == 0:
                near = _meeting(masks, span.widened(MARGIN, Span(spans[0].first, spans[-1].stop)))
                before = {("silhouettes", "masks", str(part)) for part in near} if stage.needs else set()
                before |= {(name, "prepare", "")} if stage.shared else set()
            else:
                near = spans[max(0, index - 1) : index + 2]
                before = {(name, stage.phases[phase_index - 1], str(part)) for part in near}
            nodes.append(
                Node(
                    (name, phase, str(span)),
                    (tasks.part, job, name, phase, span),
                    frozenset(before),
                    len(span) if phase_index == 0 else 0,
                    late=phase_index == 0 and index >= before_silhouettes,
                )
            )
    last = frozenset((name, stage.phases[-1], str(span)) for span in spans)
    nodes.append(Node((name, "join", ""), (tasks.join, job, name), last))
    return nodes


def _skeleton_nodes(job: Job, needs: frozenset[tuple[str, str, str]]) -> list[Node]:
    """Return the chunks of a long recording's skeleton, each a task of its own; none where one chunk is all."""
    spans = chunk_spans(len(job.whole))
    if len(spans) == 1 or (job.options(SkeletonOptions).beads and job.recording.of_kind("xray")):
        return []  # (beads need all frames at once)
    shared = Node(("skeleton", "prepare", ""), (tasks.ahead, job, "skeleton", None), needs)
    return [
        shared,
        *(
            Node(("skeleton", "fit", str(span)), (tasks.ahead, job, "skeleton", index), frozenset({shared.key}))
            for index, span in enumerate(spans)
        ),
    ]


def _report_nodes(job: Job, needs: frozenset[tuple[str, str, str]]) -> list[Node]:
    """Return the groups of the report's sections, each a task of its own; what is not tracked needs no track."""
    every = tuple(stage for stage, _, _ in needs)
    return [
        Node(
            ("report", SECTIONS, name),
            (tasks.sections, job, "report", name),
            frozenset(need for need in needs if need[0] in needed(name, every)),
        )
        for name in GROUPS
    ]


def _none(job: Job, needs: frozenset[tuple[str, str, str]]) -> list[Node]:
    return []


def _keys(nodes: Iterable[Node]) -> frozenset[tuple[str, str, str]]:
    return frozenset(node.key for node in nodes)


def _looked_at(stretches: tuple[Span, ...], spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the stretches that a preparation looks at: the first, the last and a few between."""
    meeting = _meeting(stretches, Span(spans[0].first, spans[-1].stop))
    count = min(len(meeting), _LOOKED_AT)
    return tuple(meeting[k * (len(meeting) - 1) // max(count - 1, 1)] for k in range(count))


def _meeting(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    """Return those of spans in a row that meet another; found by halving, for an hour has thousands."""
    first = bisect_right(spans, span.first, key=lambda other: other.stop)
    return spans[first : bisect_left(spans, span.stop, key=lambda other: other.first)]


class Waiting:
    """Tasks that wait for others or for a worker, each looked at when it matters: an hour has tens of thousands."""

    def __init__(self, nodes: list[Node]) -> None:
        self._all = {node.key for node in nodes}
        self._done: set[tuple[str, str, str]] = set()
        self._open: dict[tuple[str, str, str], int] = {}
        self._after: dict[tuple[str, str, str], list[Node]] = defaultdict(list)
        self._ready: list[tuple[bool, int, bool, tuple[str, str, str], Node]] = []
        self._long = len(nodes) > _MANY
        for node in nodes:
            self.add(node)

    def __len__(self) -> int:
        return len(self._open) + len(self._ready)

    def add(self, node: Node) -> None:
        """Let a task wait for what it needs."""
        needs = (node.needs & self._all) - self._done
        for need in needs:
            self._after[need].append(node)
        if needs:
            self._open[node.key] = len(needs)
        else:
            self._push(node)

    def done(self, key: tuple[str, str, str]) -> None:
        """Let those go on that waited for a task alone."""
        self._done.add(key)
        for node in self._after.pop(key, ()):
            self._open[node.key] -= 1
            if self._open[node.key] == 0:
                del self._open[node.key]
                self._push(node)

    def next(self) -> Node | None:
        """Return the ready task that goes first, None if there is none."""
        return heapq.heappop(self._ready)[-1] if self._ready else None

    def _push(self, node: Node) -> None:
        # What one worker must put together goes on beside the parts that many can do; of a short recording it is what
        # the others do while one of them makes the skeleton.
        alone = self._long and node.key[1] == "join"
        kind = node.key[1] if node.key[1] in (SECTIONS, _REHEARSE) else node.key[0]
        if node.late:
            kind = _LATE
        elif node.key[:2] == ("silhouettes", "join"):
            kind = _TOGETHER  # nobody but the report waits for it
        rank = _ORDER.index(kind)
        heapq.heappush(self._ready, (not alone, rank, node.key[1] not in _FIRST, node.key, node))


def run_nodes(
    nodes: list[Node],
    workers: Workers,
    on_done: Callable[[Node, tasks.Done], None],
    on_start: Callable[[Node], None] | None = None,
) -> dict[str, CommandReport]:
    """Run all tasks, each when what it needs is done; return what the stages said.

    A task that fails stops the rest: what runs is waited for, and its error is raised.
    """
    waiting = Waiting(nodes)
    running: dict[Future[Any], Node] = {}
    reports: dict[str, CommandReport] = {}
    failure: BaseException | None = None
    while waiting or running:
        while failure is None and len(running) < workers.capacity and (node := waiting.next()) is not None:
            if on_start is not None:
                on_start(node)
            running[workers.submit(tasks.timed, *node.call)] = node
        if not running:
            break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            node = running.pop(future)
            error = future.exception()
            if error is not None:
                failure = failure or error
                continue
            answer: tasks.Done = future.result()
            if node.key[1] == "prepare" and answer.value is False:
                again = _looking_further(node)
                if again is None:
                    failure = InputError(
                        "no frame has a silhouette in two cameras; run `vivarig silhouettes` and look at its report"
                    )
                else:
                    waiting.add(again)
                continue
            waiting.done(node.key)
            if isinstance(answer.value, CommandReport):
                reports[node.key[0]] = answer.value
            on_done(node, answer)
    if failure is not None:
        raise failure
    return reports


def _looking_further(node: Node) -> Node | None:
    """Return a preparation that looks at more of the silhouettes, in the end at all; None if it already did."""
    _, job, stage, threads, looked = node.call
    every = job.stretches
    if looked.first:
        return _prepare_node(job, stage, threads, Looked(looked.spans))
    return None if looked.spans == every else _prepare_node(job, stage, threads, Looked(every))
