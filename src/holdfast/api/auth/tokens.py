"""Tokens (JWT): which keys they may be signed with, how they are checked, how they are made.

A key has a name (`kid`, or none) and one algorithm, and is found by both: what a token says of itself only chooses
among the keys that are here.
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
"""Seconds after which a file of keys is looked at again, when a token comes."""

_MAX_FILE_BYTES = 1024 * 1024

KeyName = tuple[str | None, str]
"""The name of a key, None for one without, and its algorithm."""
Keys = Mapping[KeyName, Any]


class KeyFile(NamedTuple):
    """A file with public keys: one in PEM, of this algorithm, or a set in JSON (JWKS), where each names its own."""

    setting: str
    path: Path
    algorithm: str | None = None

    def read(self) -> dict[KeyName, Any]:
        """Its keys; `Misconfigured` names the setting, and what is wrong with the file."""
        from holdfast.api.auth import signatures  # noqa: PLC0415 - imports cryptography

        try:
            with self.path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES)
            return signatures.read_keys(content, self.algorithm)
        except OSError as error:
            raise Misconfigured(f"{self.setting}: {self.path} cannot be read ({error.strerror})") from error
        except signatures.UnusableKey as error:
            raise Misconfigured(f"{self.setting}: {self.path}: {error}") from error.__cause__

    def look(self) -> tuple[int, int, int] | None:
        """Changes whenever the file does."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class TokenKeys:
    """The keys that tokens may be signed with, as the settings and the files have them now."""

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
        for name, each in (("HOLDFAST_JWT_PREVIOUS_SECRET", previous), ("HOLDFAST_JWT_SECRET", secret)):
            if each is not None:
                if weak := find_weakness(each, min_bytes=MIN_SECRET_BYTES):
                    raise Misconfigured(f"{name}: {weak}: make one with 'openssl rand -hex 32'")
                if "-----BEGIN" in each:
                    raise Misconfigured(
                        f"{name}: it is a key in PEM, which is no secret: see HOLDFAST_JWT_PUBLIC_KEY_FILE"
                    )
                self._fixed[secret_name(each), "HS256"] = each.encode()
        if secret is not None:
            self._fixed[None, "HS256"] = secret.encode()
        self._files = files
        self._read = {file: file.read() for file in files}
        self._seen = {file: file.look() for file in files}
        self._monotonic = monotonic
        self._looked = monotonic()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._fixed) or bool(self._files)

    def find(self, name: KeyName) -> Any:
        """The key of that name and algorithm, if there is one now."""
        self._look()
        if name in self._fixed:
            return self._fixed[name]
        return next((keys[name] for keys in self._read.values() if name in keys), None)

    def _look(self) -> None:
        """Read what has changed. A file that cannot be used changes nothing; one that is gone takes its keys along."""
        if not self._files or self._monotonic() - self._looked < RELOAD_INTERVAL_S:
            return
        self._looked = self._monotonic()
        for file in self._files:
            seen = file.look()
            if seen == self._seen[file]:
                continue
            self._seen[file] = seen
            try:
                self._read[file] = {} if seen is None else file.read()
                _LOG.info("%s has changed: %d keys", file.path, len(self._read[file]))
            except Misconfigured as error:
                _LOG.warning("%s: the keys it had before stay in use", error)


class Tokens:
    """Checks tokens, and makes some. What does it takes a while to load: a node that has no key goes without."""

    def __init__(self, keys: TokenKeys, expected: Audience) -> None:
        self.keys = keys
        self._expected = expected
        self._signatures = import_module("holdfast.api.auth.signatures") if keys else None

    def read(self, token: str, at: Instant) -> Caller | None:
        """Whom a token stands for at that time; None when it is not good, whatever the reason."""
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

    def make(self, caller: Caller, at: Instant, life: Duration) -> tuple[str, Instant] | None:
        """A token for a caller, and when it ends; None when there is nothing to sign it with."""
        secret = self.keys.secret
        if self._signatures is None or secret is None:
            return None
        claims = claims_of(caller, self._expected, at, life, secrets.token_hex(8))
        token: str = self._signatures.sign(claims, secret, secret_name(secret))
        return token, Instant(claims["exp"] * 1_000_000)


def secret_name(secret: str) -> str:
    """The name of a key that is a secret: tells it from others and nothing else."""
    return f"hs-{sha256(b'holdfast kid ' + secret.encode()).hexdigest()[:16]}"


def _bytes(part: str) -> bytes:
    """A part of a token, in its one right spelling: no other characters, no bits that stand for nothing."""
    found = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if urlsafe_b64encode(found).rstrip(b"=") != part.encode():
        raise ValueError(part)
    return found
