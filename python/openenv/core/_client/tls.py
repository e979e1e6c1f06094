"""TLS of the client: which certificates are believed, and which one is shown.

The options are those of httpx and requests, and everything but an ``SSLContext`` can be
pickled with the client.
"""

from __future__ import annotations

import functools
import os
import ssl
from pathlib import Path

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
        ValueError: A context was given and a certificate beside it.
        OSError: A file cannot be read (``ssl.SSLError``: or is not what it should be).
    """
    shown = () if cert is None else _paths(cert)
    if isinstance(verify, ssl.SSLContext):
        if shown:
            raise ValueError("load cert into the SSLContext that is given as verify")
        return verify, shown
    believed = verify if isinstance(verify, bool) else os.fspath(verify)
    if believed is not True or shown:
        tls_context(believed, shown)
    return believed, shown


@functools.lru_cache(maxsize=64)
def _context(believed: bool | str, shown: tuple[str, ...]) -> ssl.SSLContext:
    context = _new_context(believed)
    # Some balancers speak HTTP/2 unless told; RFC 6455 needs HTTP/1.1.
    context.set_alpn_protocols(["http/1.1"])
    if shown:
        context.load_cert_chain(*shown)
    return context


def tls_context(
    believed: bool | str | ssl.SSLContext,
    shown: tuple[str, ...],
) -> ssl.SSLContext:
    """Return the context of checked options, the same one for the same options.

    Raises:
        OSError: As `checked_tls`.
    """
    if isinstance(believed, ssl.SSLContext):
        return believed
    return _context(believed, shown)


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
        return tuple(map(os.fspath, cert))
    return (os.fspath(cert),)
