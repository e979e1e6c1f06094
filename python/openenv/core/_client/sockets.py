"""The sockets of plain connections, read and written by Rust: one hub an event loop.

On Linux all plain connections of a loop share a `native.Hub`: the loop watches one
descriptor, and one call reads whatever has come on any socket. TLS and other systems
use the loop's own transports, as does everything under ``OPENENV_LOOP_TRANSPORTS=1``.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from openenv.core._client.per_loop import PerLoop
from openenv.core._client.settings import wants_loop_transports
from openenv.core._client.timers import timers_of
from openenv.core._native import native

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


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
) -> Sequence[tuple[int, int, int, str, tuple[object, ...]]]:
    try:  # an address in figures needs no thread
        return socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except OSError:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


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
        await loop.sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock
