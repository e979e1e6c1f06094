"""A container or process that a client starts at connect and stops at close.

Providers block (they pull images and poll health), so they run on a thread. A
container provider has ``start_container``, ``wait_for_ready(url)`` and
``stop_container``; a runtime provider has ``start``, ``wait_for_ready()``, ``stop``.
Either may have ``interrupt``, which lets a start on its thread end soon; it is called
again and again from when connecting is cancelled until that start has ended. A start
that fails or was interrupted is undone on its thread, and the interpreter does not end
before such threads have: its exit interrupts a start.

::

    stopped ──start──> running ──stop──> stopped
                          └─stop fails─> pending ──stop again──> stopped

A start or stop that is cancelled is waited for some seconds only, since an engine may
not answer: it goes on on its thread, and whoever starts next, or exits, waits for that.

A forked child shares what runs, and leaves it to the process that started it.
"""

# ruff: noqa: ANN401 - providers are known by their methods

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import inspect
import logging
import math
import os
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard, TypeVar

from openenv.core._client.dial import with_ws_path
from openenv.core.containers.runtime._one_start import AlreadyRunning
from openenv.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openenv.core._client.settings import Settings

_ResultT = TypeVar("_ResultT")
_INTERRUPT_EVERY_S: Final = 0.1
# Of a start and of the stop after it, each; an engine's client waits a minute.
_PATIENCE_S: Final = 5.0
_NOTE: Final = "the provider could not be stopped either"

_log = logging.getLogger(__name__)


class Launch:
    """Make a provider, unless it is given, and start it, on the thread of `run`.

    Args:
        provider: Any object with the methods the module names; None if it is made.
        start: Starts it, waits until it is ready, and returns its URL.
        make: Makes the provider, which may have to wait for an engine.
        refuse: Raises for a given provider that cannot be started so.
    """

    def __init__(
        self,
        provider: Any | None,
        start: Callable[[Any], str],
        make: Callable[[], Any] | None = None,
        refuse: Callable[[Any], None] | None = None,
    ) -> None:
        self.provider = provider
        self._start = start
        self._make = make
        self._refuse = refuse
        self.interrupted = threading.Event()

    def refuse_unfit(self) -> None:
        """Raise for a given provider that cannot be started."""
        if self._refuse is not None and self.provider is not None:
            self._refuse(self.provider)

    def run(self) -> str:
        """Start the provider and return its URL."""
        if self.provider is None and self._make is not None:
            self.provider = self._make()
            self.refuse_interrupted()
        if self.interrupted.is_set():
            raise _NotBegun("the start was interrupted")
        return self._start(self.provider)

    def refuse_interrupted(self) -> None:
        """Raise if the start was interrupted."""
        if self.interrupted.is_set():
            raise ProviderError("the start was interrupted")

    def interrupt(self) -> None:
        """Let `run` in another thread end soon, if the provider can."""
        self.interrupted.set()
        interrupt = getattr(self.provider, "interrupt", None)
        if interrupt is not None:
            interrupt()


class _NotBegun(ProviderError):  # noqa: N818 - STYLE 8: named by what happened
    """Report that a start ended before its provider was asked for anything."""


