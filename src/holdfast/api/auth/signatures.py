"""Signatures of tokens: the one module that knows the library, loaded by nodes that have a key to check them with."""

from typing import Any

import jwt
import msgspec
from jwt.api_jws import PyJWS
from jwt.exceptions import MissingCryptographyError

from holdfast.errors import Invalid
from holdfast.policy.access import MIN_SECRET_BYTES, find_weakness
from holdfast.wire import json

KeyName = tuple[str | None, str]
"""The name of a key, None for one without, and its algorithm."""

_KINDS = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "HS256": "oct"}
_CURVES = {"ES256": "P-256", "EdDSA": "Ed25519"}
_MIN_RSA_BITS = 2_048
_JWS = PyJWS(options={"enforce_minimum_key_length": True})


class UnusableKey(Exception):
    """Why a key cannot be used."""


def is_signed(token: str, key: Any, algorithm: str) -> bool:
    """Whether a token was signed with this key, by this algorithm and no other."""
    try:
        _JWS.decode_complete(token, key, algorithms=[algorithm])
    except (jwt.InvalidTokenError, jwt.InvalidKeyError):
        return False
    return True


def sign(claims: dict[str, Any], secret: str, kid: str) -> str:
    """A token of these claims, signed with a secret of that name."""
    return _JWS.encode(msgspec.json.encode(claims), secret.encode(), "HS256", headers={"kid": kid})


def read_keys(content: bytes, algorithm: str | None) -> dict[KeyName, Any]:
    """Read the keys of a file: one PEM key of this algorithm, or a JSON key set.

    Raises:
        UnusableKey: The file holds no key that can verify a token.
    """
    return _jwks(content) if algorithm is None else {(None, algorithm): _pem(content, algorithm)}


def _pem(content: bytes, algorithm: str) -> Any:
    if b"PRIVATE KEY" in content:
        raise UnusableKey("it holds a private key: give the public one, and keep the other with whoever signs")
    try:
        key = jwt.get_algorithm_by_name(algorithm).prepare_key(content)
    except NotImplementedError as error:
        raise _without_cryptography() from error
    except (jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise UnusableKey(f"it holds no public key for {algorithm} in PEM") from error
    return _checked(key, algorithm)


def _jwks(content: bytes) -> dict[KeyName, Any]:
    try:
        listed = json.parse(content)["keys"]
        members = [dict(each) for each in listed]
    except (Invalid, ValueError, TypeError, LookupError) as error:
        raise UnusableKey('it is no set of keys: write {"keys": [{"kid": …, "kty": …, "alg": …, …}, …]}') from error
    found: dict[KeyName, Any] = {}
    for member in members:
        if member.get("use", "sig") != "sig":
            continue
        kid, key = member.get("kid"), _jwk(member)
        if (kid, key[0]) in found:
            raise UnusableKey(f"two keys are called {kid!r}")
        found[kid, key[0]] = key[1]
    return found


def _jwk(member: dict[str, Any]) -> tuple[str, Any]:
    kid, kind = member.get("kid"), member.get("kty")
    if not isinstance(kid, str) or not kid:
        raise UnusableKey("one of its keys has no name: give each a kid")
    algorithm = member.get("alg") or next((alg for alg, kty in _KINDS.items() if kty == kind), None)
    if _KINDS.get(str(algorithm)) != kind or member.get("crv") != _CURVES.get(str(algorithm)):
        raise UnusableKey(f"the key {kid!r} is none for RS256, ES256, EdDSA or HS256")
    if "d" in member:
        raise UnusableKey(
            f"the key {kid!r} is a private one: give the public one, and keep the other with whoever signs"
        )
    try:
        made = jwt.PyJWK(member, str(algorithm))
    except MissingCryptographyError as error:
        raise _without_cryptography() from error
    except (jwt.PyJWKError, jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise UnusableKey(f"the key {kid!r} cannot be read") from error
    return str(algorithm), _checked(made.key, str(algorithm), kid)


def _checked(key: Any, algorithm: str, kid: str = "") -> Any:
    """The key, if it is strong enough and of the kind its algorithm takes."""
    named = f"the key {kid!r}" if kid else "the key"
    if algorithm == "HS256" and (weak := find_weakness(key.decode("latin-1"), min_bytes=MIN_SECRET_BYTES)):
        raise UnusableKey(f"{named}: {weak}")
    if algorithm == "RS256" and key.key_size < _MIN_RSA_BITS:
        raise UnusableKey(f"{named} has {key.key_size} bits, and RS256 needs at least {_MIN_RSA_BITS}")
    if algorithm == "ES256" and key.curve.name != "secp256r1":
        raise UnusableKey(f"{named} is on the curve {key.curve.name}, and ES256 needs P-256")
    if algorithm == "EdDSA" and not type(key).__name__.startswith("Ed25519"):
        raise UnusableKey(f"{named} is none of Ed25519")
    return key


def _without_cryptography() -> UnusableKey:
    return UnusableKey("tokens signed so need the package cryptography: pip install 'holdfast[jwt]'")
