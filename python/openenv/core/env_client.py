"""The client of an environment server (upstream: core/env_client.py)."""

# ruff: noqa: ANN401, SLF001 - upstream's signatures; its own hooks, looked at from below

from __future__ import annotations

import asyncio
import operator
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, cast

from typing_extensions import override

from openenv.core._client.codec import (
    Codec,
    as_dict,
    codec_of,
    payload_of,
    result_of,
    state_of,
)
from openenv.core._client.dial import shown_url, with_ws_path
from openenv.core._client.dual import now_or_later, refuse_trio, running_loop
from openenv.core._client.factories import Factories
from openenv.core._client.family import Family
from openenv.core._client.link import Call
from openenv.core._client.per_loop import PerLoop
from openenv.core._client.provider import ClientProvider
from openenv.core._client.proxy import checked_proxy
from openenv.core._client.raw import EXCHANGES, RawMessages, objects
from openenv.core._client.settings import (
    Settings,
    checked_connect_timeout_s,
    checked_headers,
    checked_io,
    checked_message_bytes,
    checked_seconds,
    resolve_mode,
)
from openenv.core._client.settings_face import SettingsFace
from openenv.core._client.tls import checked_tls
from openenv.core._client.to_the_end import ended, raise_first
from openenv.core._client.turns import is_closed_meanwhile
from openenv.core._client.type_arguments import type_arguments
from openenv.core.client_types import ActT, ObsT, StateT, StepResult
from openenv.core.sync_client import SyncEnvClient
from openenv.core.utils import convert_to_ws_url

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType

    from openenv.core._client.settings import Headers
    from openenv.core._client.tls import Cert, Verify

__all__ = ["EnvClient", "StateT", "StepResult", "convert_to_ws_url"]

_CONNECTS: Final = ("connect", "_connect_async", "_ensure_connected")


