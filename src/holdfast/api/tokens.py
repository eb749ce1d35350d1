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
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import msgspec
from jwt.api_jws import PyJWS
from jwt.exceptions import MissingCryptographyError

from holdfast.errors import Invalid, Misconfigured
from holdfast.model.access import Caller
from holdfast.model.time import Duration, Instant
from holdfast.policy.access import LEAST_SECRET, weakness
from holdfast.policy.tokens import LONGEST_TOKEN, Audience, caller_of, claims_of, signer
from holdfast.wire import json

_LOG = logging.getLogger("holdfast.api")

LOOK_EVERY = 2.0
"""Seconds after which a file of keys is looked at again, when a token comes."""

_KINDS = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "HS256": "oct"}
_CURVES = {"ES256": "P-256", "EdDSA": "Ed25519"}
_LEAST_RSA = 2_048
_LARGEST_FILE = 1024 * 1024

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
        try:
            with self.path.open("rb") as file:
                content = file.read(_LARGEST_FILE)
            if self.algorithm is not None:
                return {(None, self.algorithm): _pem(content, self.algorithm)}
            return _jwks(content)
        except OSError as error:
            raise Misconfigured(f"{self.setting}: {self.path} cannot be read ({error.strerror})") from error
        except _Unusable as error:
            raise Misconfigured(f"{self.setting}: {self.path}: {error}") from error.__cause__

    def look(self) -> tuple[int, int, int] | None:
        """Changes whenever the file does."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class _Unusable(Exception):
    """Why a key cannot be used."""


class SigningKeys:
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
                if weak := weakness(each, least=LEAST_SECRET):
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
        if not self._files or self._monotonic() - self._looked < LOOK_EVERY:
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
    """Checks tokens, and makes some."""

    def __init__(self, keys: SigningKeys, expected: Audience) -> None:
        self.keys = keys
        self._expected = expected
        self._jws = PyJWS(options={"enforce_minimum_key_length": True})

    def read(self, token: str, at: Instant) -> Caller | None:
        """Whom a token stands for at that time; None when it is not good, whatever the reason."""
        if len(token) > LONGEST_TOKEN:
            return None
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            header, claims, _ = [_bytes(part) for part in parts]
            name = signer(json.parse(header))
            key = None if name is None else self.keys.find(name)
            if name is None or key is None:
                return None
            self._jws.decode_complete(token, key, algorithms=[name[1]])
            return caller_of(json.parse(claims), self._expected, at, signed_by=name)
        except (jwt.InvalidTokenError, jwt.InvalidKeyError, Invalid, ValueError):
            return None

    def make(self, caller: Caller, at: Instant, life: Duration) -> tuple[str, Instant] | None:
        """A token for a caller, and when it ends; None when there is nothing to sign it with."""
        secret = self.keys.secret
        if secret is None:
            return None
        claims = claims_of(caller, self._expected, at, life, secrets.token_hex(8))
        header = {"kid": secret_name(secret)}
        token = self._jws.encode(msgspec.json.encode(claims), secret.encode(), "HS256", headers=header)
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


def _pem(content: bytes, algorithm: str) -> Any:
    if b"PRIVATE KEY" in content:
        raise _Unusable("it holds a private key: give the public one, and keep the other with whoever signs")
    try:
        key = jwt.get_algorithm_by_name(algorithm).prepare_key(content)
    except NotImplementedError as error:
        raise _without_cryptography() from error
    except (jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise _Unusable(f"it holds no public key for {algorithm} in PEM") from error
    return _checked(key, algorithm)


def _jwks(content: bytes) -> dict[KeyName, Any]:
    try:
        listed = json.parse(content)["keys"]
        members = [dict(each) for each in listed]
    except (Invalid, ValueError, TypeError, LookupError) as error:
        raise _Unusable('it is no set of keys: write {"keys": [{"kid": …, "kty": …, "alg": …, …}, …]}') from error
    found: dict[KeyName, Any] = {}
    for member in members:
        if member.get("use", "sig") != "sig":
            continue
        kid, key = member.get("kid"), _jwk(member)
        if (kid, key[0]) in found:
            raise _Unusable(f"two keys are called {kid!r}")
        found[kid, key[0]] = key[1]
    return found


def _jwk(member: dict[str, Any]) -> tuple[str, Any]:
    kid, kind = member.get("kid"), member.get("kty")
    if not isinstance(kid, str) or not kid:
        raise _Unusable("one of its keys has no name: give each a kid")
    algorithm = member.get("alg") or next((alg for alg, kty in _KINDS.items() if kty == kind), None)
    if _KINDS.get(str(algorithm)) != kind or member.get("crv") != _CURVES.get(str(algorithm)):
        raise _Unusable(f"the key {kid!r} is none for RS256, ES256, EdDSA or HS256")
    if "d" in member:
        raise _Unusable(f"the key {kid!r} is a private one: give the public one, and keep the other with whoever signs")
    try:
        made = jwt.PyJWK(member, str(algorithm))
    except MissingCryptographyError as error:
        raise _without_cryptography() from error
    except (jwt.PyJWKError, jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise _Unusable(f"the key {kid!r} cannot be read") from error
    return str(algorithm), _checked(made.key, str(algorithm), kid)


def _checked(key: Any, algorithm: str, kid: str = "") -> Any:
    """The key, if it is strong enough and of the kind its algorithm takes."""
    named = f"the key {kid!r}" if kid else "the key"
    if algorithm == "HS256" and (weak := weakness(key.decode("latin-1"), least=LEAST_SECRET)):
        raise _Unusable(f"{named}: {weak}")
    if algorithm == "RS256" and key.key_size < _LEAST_RSA:
        raise _Unusable(f"{named} has {key.key_size} bits, and RS256 needs at least {_LEAST_RSA}")
    if algorithm == "ES256" and key.curve.name != "secp256r1":
        raise _Unusable(f"{named} is on the curve {key.curve.name}, and ES256 needs P-256")
    if algorithm == "EdDSA" and not type(key).__name__.startswith("Ed25519"):
        raise _Unusable(f"{named} is none of Ed25519")
    return key


def _without_cryptography() -> _Unusable:
    return _Unusable("tokens signed so need the package cryptography: pip install 'holdfast[jwt]'")