class ClientProvider:
    """Hold the provider of one client, and whether it runs.

    Args:
        provider: Any object with the methods the module names, or a `Launch`.
        settings: The client's; if it has no URL, the provider says it.
    """

    def __init__(self, provider: Any, settings: Settings) -> None:
        self._launch = (
            provider
            if isinstance(provider, Launch)
            else Launch(provider, _start, refuse=_refuse_unfit)
        )
        self._settings = settings
        self._owns_url = settings.base_url is None
        # With a URL given, somebody has started the provider for this client.
        self._state: Literal["pending", "running", "stopped"] = (
            "stopped" if self._owns_url else "running"
        )
        self._owner_pid = os.getpid()
        self._run = 0
        self._stopping = threading.Lock()
        self._left: concurrent.futures.Future[Any] | None = None

    @property
    def provider(self) -> Any | None:
        """The provider, None before it has been made."""
        return self._launch.provider

    async def start(self) -> None:
        """Start it where that is this client's job, and set the client's URL.

        Raises:
            RuntimeError: It could not be stopped and its URL was given by the caller.
            TypeError: The object is no provider.
            ValueError: It needs arguments that a client cannot know.
        """
        if self._left is not None:
            await asyncio.wait((asyncio.wrap_future(self._left),))
            self._left = None
        if self._state == "pending":
            if not self._owns_url:
                raise RuntimeError(
                    "the provider could not be stopped; stop it before connecting again"
                )
            await self.stop()
        if self._owns_url and self._state == "stopped":
            self._launch.refuse_unfit()
            self._state = "running"
            self._owner_pid = os.getpid()
            self._run += 1
            # Not in `run`: its thread may begin after an interruption.
            self._launch.interrupted.clear()
            try:
                url = await self._in_thread(self._started, self._launch.interrupt)
            except asyncio.CancelledError as exc:
                # The start may have been done by then.
                await self._stop_after(exc, self._run)
                raise
            self._settings.base_url = url.rstrip("/")
            self._settings.ws_url = with_ws_path(url)

    def give_up(self) -> int:
        """Have it be stopped before the next start; return which run that is."""
        if self._owns_url and self._state == "running":
            self._state = "pending"
        return self._run

    async def stop(self, run: int | None = None) -> None:
        """Stop it once; if that fails, the next start or stop tries again.

        Args:
            run: What `give_up` said, so that a later start is left alone.
        """
        run = self._run if run is None else run
        exc = sys.exception()
        # A client that fails to connect stops once more, and what failed is not to be
        # replaced; a cancellation is not to be held up.
        if isinstance(exc, asyncio.CancelledError) or _is_noted(exc):
            await self._stop_after(exc, run)
        else:
            await self._stop(run)

    async def stop_if_owned(self) -> None:
        """Stop it after a failed connection, if it was started for that.

        To be called while the connection's error is handled, which it does not replace.
        """
        if not self._owns_url:
            return
        exc = sys.exception()
        if exc is None:
            await self.stop()
        else:
            await self._stop_after(exc, self._run)

    async def _stop_after(self, first: BaseException, run: int) -> None:
        hurried = isinstance(first, asyncio.CancelledError)
        is_left = self._left is not None and not self._left.done()
        if _is_noted(first) or (hurried and is_left):
            return  # tried just now, or goes on for as long as that takes
        try:
            await self._stop(run, hurried=hurried)
        except asyncio.CancelledError:
            if not hurried:
                raise
        except Exception as exc:  # noqa: BLE001 - a provider is foreign code
            _note(first, exc)

    async def _stop(self, run: int, *, hurried: bool = False) -> None:
        is_forked = os.getpid() != self._owner_pid
        if self._state == "stopped" or self._run != run or is_forked:
            return
        self._state = "pending"
        await self._in_thread(lambda: self._stop_now(run), hurried=hurried)

    async def _in_thread(
        self,
        function: Callable[[], _ResultT],
        interrupt: Callable[[], None] | None = None,
        *,
        hurried: bool = False,
    ) -> _ResultT:
        """Run a start or a stop on a thread of its own.

        Raises:
            asyncio.CancelledError: It was cancelled, or is `hurried` for that. What did
                not end soon after that goes on on its thread.
        """
        future = _begun(function, interrupt)
        try:
            return await _patiently(future, interrupt, hurried=hurried)
        except _NotEnded as exc:
            self._left = future
            _log.warning(
                "%s does not answer; what it has started is removed once it does, and "
                "is left there if this process is killed before that",
                type(self.provider).__name__,
            )
            raise asyncio.CancelledError(*exc.args) from None

    def _started(self) -> str:
        try:
            url = self._launch.run()
            self._launch.refuse_interrupted()
        except (AlreadyRunning, _NotBegun):
            # What runs is another client's to stop. Said here, because a client that
            # is cancelled meanwhile does not see this error.
            self._state = "stopped"
            raise
        except BaseException as exc:
            self._state = "pending"
            try:
                self._stop_now(self._run)
            except Exception as failure:  # noqa: BLE001 - a provider is foreign code
                _note(exc, failure)
            raise
        return url

    def _stop_now(self, run: int) -> None:
        with self._stopping:  # who comes second finds it done
            if self._state != "pending" or self._run != run:
                return
            _stop(self.provider)
            if self._owns_url:
                self._settings.base_url = self._settings.ws_url = None
            self._state = "stopped"


def _start(provider: Any) -> str:
    if hasattr(provider, "start_container"):
        url = str(provider.start_container())
        provider.wait_for_ready(url)
        return url
    url = str(provider.start())
    provider.wait_for_ready()
    return url


