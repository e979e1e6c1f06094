"""The protocol core in plain Python: what ``openenv._rust`` offers, minus its sockets.

It is there for three reasons: it runs where the extension cannot be loaded (see
``openenv.core._native``), tests hold the extension to it, and benches measure against
it. So it is written to be read: ``json`` reads and writes, ``websockets`` knows
RFC 6455, and what is left is OpenEnv's own rules.

=========== ======================================================================
encoding    Python values to JSON text, with the path of what has none
members     a JSON object, split into the texts of its members
decoder     an answer to the result of a call
messages    the server's side: requests told apart, replies written
upgrade     the HTTP head that opens a connection, and what answers it
line        one WebSocket: bytes in, messages out
calls       which request an answer belongs to
keepalive   when to ping, and when silence means that the peer is gone
causes      why a connection is over, as close code, words and error
endpoint    all of it joined: a connection with its futures and timers
=========== ======================================================================

``_rust.pyi`` says what each name means. What differs: an endpoint is for one thread at
a time, and of errors about a peer that breaks HTTP or RFC 6455 the words (not the
class) are those of ``websockets``, which sees some such faults later or not at all.
"""

from openenv.core._baseline.decoder import Decoder
from openenv.core._baseline.encoding import json_encode
from openenv.core._baseline.endpoint import ClientEndpoint, Raw, forget_entropy
from openenv.core._baseline.members import json_decode
from openenv.core._baseline.messages import (
    Irregular,
    Request,
    error_reply,
    mcp_reply,
    observation_reply,
    split_request,
    state_reply,
)

__all__ = [
    "ClientEndpoint",
    "Decoder",
    "Irregular",
    "Raw",
    "Request",
    "error_reply",
    "forget_entropy",
    "json_decode",
    "json_encode",
    "mcp_reply",
    "observation_reply",
    "split_request",
    "state_reply",
]
