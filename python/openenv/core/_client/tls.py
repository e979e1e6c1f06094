"""TLS of the client: which certificates are believed, and which one is shown.

The options are those of httpx and requests, and everything but an ``SSLContext`` can be
pickled with the client.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Final

_AUTHORITIES_VARIABLE: Final = "SSL_CERT_FILE"
_MOST_KNOWN: Final = 64  # more are different options than one process has

Verify = bool | str | os.PathLike[str] | ssl.SSLContext
"""True believes the system's authorities (or ``SSL_CERT_FILE``'s), a path those of a
PEM file or folder, a context says it all itself. False believes everybody."""

Cert = str | os.PathLike[str] | tuple[str, ...]
"""A PEM file with certificate and key, or (certificate, key[, password of the key])."""


def checked_tls(
    verify: Verify, cert: Cert | None
) -> tuple[bool | str | ssl.SSLContext, tuple[str, ...]]:
    """Return both options in one form each, files read and found good.

    Raises:
        TypeError: They are of no type that is taken.
        ValueError: A context was given and a certificate beside it; or no path, or
            too many.
        OSError: A file cannot be read (``ssl.SSLError``: or is not what it should be).
    """
    shown = () if cert is None else _paths(cert)
    if isinstance(verify, ssl.SSLContext):
        if shown:
            raise ValueError("load cert into the SSLContext that is given as verify")
        return verify, shown
    believed = verify if isinstance(verify, bool) else os.fspath(verify)
    if believed == "":
        raise ValueError("verify must not be an empty path")
    if believed is not True or shown:
        tls_context(believed, shown)
    return believed, shown


def tls_context(
    believed: bool | str | ssl.SSLContext,
    shown: tuple[str, ...],
) -> ssl.SSLContext:
    """Return the context of checked options, the same one for the same files.

    A file that was replaced is read again; one that is gone has been read.

    Raises:
        OSError: As `checked_tls`.
    """
    if isinstance(believed, ssl.SSLContext):
        return believed
    if isinstance(believed, str) and Path(believed).is_dir():
        return _loaded(believed, shown)
    authorities = (
        believed if isinstance(believed, str) else os.getenv(_AUTHORITIES_VARIABLE, "")
    )
    key = (believed, authorities, *shown)
    stamps = [_stamp(path) for path in (authorities, *shown[:2]) if path]
    known = _known.get(key)
    if known is not None and (known[0] == stamps or None in stamps):
        return known[1]
    context = _loaded(believed, shown)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = stamps, context
    return context


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _loaded(believed: bool | str, shown: tuple[str, ...]) -> ssl.SSLContext:
    context = _new_context(believed)
    # Some balancers speak HTTP/2 unless told; RFC 6455 needs HTTP/1.1.
    context.set_alpn_protocols(["http/1.1"])
    if shown:
        context.load_cert_chain(*shown)
    return context


def _new_context(believed: bool | str) -> ssl.SSLContext:
    if believed is True:
        return ssl.create_default_context()
    if isinstance(believed, str):
        if Path(believed).is_dir():
            return ssl.create_default_context(capath=believed)
        return ssl.create_default_context(cafile=believed)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _paths(cert: Cert) -> tuple[str, ...]:
    if isinstance(cert, tuple):
        if not 1 <= len(cert) <= len(("certificate", "key", "password")):
            raise ValueError(
                "cert must be a path or (certificate, key[, password of the key])"
            )
        return tuple(map(os.fspath, cert))
    return (os.fspath(cert),)


# By options: how the files were that were read, and what came of them.
_known: Final[
    dict[
        tuple[bool | str, ...],
        tuple[list[tuple[int, int] | None], ssl.SSLContext],
    ]
] = {}
