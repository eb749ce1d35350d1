"""Token signatures: the only module that imports the JWT library.

It is loaded only if a signing key is configured.
"""

from typing import Any

import jwt
import msgspec
from jwt.api_jws import PyJWS
from jwt.exceptions import MissingCryptographyError

from holdfast.errors import Invalid
from holdfast.policy.access import MIN_SECRET_BYTES, find_weakness
from holdfast.wire import json

KeyName = tuple[str | None, str]
"""Key id (None for an unnamed key) and algorithm."""

_KINDS = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "HS256": "oct"}
_CURVES = {"ES256": "P-256", "EdDSA": "Ed25519"}
_MIN_RSA_BITS = 2_048
_JWS = PyJWS(options={"enforce_minimum_key_length": True})


class UnusableKey(Exception):
    """The key cannot be used; the message says why."""


def is_signed(token: str, key: Any, algorithm: str) -> bool:
    """Return whether the token was signed with this key and exactly this algorithm."""
    try:
        _JWS.decode_complete(token, key, algorithms=[algorithm])
    except (jwt.InvalidTokenError, jwt.InvalidKeyError):
        return False
    return True


def sign(claims: dict[str, Any], secret: str, kid: str) -> str:
    """Return a token with these claims, signed (HS256) with the secret named `kid`."""
    return _JWS.encode(msgspec.json.encode(claims), secret.encode(), "HS256", headers={"kid": kid})


def read_keys(content: bytes, algorithm: str | None) -> dict[KeyName, Any]:
    """Read the keys of a file: one PEM key of this algorithm, or a JSON key set.

    Raises:
        UnusableKey: The file holds no key that can verify a token.
    """
    return _jwks(content) if algorithm is None else {(None, algorithm): _pem(content, algorithm)}


def _pem(content: bytes, algorithm: str) -> Any:
    if b"PRIVATE KEY" in content:
        raise UnusableKey(
            "it contains a private key: name the file of the public key, and keep the private key with the issuer"
        )
    try:
        key = jwt.get_algorithm_by_name(algorithm).prepare_key(content)
    except NotImplementedError as error:
        raise _without_cryptography() from error
    except (jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise UnusableKey(f"it contains no public key for {algorithm} in PEM") from error
    return _checked(key, algorithm)


def _jwks(content: bytes) -> dict[KeyName, Any]:
    try:
        members = [dict(member) for member in json.parse(content)["keys"]]
    except (Invalid, ValueError, TypeError, LookupError) as error:
        raise UnusableKey('it is not a JSON key set: write {"keys": [{"kid": …, "kty": …, "alg": …, …}, …]}') from error
    keys: dict[KeyName, Any] = {}
    for member in members:
        if member.get("use", "sig") != "sig":
            continue
        kid = member.get("kid")
        algorithm, key = _jwk(member)
        if (kid, algorithm) in keys:
            raise UnusableKey(f"two keys have the id {kid!r}: give each key its own kid")
        keys[kid, algorithm] = key
    return keys


def _jwk(member: dict[str, Any]) -> tuple[str, Any]:
    kid, kind = member.get("kid"), member.get("kty")
    if not isinstance(kid, str) or not kid:
        raise UnusableKey("a key has no id: give each key a kid")
    algorithm = member.get("alg") or next((alg for alg, kty in _KINDS.items() if kty == kind), None)
    if _KINDS.get(str(algorithm)) != kind or member.get("crv") != _CURVES.get(str(algorithm)):
        raise UnusableKey(f"the key {kid!r} is not for RS256, ES256, EdDSA or HS256: use one of these algorithms")
    if "d" in member:
        raise UnusableKey(
            f"the key {kid!r} is a private key: list the public key, and keep the private key with the issuer"
        )
    try:
        jwk = jwt.PyJWK(member, str(algorithm))
    except MissingCryptographyError as error:
        raise _without_cryptography() from error
    except (jwt.PyJWKError, jwt.InvalidKeyError, ValueError, TypeError) as error:
        raise UnusableKey(f"the key {kid!r} is malformed: export it again") from error
    return str(algorithm), _checked(jwk.key, str(algorithm), kid)


def _checked(key: Any, algorithm: str, kid: str = "") -> Any:
    """Return the key if it is strong enough and fits its algorithm. Raises `UnusableKey`."""
    subject = f"the key {kid!r}" if kid else "the key"
    if algorithm == "HS256" and (weakness := find_weakness(key.decode("latin-1"), min_bytes=MIN_SECRET_BYTES)):
        raise UnusableKey(f"{subject}: {weakness}")
    if algorithm == "RS256" and key.key_size < _MIN_RSA_BITS:
        raise UnusableKey(f"{subject} has {key.key_size} bits, and RS256 needs at least {_MIN_RSA_BITS}")
    if algorithm == "ES256" and key.curve.name != "secp256r1":
        raise UnusableKey(f"{subject} is on the curve {key.curve.name}, and ES256 needs P-256")
    if algorithm == "EdDSA" and not type(key).__name__.startswith("Ed25519"):
        raise UnusableKey(f"{subject} is not an Ed25519 key, and EdDSA needs one")
    return key


def _without_cryptography() -> UnusableKey:
    return UnusableKey("this algorithm needs the package cryptography: pip install 'holdfast[jwt]'")
