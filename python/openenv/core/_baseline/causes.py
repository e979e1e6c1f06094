"""Why a connection is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from openenv.errors import (
    ConnectFailed,
    ConnectionClosed,
    LimitExceeded,
    OpenEnvError,
    RemoteProtocolError,
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Say why; the first cause of a connection's end wins."""

    code: int
    """The close code that a caller is told (RFC 6455 §7.4)."""
    reason: str
    broken: type[LimitExceeded | RemoteProtocolError] | None = None
    """Which of the two the peer did; None: the connection ended, that is all."""
    status: int | None = None
    """The HTTP status that refused the upgrade."""

    def closed_error(self) -> OpenEnvError:
        """Return why a request is not taken, or not answered any more."""
        if self.broken is not None:
            return self.broken(self.reason)
        return ConnectionClosed(self.code, self.reason)

    def connect_failed(self) -> ConnectFailed:
        """Return why the connection never opened."""
        return ConnectFailed(self.reason, None, self.status)


CLOSED_BY_CALLER: Final = Cause(1000, "this side closed the connection")
CONNECT_TIMED_OUT: Final = Cause(1006, "the upgrade was not answered in time")
ENDED: Final = Cause(1006, "the connection ended without a closing handshake")
KEEPALIVE_TIMED_OUT: Final = Cause(1011, "the peer did not answer a ping in time")
UNSOLICITED_ANSWER: Final = Cause(
    1002,
    "the server answered a request that was never made; later answers could not be "
    "trusted",
    RemoteProtocolError,
)


def refused(status: int) -> Cause:
    """Say that the server answered the upgrade with another status than 101."""
    text = f"the server refused the upgrade with HTTP status {status}"
    return Cause(1006, text, status=status)


def failed_upgrade(reason: str) -> Cause:
    """Say what was wrong with the server's answer to the upgrade."""
    return Cause(1006, reason)


def closed_by_peer(code: int, reason: str) -> Cause:
    """Say what the peer's Close frame said; the code is 1005 if it had none."""
    return Cause(code, reason)


def broken_rule(code: int, reason: str) -> Cause:
    """Say which rule of RFC 6455 the peer broke."""
    return Cause(code, reason, RemoteProtocolError)


def message_too_big(limit: int) -> Cause:
    """Say that the peer's message is longer than ``limit`` bytes."""
    text = f"message longer than the limit of {limit} bytes"
    return Cause(1009, text, LimitExceeded)
