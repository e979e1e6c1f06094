"""The pool of threads on which synchronous environments run.

Theory.  A session has a *lane*; the lane's jobs (constructor, reset, step, state,
close) run one at a time, in order, on the *worker* thread it is pinned to.  Up to
``base_threads`` lanes have a worker each, so that thread-bound libraries work as
with upstream's thread a session; further lanes share the worker with the fewest.

Sharing must not let one session's long step delay another's.  A job that has
waited `MOVE_AFTER_S` behind another lane's job moves, with its lane, to an idle or
new worker; all that are overdue at one check move at once::

    submit --> worker queue --> claimed --> runs --> future resolved (Mailbox)
                    |
                    +-- overdue behind another lane --> claimed by the watchdog
                                                        --> queue of a new worker

Who takes a job's token owns it: the worker that runs it, the watchdog that moves
it, or the caller that withdraws it.  Whether waiting means *blocked* or merely
*starved* is `Pressure`'s question; a starved process grows no threads.

Threads: at most ``max_threads``, plus one for each lane abandoned in a step that
cannot be stopped.  A worker without work for ``idle_s`` ends if it is one beyond the
base or has no lanes; its idle lanes get another worker at their next job.

All methods but `Worker.run` are called on the event loop the pool belongs to; the
lock covers the moment a worker decides to end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from openenv.core.env_server._pressure import Pressure

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from openenv.core.env_server._mailbox import Mailbox

BASE_THREADS = 32  # sessions that surely keep a thread of their own (upstream's pool)
MOVE_AFTER_S = 0.020  # a step over 20 ms is no compute-bound toy
CHECK_EVERY_S = 0.010
STUCK_AFTER_S = 0.5  # so long a job is blocked, however starved the process is
IDLE_S = 10.0

_log = logging.getLogger(__name__)


class Job:
    """One function to run on a lane's worker."""

    __slots__ = ("_token", "due_s", "finished", "function", "future", "lane")

    def __init__(
        self, lane: Lane, function: Callable[[], object], future: asyncio.Future[Any]
    ) -> None:
        self.lane: Lane = lane
        self.function: Callable[[], object] = function
        self.future: asyncio.Future[Any] = future
        self.due_s: float = 0.0
        self.finished: bool = False
        self._token = [True]

    @property
    def claimed(self) -> bool:
        """Whether somebody has taken the job."""
        return not self._token

    def claim(self) -> bool:
        """Take the job; True for exactly one caller, in whatever thread."""
        try:
            return self._token.pop()
        except IndexError:
            return False


