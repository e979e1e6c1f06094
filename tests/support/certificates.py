"""A certificate for the names of test servers."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def make_certificate(folder: Path, *names: str) -> Path:
    """Make a PEM file of a key and its self-signed certificate for host names."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate of this test")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    alternatives = ",".join(f"DNS:{name}" for name in names)
    subject = ["-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={alternatives}"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]  # made at once
    command = [openssl, "req", "-x509", *kind, "-nodes", *subject]
    files = ["-keyout", str(key), "-out", str(certificate), "-days", "2"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    certificate.write_bytes(certificate.read_bytes() + key.read_bytes())
    return certificate


def serving(certificate: Path) -> ssl.SSLContext:
    """Return the context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