class EnvClient(
    SettingsFace, RawMessages, Family, Factories, Generic[ActT, ObsT, StateT]
):
    """Drive one session of an environment on a server.

    A subclass names what it exchanges and needs no body; pydantic models, msgspec
    structs, dataclasses and dicts are understood. Where it overrides
    ``_step_payload``, ``_parse_result`` or ``_parse_state``, these rule.

    Inside a running event loop the methods return awaitables. Outside of one they run
    at once, on the process's I/O thread, and return the value; `sync` gives the same
    with types that say so. A lost connection ends the session: ``step`` and ``state``
    raise `SessionLost` until ``reset``.

    Example:
        >>> from typing import Any
        >>> class MyEnv(EnvClient[dict[str, Any], dict[str, Any], dict[str, Any]]):
        ...     pass
        >>> async def episode() -> None:
        ...     async with MyEnv("http://localhost:8000") as env:
        ...         result = await env.reset(seed=7)
        ...         while not result.done:
        ...             result = await env.step({"move": "left"})
    """

    _known_codec: Codec | None = None
    _connecting: asyncio.Task[Any] | None = None

    def __init__(  # noqa: PLR0913, PLR0917 - upstream's signature, order included
        self,
        base_url: str | None = None,
        connect_timeout_s: float | None = 10.0,
        message_timeout_s: float | None = 60.0,
        max_message_size_mb: float = 100.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Any | None = None,
        mode: str | None = None,
        headers: Headers | None = None,
        *,
        proxy: str | bool | None = True,
        verify: Verify = True,
        cert: Cert | None = None,
        io: Literal["loop", "thread"] = "loop",
    ) -> None:
        """Take note of where the server is; nothing is opened yet.

        Args:
            base_url: The server, such as ``https://host/prefix`` or ``host:8000``.
            connect_timeout_s: Seconds until the WebSocket must be open; None waits
                for ever.
            message_timeout_s: Seconds to wait for an answer; None waits for ever.
            max_message_size_mb: Largest message taken, in MiB.
            websocket_ping_interval_s: Idle seconds before a ping; None sends none.
            websocket_ping_timeout_s: Seconds to wait for a pong; None waits for ever.
            provider: A container or process to stop at ``close``, and to start at
                ``connect`` when no URL is given.
            mode: ``simulation`` or ``production``, else what the variable
                ``OPENENV_CLIENT_MODE`` says, else ``simulation``. Fixed from now on.
            headers: Sent with the WebSocket handshake; (name, value) pairs, too.
            proxy: The URL of an HTTP proxy on the way; True takes the environment's
                (``https_proxy``, ``no_proxy``, …), None takes none.
            verify: Whether the server's certificate is checked, against the system's
                authorities; or a PEM file or folder of others; or an ``SSLContext``.
            cert: This client's certificate, a PEM file or (certificate, key).
            io: ``thread`` keeps the connection on the process's I/O thread also where
                a loop awaits: pings and deadlines are served while that loop is
                blocked. A call then costs two changes of thread.

        Raises:
            ValueError: Neither URL nor provider, or a setting that cannot be.
            TypeError: A setting of the wrong type.
            OSError: A file of ``verify`` or ``cert`` cannot be read.
        """
        if base_url is None and provider is None:
            msg = "EnvClient requires either base_url or provider."
            raise ValueError(msg)
        self._fixed_mode = resolve_mode(mode)
        believed, shown = checked_tls(verify, cert)
        self._settings = Settings(
            base_url=None if base_url is None else base_url.strip().rstrip("/"),
            ws_url=None if base_url is None else with_ws_path(base_url),
            connect_timeout_s=checked_connect_timeout_s(
                "connect_timeout_s", connect_timeout_s
            ),
            message_timeout_s=checked_seconds("message_timeout_s", message_timeout_s),
            max_message_bytes=checked_message_bytes(
                "max_message_size_mb", max_message_size_mb
            ),
            ping_interval_s=checked_seconds(
                "websocket_ping_interval_s", websocket_ping_interval_s
            ),
            ping_timeout_s=checked_seconds(
                "websocket_ping_timeout_s", websocket_ping_timeout_s
            ),
            headers=checked_headers(() if headers is None else headers),
            proxy=checked_proxy(proxy),
            verify=believed,
            cert=shown,
            on_thread=checked_io(io),
        )
        self._lifetime = (
            None if provider is None else ClientProvider(provider, self._settings)
        )
        self._home = self._new_home()

    # --- the session ----------------------------------------------------------

    def connect(self, *, retry_s: float | None = None) -> Awaitable[Self]:
        """Open the connection, unless it is open, and give the client itself.

        Args:
            retry_s: For so many seconds it is tried again, with pauses that grow, while
                the server refuses connections or answers 429, 502 or 503, as one does
                that is starting.

        Raises:
            ConnectFailed: The server was not reached, or refused.
            CapacityReached: It has no session left, and said so at once.
        """
        retry_s = checked_seconds("retry_s", retry_s)
        if retry_s is None:  # an override need not know the keyword
            return now_or_later(self._connect_async())
        return now_or_later(self._connect_async(retry_s=retry_s))

    def reset(self, **kwargs: Any) -> Awaitable[StepResult[ObsT]]:
        """Begin an episode; opens a new session where the old one is lost.

        Args:
            **kwargs: Sent to the environment's ``reset``, such as ``seed``.

        Raises:
            OpenEnvError: See `openenv.errors`; `ServerError` for what the server says.
        """
        if (
            running_loop() is not None
            or _is_overridden(self, "_reset_async", *_CONNECTS)
            or is_raw(self)
        ):
            return now_or_later(self._reset_async(**kwargs))
        return cast(
            "Awaitable[StepResult[ObsT]]", self._block(self._reset_call(kwargs))
        )

    def step(
        self, action: ActT, *, timeout_s: float | None = None
    ) -> Awaitable[StepResult[ObsT]]:
        """Do one action.

        Args:
            action: What to do.
            timeout_s: Seconds for this call, instead of ``message_timeout_s``.

        Raises:
            ValueError: ``timeout_s`` is negative or NaN.
            SessionLost: The session is gone; ``reset`` begins a new one.
            RequestTimeout: No answer in time; the session lives on, and the late
                answer reaches nobody.
            OpenEnvError: See `openenv.errors`.
        """
        if running_loop() is not None:
            if timeout_s is None:
                return self._step_async(action)
            return self._step_async(action, timeout_s=timeout_s)
        if _is_overridden(self, "_step_async") or is_raw(self):
            if timeout_s is None:  # an override need not know the keyword
                return now_or_later(self._step_async(action))
            return now_or_later(self._step_async(action, timeout_s=timeout_s))
        call = self._step_call(action, timeout_s)
        return cast("Awaitable[StepResult[ObsT]]", self._block(call))

    def state(self) -> Awaitable[StateT]:
        """Ask for the environment's state; errors as `step`."""
        if (
            running_loop() is not None
            or _is_overridden(self, "_state_async")
            or is_raw(self)
        ):
            return now_or_later(self._state_async())
        return cast("Awaitable[StateT]", self._block(self._state_call()))

    def disconnect(self) -> Awaitable[None]:
        """Give the session back and close the connection; the provider stays.

        A call that still connects raises `ConnectionClosed`.
        """
        return now_or_later(self._disconnect_async())

    def close(self) -> Awaitable[None]:
        """Give the session back, close the connection and stop the provider.

        Never waits for an answer that the server still owes. A call that still connects
        raises `ConnectionClosed`, a start of the provider is interrupted. If this is
        cancelled, all is closed first. The client can be used again.
        """
        return now_or_later(self._close_async())

    async def reset_async(self, **kwargs: Any) -> StepResult[ObsT]:
        """Do what `reset` does; a coroutine in any case."""
        return await self.reset(**kwargs)

    async def step_async(
        self, action: ActT, *, timeout_s: float | None = None
    ) -> StepResult[ObsT]:
        """Do what `step` does; a coroutine in any case."""
        if timeout_s is None:  # an override need not know the keyword
            return await self.step(action)
        return await self.step(action, timeout_s=timeout_s)

    async def state_async(self) -> StateT:
        """Do what `state` does; a coroutine in any case."""
        return await self.state()

    def sync(self) -> SyncEnvClient[ActT, ObsT, StateT]:
        """Return the blocking face of this client, always the same one."""
        known = self.__dict__.get("_sync_face")
        face: SyncEnvClient[ActT, ObsT, StateT] | None = known() if known else None
        if face is None:
            face = SyncEnvClient(self)
            # Weak: the face holds the client, and a cycle would delay both's end.
            self._sync_face = weakref.ref(face)
        return face

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        self.sync().connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.sync().close()

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={shown_url(self.base_url)!r})"

    def __del__(self) -> None:
        home = self.__dict__.get("_home")
        if home is not None and home.abort_soon():
            message = f"unclosed client {self!r}; use it in `with`, or call close()"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    # --- hooks ----------------------------------------------------------------

    def _step_payload(self, action: ActT) -> dict[str, Any]:
        """Make ``data`` of an action; override to send something else."""
        return as_dict(action)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """Make a result of an answer's ``data``; override to read something else."""
        return result_of(self._codec("_parse_result").observation, payload)

    def _parse_state(self, payload: dict[str, Any]) -> StateT:
        """Make the state of an answer's ``data``; override to read something else."""
        return cast("StateT", state_of(self._codec("_parse_state").state, payload))

    def _serialize_action(self, action: ActT) -> dict[str, Any]:
        """Return what a step sends: what `_step_payload` makes."""
        return self._step_payload(action)

    def _parse_step_result(self, payload: dict[str, Any]) -> StepResult[ObsT]:
        """Return what ``reset`` and ``step`` give: what `_parse_result` makes."""
        return self._parse_result(payload)

    # --- the coroutines behind the methods; subclasses may override them --------

    async def _connect_async(self, *, retry_s: float = 0.0) -> Self:
        if self._outside is not None:
            return self
        try:
            await self._home.run(lambda: self._home.link.connect(retry_s))
        except BaseException as exc:
            # Who closed the client stops it.
            if self._lifetime is not None and not is_closed_meanwhile(exc):
                await self._lifetime.stop()
            raise
        return self

    async def _reset_async(self, **kwargs: Any) -> StepResult[ObsT]:
        if _is_overridden(self, *_CONNECTS):
            await self._connect_its_way()
        if is_raw(self):
            return self._parse_step_result(await self._reset_raw(kwargs))
        call = self._reset_call(kwargs)
        result: StepResult[ObsT] = call.finished(await self._home.perform(call))
        return result

    async def _connect_its_way(self) -> None:
        running, task = asyncio.get_running_loop(), asyncio.current_task()
        if self._connecting is task:  # its way to connect calls reset
            return
        async with self.__dict__.setdefault("_connect_turns", _turns()).of(running):
            self._connecting = task
            try:
                await self._ensure_connected()
            finally:
                self._connecting = None

    async def _step_async(
        self, action: ActT, *, timeout_s: float | None = None
    ) -> StepResult[ObsT]:
        connection, codec = self._home.link.ready, self._known_codec
        if (
            connection is not None
            and codec is not None
            and timeout_s is None
            and _is_plain(self)
        ):
            # The usual step: what follows, with all that it may skip left out.
            future = connection.ask(
                "step",
                action if type(action) is dict else payload_of(action),
                codec.result_decoder,
                self._settings.message_timeout_s,
            )
            if future is not None:
                try:
                    return await future  # type: ignore[no-any-return]
                except BaseException as exc:
                    self._home.link.fail(connection, future, exc)
                    raise
        if is_raw(self):
            payload = self._serialize_action(action)
            answer = await self._ask_raw("step", payload, timeout_s)
            return self._parse_step_result(answer)
        call = self._step_call(action, timeout_s)
        result: StepResult[ObsT] = call.finished(await self._home.perform(call))
        return result

    async def _state_async(self) -> StateT:
        if is_raw(self):
            return self._parse_state(await self._ask_raw("state", None))
        call = self._state_call()
        state: StateT = call.finished(await self._home.perform(call))
        return state

    async def _disconnect_async(self) -> None:
        await self._close_outside_ws()
        await self._home.close()

    async def _close_async(self) -> None:
        self._leave_parent()
        run = None if self._lifetime is None else self._lifetime.give_up()
        children = self._start_closing_children()
        try:
            try:
                await self._disconnect_async()
            finally:
                raise_first(await ended(children))
        finally:
            if self._lifetime is not None:
                await self._lifetime.stop(run)

    # --- what a call is made of -------------------------------------------------

    def _reset_call(self, kwargs: dict[str, Any]) -> Call:
        return self._result_call("reset", kwargs, None)

    def _step_call(self, action: ActT, timeout_s: float | None) -> Call:
        timeout_s = checked_seconds("timeout_s", timeout_s)
        if _is_overridden(self, "_step_payload", "_serialize_action"):
            return self._result_call("step", self._serialize_action(action), timeout_s)
        return self._result_call("step", payload_of(action), timeout_s)

    def _result_call(self, op: str, payload: object, timeout_s: float | None) -> Call:
        if _is_overridden(self, "_parse_result", "_parse_step_result"):
            return Call(op, payload, objects(), timeout_s, self._parse_step_result)
        decoder = self._codec("_parse_result").result_decoder
        return Call(op, payload, decoder, timeout_s)

    def _state_call(self) -> Call:
        if _is_overridden(self, "_parse_state"):
            return Call("state", None, objects(), finish=self._parse_state)
        return Call("state", None, self._codec("_parse_state").state_decoder)

    def _block(self, call: Call) -> Any:
        refuse_trio()
        return call.finished(self._home.perform_blocking(call))

    def _has_own(self, name: str) -> bool:
        return _is_overridden(self, name)

    def _codec(self, hook: str) -> Codec:
        if self._known_codec is None:
            self._known_codec = self._found_codec(hook)
        return self._known_codec

    def _found_codec(self, hook: str) -> Codec:
        # `MyClient[X]()` leaves its arguments on the instance.
        cls = self.__dict__.get("__orig_class__", type(self))
        arguments = type_arguments(cls, EnvClient)
        if arguments is None or any(isinstance(a, TypeVar) for a in arguments[1:]):
            name = type(self).__name__
            msg = (
                f"{name} does not say what it exchanges: write `class {name}(EnvClient"
                f"[MyAction, MyObservation, MyState])`, or override {hook}"
            )
            raise TypeError(msg)
        return codec_of(*arguments[1:])