class Worker:
    """One thread and its queue."""

    def __init__(self, pool: Pool, number: int, *, base: bool) -> None:
        self.base = base
        self.lanes: set[Lane] = set()
        self.running: Lane | None = None
        self.since_s: float = 0.0
        self._pool = pool
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        # One writer each: submitted by the loop, finished by the thread.
        self._submitted = 0
        self._finished = 0
        self._thread = threading.Thread(
            target=self.run, name=f"openenv-env-{number}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return self._submitted != self._finished

    @property
    def backlog(self) -> int:
        """Jobs that run or wait."""
        return self._submitted - self._finished

    def stuck(self, now_s: float, after_s: float) -> bool:
        """Tell whether the running job has taken ``after_s`` or more."""
        return self.running is not None and now_s - self.since_s >= after_s

    def put(self, job: Job | None) -> None:
        """Queue a job; None ends the thread after what is queued."""
        self._submitted += 1
        self._queue.put(job)

    def run(self) -> None:
        """Run jobs until told to end; the thread's main."""
        while True:
            try:
                job = self._queue.get(timeout=self._pool.idle_s)
            except Empty:
                if self._pool.retire(self):
                    return
                continue
            if job is None:
                return
            if job.claim():
                self._execute(job)
            else:
                self._finished += 1

    def _execute(self, job: Job) -> None:
        self.since_s = time.monotonic()
        self.running = job.lane
        value: object = None
        error: BaseException | None = None
        try:
            value = job.function()
        except BaseException as raised:  # noqa: BLE001 - it is the future's to carry
            error = raised
        self.running = None
        job.finished = True
        self._finished += 1  # before the loop hears of it and submits the next
        self._pool.mailbox.post(job.future, value, error)


class Lane:
    """One session's place in the pool."""

    __slots__ = ("_pool", "worker")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.worker: Worker | None = None

    def submit(self, function: Callable[[], object]) -> Job:
        """Queue ``function``; the job's future gets what it returns or raises."""
        return self._pool.submit(self, function)

    def release(self) -> None:
        """Give the place up, after the lane's last job."""
        self._pool.release(self)


class Pool:
    """Threads for the lanes of one event loop.

    Args:
        mailbox: brings results to the loop the pool belongs to.
        max_threads: most threads, without those of abandoned lanes.
        base_threads: lanes up to this number have a thread each.
        idle_s: how long a thread waits for work before it may end.
        fixed: never more than ``max_threads``, never less once started: for
            libraries that are bound to one thread for the process's life.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        max_threads: int,
        base_threads: int = BASE_THREADS,
        idle_s: float = IDLE_S,
        fixed: bool = False,
    ) -> None:
        self.mailbox = mailbox
        self.max_threads = max_threads
        self.base_threads: int = min(base_threads, max_threads)
        self.idle_s = idle_s
        self._fixed = fixed
        self.abandoned_lanes = 0
        self._workers: list[Worker] = []
        self._started = 0
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._pressure = Pressure()
        self._timer_due_s: float | None = None

    @property
    def threads(self) -> int:
        """Number of threads."""
        return len(self._workers)

    def lane(self) -> Lane:
        """Make a lane; it gets its worker with the first job."""
        return Lane(self)

    def submit(self, lane: Lane, function: Callable[[], object]) -> Job:
        """Queue a job on the lane's worker and watch it if it has to wait."""
        job = Job(lane, function, self.mailbox.loop.create_future())
        with self._lock:
            worker = lane.worker or self._pin(lane, self._least_loaded())
            waits = worker.busy
            worker.put(job)
        if waits:
            self._watch(job)
        return job

    def release(self, lane: Lane) -> None:
        """Forget a lane."""
        with self._lock:
            if lane.worker is not None:
                lane.worker.lanes.discard(lane)
                lane.worker = None

    def retire(self, worker: Worker) -> bool:
        """Decide whether an idle worker ends; called by its thread."""
        with self._lock:
            if self._fixed or worker.busy or (worker.base and worker.lanes):
                return False
            for lane in worker.lanes:
                lane.worker = None
            worker.lanes.clear()
            self._workers.remove(worker)
            return True

    def close(self) -> None:
        """End all threads after what is queued."""
        with self._lock:
            for worker in self._workers:
                worker.put(None)
            self._workers.clear()

    # -- placing lanes -----------------------------------------------------------

    def _pin(self, lane: Lane, worker: Worker) -> Worker:
        if lane.worker is not None:
            lane.worker.lanes.discard(lane)
        lane.worker = worker
        worker.lanes.add(lane)
        return worker

    def _least_loaded(self) -> Worker:
        """Pick the worker of a new lane: free, else new, else the least loaded."""
        best = min(self._workers, key=self._load, default=None)
        if best is not None and not best.lanes and not best.busy:
            return best
        # A thread that an abandoned step holds is nobody's share of the base.
        base = self.base_threads + (0 if self._fixed else self.abandoned_lanes)
        if best is None or len(self._workers) < base:
            best = self._spawn() or best
        if best is None:
            raise RuntimeError("the system has no thread left for an environment")
        return best

    @staticmethod
    def _load(worker: Worker) -> tuple[bool, int]:
        return worker.stuck(time.monotonic(), MOVE_AFTER_S), len(worker.lanes)

    def _spawn(self) -> Worker | None:
        """Start a thread; None if the system has none left."""
        self._started += 1
        base = len(self._workers) < self.base_threads
        worker = Worker(self, self._started, base=base)
        try:
            worker.start()
        except RuntimeError as error:
            _log.warning("no further thread for environments: %s", error)
            return None
        self._workers.append(worker)
        return worker

    # -- the watchdog ------------------------------------------------------------

    def _watch(self, job: Job) -> None:
        job.due_s = time.monotonic() + MOVE_AFTER_S
        self._waiting.append(job)
        if self._timer_due_s is None:
            self._pressure.begin()
            self._arm()

    def _arm(self) -> None:
        # Not the loop's clock: uvloop reads it once an iteration, so that it would
        # hide how late the timer is.
        self._timer_due_s = time.monotonic() + CHECK_EVERY_S
        self.mailbox.loop.call_later(CHECK_EVERY_S, self._check)

    def _check(self) -> None:
        """Move what is overdue; run by the watchdog's timer."""
        now_s = time.monotonic()
        lag_s = now_s - (self._timer_due_s or now_s)
        calm = self._pressure.sample(now_s, lag_s)
        overdue = self._take_overdue(now_s)
        if overdue:
            with self._lock:
                self._move_all(overdue, calm=calm)
        if self._waiting:
            self._arm()
        else:
            self._timer_due_s = None

    def _take_overdue(self, now_s: float) -> list[Job]:
        """Take overdue jobs out of the list; those not due or started are left."""
        overdue = []
        waiting = self._waiting
        while waiting and waiting[0].due_s <= now_s:
            job = waiting.popleft()
            if not job.claimed:
                overdue.append(job)
        return overdue

    def _move_all(self, overdue: list[Job], *, calm: bool) -> None:
        """Move the jobs that wait for a blocked worker, watch the others further."""
        now_s = time.monotonic()
        free = [worker for worker in self._workers if not worker.busy]
        spawns = len(overdue) if calm else 1
        for job in overdue:
            target = None
            if self._blocked(job, now_s, calm=calm):
                target = free.pop() if free else None
                if target is None and not calm:
                    target = self._unblocked(now_s)
                if target is None and spawns and self._may_grow():
                    target = self._spawn()
                    spawns = spawns - 1 if target else 0
            self._move(job, target, now_s)

    @staticmethod
    def _blocked(job: Job, now_s: float, *, calm: bool) -> bool:
        """Tell whether the job waits for another lane's job that is blocked."""
        worker = job.lane.worker
        if worker is None or worker.running is job.lane:
            return False
        return calm or worker.stuck(now_s, STUCK_AFTER_S)

    def _move(self, job: Job, target: Worker | None, now_s: float) -> None:
        """Give the job and its lane to ``target``; watch on what still waits."""
        waiting: Job | None = job
        if target is not None and job.claim():
            moved = Job(job.lane, job.function, job.future)
            waiting = moved if target.busy else None
            self._pin(job.lane, target).put(moved)
        if waiting is not None:
            waiting.due_s = now_s + MOVE_AFTER_S
            self._waiting.append(waiting)

    def _unblocked(self, now_s: float) -> Worker | None:
        """Return the worker with the shortest queue that is not stuck."""
        running = [w for w in self._workers if not w.stuck(now_s, STUCK_AFTER_S)]
        return min(running, key=lambda worker: worker.backlog, default=None)

    def _may_grow(self) -> bool:
        spare = 0 if self._fixed else self.abandoned_lanes
        return len(self._workers) < self.max_threads + spare
