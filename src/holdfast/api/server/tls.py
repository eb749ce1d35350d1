"""TLS context of the server, loaded from a certificate file and a private key file."""

import ssl
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import Misconfigured


class TlsFile(NamedTuple):
    """File that a setting names."""

    path: str
    setting: str
    """Flag, variable or key in `holdfast.toml` that names the file, for error messages."""


def load_tls(certificate: TlsFile, key: TlsFile) -> ssl.SSLContext:
    """Return a server context for TLS 1.2 and newer.

    Args:
        certificate: PEM file with the server's certificate, followed by the intermediate certificates.
        key: PEM file with the private key of that certificate, not encrypted.

    Raises:
        Misconfigured: A file cannot be read, has the wrong content, or does not match the other file.
    """
    _require_pem(certificate, b"CERTIFICATE-----", "no certificate: name the PEM file with the full chain")
    _require_pem(key, b"PRIVATE KEY-----", "no private key: name the PEM file with the key of the certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])

    def reject_encrypted() -> str:  # without a callback, OpenSSL would ask for the password on the terminal
        raise Misconfigured(
            f"{key.setting}: the private key in {key.path} is encrypted: decrypt it with 'openssl pkey -in … -out …'"
        )

    try:
        context.load_cert_chain(certificate.path, key.path, reject_encrypted)
    except ssl.SSLError as error:
        if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise Misconfigured(
                f"{key.setting}: the private key in {key.path} does not belong to the certificate in "
                f"{certificate.path} ({certificate.setting}): name the key that the certificate was issued for"
            ) from error
        raise Misconfigured(
            f"{certificate.setting}: OpenSSL cannot load {certificate.path} with the key {key.path} ({error.reason}): "
            "check both with 'openssl x509 -in … -noout' and 'openssl pkey -in … -check -noout'"
        ) from error
    return context


def _require_pem(file: TlsFile, marker: bytes, problem: str) -> None:
    """Raise `Misconfigured` with this problem unless the file contains the PEM marker."""
    try:
        content = Path(file.path).read_bytes()
    except OSError as error:
        raise Misconfigured(
            f"{file.setting}: cannot read {file.path} ({error.strerror}): name a PEM file that this user may read"
        ) from error
    if marker not in content:
        raise Misconfigured(f"{file.setting}: {file.path} contains {problem}")