def _turns() -> PerLoop[asyncio.Lock]:
    return PerLoop(lambda _: asyncio.Lock())


def _is_overridden(client: EnvClient[Any, Any, Any], *names: str) -> bool:
    # On the class or on the instance alike.
    return any(
        getattr(getattr(client, name), "__func__", None) is not _OWN[name]
        for name in names
    )


def is_raw(client: EnvClient[Any, Any, Any]) -> bool:
    """Tell whether its calls go by ``_send`` and ``_receive``; see `RawMessages`."""
    return client._outside is not None or _is_overridden(client, *EXCHANGES)


def _is_plain(client: EnvClient[Any, Any, Any]) -> bool:
    # Neither `is_raw` nor hooks, on the class or on the instance; asked every step.
    return (
        client._outside is None
        and _in_a_steps_way(type(client)) == _OWN_IN_A_STEPS_WAY
        and _IN_A_STEPS_WAY.isdisjoint(client.__dict__)
    )


# What an override is compared with; the class itself may be patched later.
_OWN: Final = {
    name: member
    for cls in (RawMessages, Family, EnvClient)
    for name, member in vars(cls).items()
    if callable(member)
}
_IN_A_STEPS_WAY: Final = frozenset(
    {"_step_payload", "_serialize_action", "_parse_result", "_parse_step_result"}
    | {*EXCHANGES}
)
_in_a_steps_way = operator.attrgetter(*_IN_A_STEPS_WAY)
_OWN_IN_A_STEPS_WAY: Final = _in_a_steps_way(EnvClient)
