"""Signed tokens (JWT): their keys, verification and creation.

Keys are looked up by id (`kid`) and algorithm together, so a token header can only choose among the configured pairs.
"""

import logging
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import Invalid, Misconfigured
from holdfast.model.access import Caller
from holdfast.model.time import Duration, Instant
from holdfast.policy.access import MIN_SECRET_BYTES, find_weakness
from holdfast.policy.tokens import MAX_TOKEN_LENGTH, Audience, caller_of, claims_of, parse_header
from holdfast.wire import json

_LOG = logging.getLogger("holdfast.api")

RELOAD_INTERVAL_S = 2.0
"""Minimum time between two checks whether a key file has changed."""

_MAX_FILE_BYTES = 1024 * 1024

KeyName = tuple[str | None, str]
"""Key id (None for an unnamed key) and algorithm."""
Keys = Mapping[KeyName, Any]


class KeyFile(NamedTuple):
    """File with public keys: one PEM key of `algorithm`, or a JWKS if that is None."""

    setting: str
    path: Path
    algorithm: str | None = None

    def read(self) -> dict[KeyName, Any]:
        """Return the keys. Raises `Misconfigured` with the setting and the cause."""
        from holdfast.api.auth import signatures  # noqa: PLC0415 - imports cryptography

        try:
            with self.path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES)
            return signatures.read_keys(content, self.algorithm)
        except OSError as error:
            raise Misconfigured(
                f"{self.setting}: {self.path} cannot be read ({error.strerror}): name a readable file"
            ) from error
        except signatures.UnusableKey as error:
            raise Misconfigured(f"{self.setting}: {self.path}: {error}") from error.__cause__

    def version(self) -> tuple[int, int, int] | None:
        """Return a value that changes whenever the file does; None if there is no file."""
        try:
            stat = self.path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


class TokenKeys:
    """Keys that tokens may be signed with, from the settings and the current key files."""

    def __init__(
        self,
        secret: str | None = None,
        previous: str | None = None,
        files: tuple[KeyFile, ...] = (),
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.secret = secret
        self._fixed: dict[KeyName, Any] = {}
        for name, value in (("HOLDFAST_JWT_PREVIOUS_SECRET", previous), ("HOLDFAST_JWT_SECRET", secret)):
            if value is not None:
                if weak := find_weakness(value, min_bytes=MIN_SECRET_BYTES):
                    raise Misconfigured(f"{name}: {weak}: make one with 'openssl rand -hex 32'")
                if "-----BEGIN" in value:
                    raise Misconfigured(
                        f"{name}: it is a PEM key, not a secret: use HOLDFAST_JWT_PUBLIC_KEY_FILE for public keys"
                    )
                self._fixed[secret_name(value), "HS256"] = value.encode()
        if secret is not None:
            self._fixed[None, "HS256"] = secret.encode()
        self._files = files
        self._loaded = {file: file.read() for file in files}
        self._versions = {file: file.version() for file in files}
        self._monotonic = monotonic
        self._checked_at = monotonic()

    def __bool__(self) -> bool:
        return bool(self._fixed) or bool(self._files)

    def find(self, name: KeyName) -> Any:
        """Return the key of this id and algorithm; None if there is none."""
        self._reload()
        if name in self._fixed:
            return self._fixed[name]
        return next((keys[name] for keys in self._loaded.values() if name in keys), None)

    def _reload(self) -> None:
        """Read changed files. A malformed file keeps its previous keys; a deleted file loses them."""
        if not self._files or self._monotonic() - self._checked_at < RELOAD_INTERVAL_S:
            return
        self._checked_at = self._monotonic()
        for file in self._files:
            version = file.version()
            if version == self._versions[file]:
                continue
            self._versions[file] = version
            try:
                self._loaded[file] = {} if version is None else file.read()
                _LOG.info("%s has changed: loaded %d keys", file.path, len(self._loaded[file]))
            except Misconfigured as error:
                _LOG.warning("%s; its previous keys stay in use", error)


class Tokens:
    """Verifies and creates tokens.

    The JWT library is imported only if there are keys, because it loads slowly.
    """

    def __init__(self, keys: TokenKeys, expected: Audience) -> None:
        self.keys = keys
        self._expected = expected
        self._signatures = import_module("holdfast.api.auth.signatures") if keys else None

    def read(self, token: str, at: Instant) -> Caller | None:
        """Return the caller of a token at this time; None if it is invalid for any reason."""
        if self._signatures is None or len(token) > MAX_TOKEN_LENGTH:
            return None
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            header, claims, _ = [_bytes(part) for part in parts]
            name = parse_header(json.parse(header))
            key = None if name is None else self.keys.find(name)
            if name is None or key is None or not self._signatures.is_signed(token, key, name[1]):
                return None
            return caller_of(json.parse(claims), self._expected, at, signed_by=name)
        except (Invalid, ValueError):
            return None

    def make(self, caller: Caller, at: Instant, lifetime: Duration) -> tuple[str, Instant] | None:
        """Return a token for a caller and its expiry; None if there is no secret to sign it with."""
        secret = self.keys.secret
        if self._signatures is None or secret is None:
            return None
        claims = claims_of(caller, self._expected, at, lifetime, secrets.token_hex(8))
        token: str = self._signatures.sign(claims, secret, secret_name(secret))
        return token, Instant(claims["exp"] * 1_000_000)


def secret_name(secret: str) -> str:
    """Return the key id of a secret: distinguishes secrets without revealing them."""
    return f"hs-{sha256(b'holdfast kid ' + secret.encode()).hexdigest()[:16]}"


def _bytes(part: str) -> bytes:
    """Decode a part of a token; reject non-canonical base64, so a token has one spelling."""
    decoded = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if urlsafe_b64encode(decoded).rstrip(b"=") != part.encode():
        raise ValueError(part)
    return decoded
