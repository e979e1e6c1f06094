"""The sockets of plain connections, read and written by Rust: one hub an event loop.

On Linux all plain connections of a loop share a `native.Hub`: the loop watches one
descriptor, and one call reads whatever has come on any socket. TLS and other systems
use the loop's own transports, as does everything under ``OPENENV_LOOP_TRANSPORTS=1``.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

from openenv.core._client.per_loop import PerLoop
from openenv.core._client.settings import wants_loop_transports
from openenv.core._client.timers import timers_of
from openenv.core._native import native

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

_AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
_UNDER_WAY: Final = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR})


def hub_of(loop: asyncio.AbstractEventLoop) -> native.Hub | None:
    """Return the running loop's hub, made at the first call; None where none can be."""
    if not hasattr(native, "Hub") or wants_loop_transports():
        return None
    return _hubs.of(loop)


async def connected(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> socket.socket:
    """Resolve a host and connect to its first address that answers.

    Raises:
        OSError: The host is unknown, or none of its addresses was reached.
    """
    failures: list[OSError] = []
    for family, kind, protocol, _, place in await _addresses(loop, host, port):
        try:
            return await _connected_to(loop, family, kind, protocol, place)
        except OSError as exc:
            failures.append(exc)
    if len({str(failure) for failure in failures}) == 1:
        raise failures[0]
    msg = f"no address of {host} answers: {'; '.join(map(str, failures))}"
    numbers = {failure.errno for failure in failures}
    # With a number the error is of the class that goes with it.
    raise OSError(numbers.pop(), msg) if len(numbers) == 1 else OSError(msg)


async def started(
    loop: asyncio.AbstractEventLoop,
    sock: socket.socket,
    host: str,
    context: ssl.SSLContext | None,
    protocol: asyncio.Protocol,
) -> asyncio.Transport:
    """Have the loop read and write a connected socket, for a protocol.

    Args:
        loop: The running loop.
        sock: The socket, which is closed if this fails.
        host: Whom its certificate has to name.
        context: How TLS is spoken; None for not at all.
        protocol: It gets ``connection_made``.

    Raises:
        OSError: The TLS handshake failed.
    """
    try:
        transport, _ = await loop.create_connection(
            lambda: protocol,
            sock=sock,
            ssl=context,
            server_hostname=None if context is None else host,
        )
    except BaseException:
        sock.close()
        raise
    return transport


def _new_hub(loop: asyncio.AbstractEventLoop) -> native.Hub | None:
    try:
        hub = native.Hub(loop)
    except OSError:  # no descriptors left, or a sandbox that forbids one of them
        return None
    door = hub.fileno()
    try:
        loop.add_reader(door, hub.run)
    except NotImplementedError:
        return None

    def close() -> None:
        _hubs.put(loop, None)  # it has wound up, whatever it is used for after that
        loop.remove_reader(door)
        hub.close()

    timers_of(loop).at_end(close)
    return hub


_hubs: Final = PerLoop(_new_hub)


async def _addresses(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> Sequence[_AddressInfo]:
    try:  # an address in figures needs no thread
        return socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except OSError:
        return await _looked_up(loop, host, port)


async def _looked_up(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> Sequence[_AddressInfo]:
    """Ask the resolver, once for all who ask for the same at the same time.

    Not by the loop: uvloop's threads make a forked child crash when it exits, and
    asyncio's hold up the exit of the process for as long as a lookup takes.
    """
    lookups = _lookups.of(loop)
    lookup: asyncio.Future[Sequence[_AddressInfo]] | None = lookups.get((host, port))
    if lookup is None:
        lookup = lookups[host, port] = loop.create_future()
        lookup.add_done_callback(functools.partial(_looked, lookups, (host, port)))
        target = functools.partial(_look_up, loop, lookup, host, port)
        threading.Thread(target=target, name="openenv-lookup", daemon=True).start()
    await asyncio.wait((lookup,))
    return lookup.result()


def _looked(
    lookups: dict[tuple[str, int], asyncio.Future[Any]],
    place: tuple[str, int],
    lookup: asyncio.Future[Any],
) -> None:
    del lookups[place]
    lookup.exception()  # seen, though all who asked may have gone


def _look_up(
    loop: asyncio.AbstractEventLoop,
    lookup: asyncio.Future[Sequence[_AddressInfo]],
    host: str,
    port: int,
) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        settle = functools.partial(lookup.set_result, found)
    except (OSError, UnicodeError) as exc:
        settle = functools.partial(lookup.set_exception, exc)
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(settle)


async def _connected_to(
    loop: asyncio.AbstractEventLoop,
    family: int,
    kind: int,
    protocol: int,
    place: tuple[object, ...],
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await _connect(loop, sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, place: tuple[object, ...]
) -> None:
    # Not `loop.sock_connect`, for which uvloop starts its resolver's threads.
    writable: asyncio.Future[None] = loop.create_future()
    code = sock.connect_ex(place)
    if code in _UNDER_WAY:
        try:
            loop.add_writer(sock, _wake, writable)
        except NotImplementedError:  # on Windows
            await loop.sock_connect(sock, place)
            return
        try:
            await writable
        finally:
            loop.remove_writer(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, f"{os.strerror(code)}: {place[0]} port {place[1]}")


def _wake(writable: asyncio.Future[None]) -> None:
    if not writable.done():
        writable.set_result(None)


_lookups: Final = PerLoop[dict[tuple[str, int], "asyncio.Future[Any]"]](lambda _: {})