def refuse_without(method: str) -> Callable[[Any], None]:
    """Return what refuses a provider that lacks a method, with `TypeError`."""

    def refuse(provider: Any) -> None:
        if not hasattr(provider, method):
            msg = f"{type(provider).__name__} is no provider for this: no {method}()"
            raise TypeError(msg)

    return refuse


def _refuse_unfit(provider: Any) -> None:
    if hasattr(provider, "start_container"):
        _refuse_required_arguments(provider)
    elif not hasattr(provider, "start"):
        msg = (
            f"{type(provider).__name__} is no provider: it has neither "
            "start_container() nor start()"
        )
        raise TypeError(msg)


def _refuse_required_arguments(provider: Any) -> None:
    parameters = inspect.signature(provider.start_container).parameters.values()
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
    ]
    if required:
        name = type(provider).__name__
        msg = (
            f"{name}.start_container() needs {', '.join(required)}; start it yourself "
            "and give the client base_url as well"
        )
        raise ValueError(msg)


def _stop(provider: Any) -> None:
    if hasattr(provider, "stop_container"):
        provider.stop_container()
    elif hasattr(provider, "stop"):
        provider.stop()


def _note(first: BaseException, failure: Exception) -> None:
    first.add_note(f"{_NOTE}: {failure!r}")


def _is_noted(exc: BaseException | None) -> TypeGuard[BaseException]:
    return any(note.startswith(_NOTE) for note in getattr(exc, "__notes__", ()))


class _NotEnded(Exception):  # noqa: N818 - STYLE 8: named by what happened
    """Say that what was cancelled goes on; has the arguments of the cancellation."""


def _begun(
    function: Callable[[], _ResultT], interrupt: Callable[[], None] | None
) -> concurrent.futures.Future[_ResultT]:
    # A thread of its own: a start takes long, and the loop's executor has few, which
    # other code waits for.
    future: concurrent.futures.Future[_ResultT] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # who waits no longer does not end it
    thread = threading.Thread(
        target=_fulfil, args=(future, function), name="openenv-provider", daemon=True
    )
    _under_way[thread] = interrupt
    try:
        thread.start()
    except RuntimeError:  # the interpreter is exiting, and no other work waits
        del _under_way[thread]
        _fulfil(future, function)
    return future


async def _patiently(
    future: concurrent.futures.Future[_ResultT],
    interrupt: Callable[[], None] | None,
    *,
    hurried: bool,
) -> _ResultT:
    # A thread cannot be cancelled: what it started should be known before going on.
    waiting, loop = asyncio.wrap_future(future), asyncio.get_running_loop()
    cancelled_with: tuple[Any, ...] | None = None
    patience_ends = loop.time() + _PATIENCE_S if hurried else math.inf
    while not waiting.done():
        if loop.time() >= patience_ends:
            waiting.cancel()
            raise _NotEnded(*(cancelled_with or ()))
        # Again and again: the thread may be about to begin what can be interrupted.
        if cancelled_with is not None and interrupt is not None:
            interrupt()
        pause_s = None if patience_ends == math.inf else _INTERRUPT_EVERY_S
        try:
            await asyncio.wait((waiting,), timeout=pause_s)
        except asyncio.CancelledError as exc:
            cancelled_with = exc.args
            patience_ends = min(patience_ends, loop.time() + _PATIENCE_S)
    if cancelled_with is None:
        return waiting.result()
    # The caller hears of the cancellation, and of an error as its cause.
    raise asyncio.CancelledError(*cancelled_with) from waiting.exception()


def _fulfil(
    future: concurrent.futures.Future[_ResultT], function: Callable[[], _ResultT]
) -> None:
    try:
        give = partial(future.set_result, function())
    except BaseException as exc:  # noqa: BLE001 - the provider's; raised by who waits
        give = partial(future.set_exception, exc)
    _under_way.pop(threading.current_thread(), None)
    give()


def _end_at_exit() -> None:
    # Daemons, because others would be waited for before this is called. In a forked
    # child they are the parent's, and not alive.
    while threads := [thread for thread in list(_under_way) if thread.is_alive()]:
        for thread in threads:
            interrupt = _under_way.get(thread)
            if interrupt is not None:
                interrupt()
        threads[0].join(_INTERRUPT_EVERY_S)


_under_way: Final[dict[threading.Thread, Callable[[], None] | None]] = {}
atexit.register(_end_at_exit)
