"""Tokens: which are believed, how they are made, how their keys are changed."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from holdfast.api.auth.tokens import KeyFile, TokenKeys, Tokens, secret_name
from holdfast.config import Settings
from holdfast.errors import Misconfigured
from holdfast.model.access import Scope
from holdfast.model.time import Instant
from holdfast.policy.tokens import Audience
from tests.e2e.api.conftest import ADMIN, problem

SECRET = "f3a9c2e17b5d4860a1c3e5f7092b4d6e8a0c2e4f"
OTHER = "0b1d3f5a7c9e2b4d6f8a1c3e5b7d9f0a2c4e6b8d"
RSA, FOREIGN_RSA = (rsa.generate_private_key(65_537, 2_048) for _ in range(2))
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
EXPECTED = Audience("https://id.example", "jobs")
AT = Instant(2_000_000_000_000_000)
NOW = 2_000_000_000
CLAIMS = {
    "iss": EXPECTED.issuer,
    "aud": EXPECTED.audience,
    "sub": "user-7",
    "exp": NOW + 600,
    "iat": NOW,
    "tenant": "acme",
    "scope": "read submit",
}


def pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def jwk(key, kid, algorithm):
    made = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key()))
    return made | {"kid": kid, "alg": algorithm, "use": "sig"}


def segment(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def signed(claims=CLAIMS, key=SECRET, algorithm="HS256", **header):
    """A token as an issuer makes it, or a forger who has that key; None leaves a header out."""
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return jwt.api_jws.encode(payload, key, algorithm, headers=header or None)


def raw(header, claims=CLAIMS, key=SECRET):
    """A token with any header whatsoever, its signature right for HS256."""
    start = f"{segment(header)}.{segment(claims)}"
    signature = jwt.get_algorithm_by_name("HS256").sign(start.encode(), key if isinstance(key, bytes) else key.encode())
    return f"{start}.{segment(signature)}"


def without(name):
    return {each: value for each, value in CLAIMS.items() if each != name}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "rsa.pem").write_bytes(pem(RSA))
    keys = [jwk(RSA, "r", "RS256"), jwk(EC, "e", "ES256"), jwk(ED, "d", "EdDSA")]
    keys.append({"kty": "oct", "kid": "h", "alg": "HS256", "k": segment(OTHER.encode())})
    (folder / "keys.json").write_text(json.dumps({"keys": keys}))
    return KeyFile("PEM", folder / "rsa.pem", "RS256"), KeyFile("JWKS", folder / "keys.json")


@pytest.fixture(scope="module")
def tokens(files):
    return Tokens(TokenKeys(SECRET, None, files), EXPECTED)


GOOD = {
    "the secret": signed,
    "the secret, by its name": lambda: signed(kid=secret_name(SECRET)),
    "a secret of the set": lambda: signed(key=OTHER, kid="h"),
    "RSA in PEM": lambda: signed(key=RSA, algorithm="RS256"),
    "RSA of the set": lambda: signed(key=RSA, algorithm="RS256", kid="r"),
    "ECDSA of the set": lambda: signed(key=EC, algorithm="ES256", kid="e"),
    "EdDSA of the set": lambda: signed(key=ED, algorithm="EdDSA", kid="d"),
    "several audiences": lambda: signed(CLAIMS | {"aud": ["else", "jobs"]}),
    "an access token": lambda: signed(typ="at+jwt"),
    "a clock that is a little off": lambda: signed(CLAIMS | {"iat": NOW + 5, "nbf": NOW + 5, "exp": NOW - 5}),
}

FORGED = {
    # Algorithms and keys
    "alg none": lambda: f"{segment({'alg': 'none'})}.{segment(CLAIMS)}.",
    "alg None": lambda: f"{segment({'alg': 'None', 'typ': 'JWT'})}.{segment(CLAIMS)}.",
    "alg none with a signature": lambda: f"{segment({'alg': 'none'})}.{signed().split('.', 1)[1]}",
    "no alg": lambda: raw({"typ": "JWT"}),
    "alg null": lambda: raw({"alg": None}),
    "alg in lower case": lambda: raw({"alg": "hs256"}),
    "HS384": lambda: signed(algorithm="HS384", key=SECRET + SECRET),
    "HS512 with the secret": lambda: signed(algorithm="HS512", key=SECRET + SECRET),
    "unsigned": lambda: signed().rsplit(".", 1)[0] + ".",
    "without its signature": lambda: signed().rsplit(".", 1)[0],
    "another secret": lambda: signed(key=OTHER),
    "an empty secret": lambda: raw({"alg": "HS256"}, key=b""),
    "HS with the public key in PEM": lambda: raw({"alg": "HS256"}, key=pem(RSA)),
    "HS with the public key by its name": lambda: raw({"alg": "HS256", "kid": "r"}, key=pem(RSA)),
    "RS with another key": lambda: signed(key=FOREIGN_RSA, algorithm="RS256"),
    "RS by the name of another": lambda: signed(key=FOREIGN_RSA, algorithm="RS256", kid="r"),
    "RS256 key with PS256": lambda: signed(key=RSA, algorithm="PS256", kid="r"),
    "RS512": lambda: signed(key=RSA, algorithm="RS512", kid="r"),
    "ES256 by the name of RSA": lambda: signed(key=EC, algorithm="ES256", kid="r"),
    "a secret by the name of ECDSA": lambda: signed(kid="e"),
    "ES without a name": lambda: signed(key=EC, algorithm="ES256"),
    "the secret by the name of another": lambda: signed(kid="h"),
    # Headers
    "an unknown kid": lambda: signed(kid="unknown"),
    "an empty kid": lambda: raw({"alg": "HS256", "kid": ""}),
    "kid null": lambda: raw({"alg": "HS256", "kid": None}),
    "kid a number": lambda: raw({"alg": "HS256", "kid": 1}),
    "kid a path": lambda: raw({"alg": "HS256", "kid": "../../../../dev/null"}, key=b""),
    "kid SQL": lambda: raw({"alg": "HS256", "kid": "x' UNION SELECT 'aaa"}, key=b"aaa"),
    "kid a list": lambda: raw({"alg": "HS256", "kid": ["h"]}),
    "jku": lambda: signed(jku="https://evil.example/keys.json"),
    "jwk": lambda: raw({"alg": "HS256", "jwk": {"kty": "oct", "k": segment(b"x" * 32)}}, key=b"x" * 32),
    "jwk beside the right key": lambda: signed(jwk={"kty": "oct"}),
    "x5u": lambda: signed(x5u="https://evil.example/cert.pem"),
    "x5c": lambda: signed(x5c=["MIIB"]),
    "crit": lambda: raw({"alg": "HS256", "crit": ["exp"], "exp": 1}),
    "b64": lambda: raw({"alg": "HS256", "b64": False, "crit": ["b64"]}),
    "wrong typ": lambda: signed(typ="secevent+jwt"),
    "typ a number": lambda: raw({"alg": "HS256", "typ": 1}),
    "a header that is a list": lambda: raw(["HS256"]),
    "a header with a name twice": lambda: raw(b'{"alg":"HS256","alg":"none"}'),
    "a header that is no JSON": lambda: raw(b"alg: HS256"),
    # Claims
    "expired": lambda: signed(CLAIMS | {"exp": NOW - 11}),
    "without exp": lambda: signed(without("exp")),
    "exp null": lambda: signed(CLAIMS | {"exp": None}),
    "exp a text": lambda: signed(CLAIMS | {"exp": str(NOW + 600)}),
    "exp true": lambda: signed(CLAIMS | {"exp": True}),
    "exp without end": lambda: signed(json.dumps(CLAIMS).replace(str(NOW + 600), "1e999").encode()),
    "exp not a number": lambda: signed(json.dumps(CLAIMS).replace(str(NOW + 600), "NaN").encode()),
    "exp negative": lambda: signed(CLAIMS | {"exp": -1}),
    "nbf in the future": lambda: signed(CLAIMS | {"nbf": NOW + 60}),
    "nbf a text": lambda: signed(CLAIMS | {"nbf": "now"}),
    "iat in the future": lambda: signed(CLAIMS | {"iat": NOW + 60}),
    "without iss": lambda: signed(without("iss")),
    "another iss": lambda: signed(CLAIMS | {"iss": "https://id.example.evil"}),
    "iss with a slash": lambda: signed(CLAIMS | {"iss": EXPECTED.issuer + "/"}),
    "iss a list": lambda: signed(CLAIMS | {"iss": [EXPECTED.issuer]}),
    "without aud": lambda: signed(without("aud")),
    "another aud": lambda: signed(CLAIMS | {"aud": "job"}),
    "aud a part": lambda: signed(CLAIMS | {"aud": "jobs-of-others"}),
    "aud empty": lambda: signed(CLAIMS | {"aud": []}),
    "aud with a number": lambda: signed(CLAIMS | {"aud": ["jobs", 1]}),
    "without sub": lambda: signed(without("sub")),
    "sub empty": lambda: signed(CLAIMS | {"sub": ""}),
    "sub with a line break": lambda: signed(CLAIMS | {"sub": "a\nb"}),
    "without tenant": lambda: signed(without("tenant")),
    "tenant a list": lambda: signed(CLAIMS | {"tenant": ["acme"]}),
    "tenant with a space": lambda: signed(CLAIMS | {"tenant": "a b"}),
    "scope a list": lambda: signed(CLAIMS | {"scope": ["admin"]}),
    "a key that is no id": lambda: signed(CLAIMS | {"key": "x' OR 1=1 --"}),
    "a key null": lambda: signed(CLAIMS | {"key": None}),
    "a claim twice": lambda: signed(json.dumps(CLAIMS)[:-1].encode() + b',"scope":"admin"}'),
    "claims that are a list": lambda: signed([CLAIMS]),
    "claims that are no JSON": lambda: signed(b"scope=admin"),
    # Shapes
    "two parts": lambda: ".".join(signed().split(".")[:2]),
    "four parts": lambda: signed() + ".x",
    "five parts": lambda: "..".join(signed().split(".")),
    "huge": lambda: signed(CLAIMS | {"more": "x" * 9_000}),
    "padded": lambda: signed() + "=",
    "a space inside": lambda: signed().replace(".", ". ", 1),
    "plus and slash": lambda: signed().rsplit(".", 1)[0] + "." + signed().rsplit(".", 1)[1].replace("_", "/") + "+",
    "other claims under a good signature": lambda: ".".join(
        (signed().split(".")[0], segment(CLAIMS | {"scope": "admin"}), signed().split(".")[2])
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_valid_token_is_accepted(tokens, name):
    caller = tokens.read(GOOD[name](), AT)

    assert (caller.tenant, caller.scopes, caller.name) == ("acme", {Scope.READ, Scope.SUBMIT}, "token:user-7")


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_rejected(tokens, name):
    """T04."""
    assert tokens.read(FORGED[name](), AT) is None


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def others(character):
    """Replacements of a character: one bit away, far away, and of another kind."""
    place = ALPHABET.find(character)
    return {ALPHABET[place ^ 1], ALPHABET[place ^ 32], "=", ".", "\xff"} - {character}


@pytest.mark.parametrize("which", GOOD)
def test_a_token_with_any_changed_byte_is_rejected(tokens, which):
    """T04: also where base64 has bits that stand for nothing."""
    token = GOOD[which]()
    changed = (token[:at] + each + token[at + 1 :] for at, now in enumerate(token) for each in others(now))
    assert [each for each in changed if tokens.read(each, AT) is not None] == []


def test_the_last_character_of_a_signature_has_one_spelling(tokens):
    """T04: the last of 43 characters carries four bits; the other two must be what they are."""
    token = signed()

    assert [c for c in ALPHABET if tokens.read(token[:-1] + c, AT) is not None] == [token[-1]]


def test_an_unknown_scope_permits_nothing(tokens):
    """T09."""
    assert tokens.read(signed(CLAIMS | {"scope": "root READ submit"}), AT).scopes == {Scope.SUBMIT}
    assert tokens.read(signed(without("scope")), AT).scopes == frozenset()


class TestKeyRotation:
    """T06: several at a time, by name; removed ones are dead within five seconds."""

    def write(self, path, *keys):
        path.write_text(json.dumps({"keys": list(keys)}))

    def tokens(self, path, ticker):
        return Tokens(TokenKeys(files=(KeyFile("JWKS", path),), monotonic=ticker), EXPECTED)

    def test_tokens_stay_valid_during_a_key_rotation(self, tmp_path, ticker):
        path = tmp_path / "keys.json"
        old, new = jwk(EC, "old", "ES256"), jwk(ED, "new", "EdDSA")
        by_old = signed(key=EC, algorithm="ES256", kid="old")
        by_new = signed(key=ED, algorithm="EdDSA", kid="new")
        self.write(path, old)
        tokens = self.tokens(path, ticker)
        seen = []
        for keys in ([old], [old, new], [new]):
            self.write(path, *keys)
            ticker.advance(5)
            seen.append([tokens.read(each, AT) is not None for each in (by_old, by_new)])

        assert seen == [[True, False], [True, True], [False, True]]

    def test_a_malformed_key_file_keeps_its_previous_keys(self, tmp_path, ticker, caplog):
        path = tmp_path / "keys.json"
        self.write(path, jwk(EC, "old", "ES256"))
        tokens = self.tokens(path, ticker)
        path.write_text('{"keys": [')
        ticker.advance(5)

        assert tokens.read(signed(key=EC, algorithm="ES256", kid="old"), AT) is not None
        assert "stay in use" in caplog.text

    def test_a_deleted_key_file_loses_its_keys(self, tmp_path, ticker):
        path = tmp_path / "keys.json"
        self.write(path, jwk(EC, "old", "ES256"))
        tokens = self.tokens(path, ticker)
        path.unlink()
        ticker.advance(5)

        assert tokens.read(signed(key=EC, algorithm="ES256", kid="old"), AT) is None

    def test_a_secret_is_rotated(self):
        old, new = Tokens(TokenKeys(OTHER), EXPECTED), Tokens(TokenKeys(SECRET, OTHER), EXPECTED)
        caller = new.read(signed(), AT)._replace(until=None, key="aa")
        before, _ = old.make(caller, AT, 600_000_000)
        after, _ = new.make(caller, AT, 600_000_000)

        assert new.read(before, AT) is not None
        assert new.read(after, AT) is not None
        assert Tokens(TokenKeys(SECRET), EXPECTED).read(before, AT) is None


WEAK_RSA = rsa.generate_private_key(65_537, 1_024)


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "is not a JSON key set"),
        ("[]", "is not a JSON key set"),
        ('{"keys": 1}', "is not a JSON key set"),
        (json.dumps({"keys": [without("x")]}), "no id"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256") | {"kid": None}]}), "no id"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256")] * 2}), "two keys have the id 'e'"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256") | {"alg": "RS256"}]}), "is not for"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256") | {"crv": "P-384"}]}), "is not for"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256") | {"x": "AAAA"}]}), "is malformed"),
        (json.dumps({"keys": [jwk(EC, "e", "ES256") | {"d": "AAAA"}]}), "private"),
        (json.dumps({"keys": [jwk(WEAK_RSA, "w", "RS256")]}), "1024 bits"),
        (json.dumps({"keys": [{"kty": "oct", "kid": "h", "k": segment(b"short")}]}), "5 bytes"),
        (json.dumps({"keys": [{"kty": "oct", "kid": "h", "k": segment(b"changeme" * 5)}]}), "well known"),
        (json.dumps({"keys": [{"kty": "oct", "kid": "h", "alg": "none", "k": segment(b"x")}]}), "is not for"),
    ],
)  # fmt: skip
def test_unusable_keys_are_rejected_at_the_start(tmp_path, content, said):
    """T05."""
    path = tmp_path / "keys.json"
    path.write_text(content)

    with pytest.raises(Misconfigured, match=f"^JWKS: .*{said}"):
        TokenKeys(files=(KeyFile("JWKS", path),))


# Over HTTP


class TestService:
    @pytest_asyncio.fixture
    async def settings(self, database_url):
        return Settings(
            database_url=database_url,
            admin_key=ADMIN,
            jwt_secret=SECRET,
            jwt_issuer=EXPECTED.issuer,
            jwt_audience="jobs",
        )

    async def test_all_forged_tokens_get_the_same_response(self, served):
        """T04, T08: whatever is wrong, the answer is the same."""
        answers = []
        for number, name in enumerate(FORGED):
            token = FORGED[name]()
            if token.isascii() and token.isprintable():
                client = await served.client(token, address=f"10.0.{number // 10}.{number % 10}")
                answers.append(await client.get("/v1/jobs"))

        assert len(answers) > 40
        assert {(each.status_code, each.content, each.headers["www-authenticate"]) for each in answers} == {
            (401, answers[0].content, "Bearer")
        }

    async def test_a_key_creates_a_token_with_the_same_or_fewer_scopes(self, served):
        client = await served.client(await served.key("acme", "submit", "read"))
        made = await client.post("/v1/tokens", json={"scopes": ["read"], "expires_in": "5m"})
        bearer = await served.client(made.json()["token"])

        assert made.status_code == 201
        assert set(made.json()) == {"token", "token_type", "tenant", "scopes", "expires_at"}
        assert (made.json()["tenant"], made.json()["scopes"]) == ("acme", ["read"])
        assert (await bearer.get("/v1/jobs")).status_code == 200
        problem(await bearer.post("/v1/jobs", json={"type": "send"}), 403, "forbidden")
        problem(await bearer.post("/v1/tokens", json={"scopes": ["submit"]}), 403, "forbidden")
        problem(await client.post("/v1/tokens", json={"scopes": ["admin"]}), 403, "forbidden")

    async def test_a_token_that_an_administrator_issues_for_a_tenant_stays_within_it(self, served):
        """T09, T38: even with the scope `admin`."""
        admin = await served.client(await served.key("default", "admin"))
        made = await admin.post("/v1/tokens", json={"scopes": ["admin"]}, headers={"holdfast-tenant": "acme"})
        client = await served.client(made.json()["token"])

        assert (await client.get("/v1/me")).json()["tenant"] == "acme"
        assert (await client.get("/v1/keys")).json()["items"] == []
        problem(await client.post("/v1/tenants", json={"name": "new"}), 403, "forbidden")

    async def test_a_token_is_valid_for_at_most_an_hour(self, served):
        client = await served.client(await served.key())

        for lifetime in ("3601s", 0, -1, "2h"):
            problem(await client.post("/v1/tokens", json={"expires_in": lifetime}), 422, "invalid")
        made = (await client.post("/v1/tokens", json={})).json()
        claims = json.loads(urlsafe_b64decode(made["token"].split(".")[1] + "=="))
        assert claims["exp"] - claims["iat"] == 900

    async def test_a_token_expires_with_the_token_that_created_it(self, served):
        client = await served.client(await served.key())
        first = (await client.post("/v1/tokens", json={"expires_in": 60})).json()
        second = (await (await served.client(first["token"])).post("/v1/tokens", json={"expires_in": 3_600})).json()

        assert second["expires_at"] <= first["expires_at"]

    async def test_a_token_is_rejected_when_its_key_is_revoked(self, served, ticking, ticker):
        """T07: on all nodes, as the key itself does."""
        key = await served.key()
        token = (await (await served.client(key)).post("/v1/tokens", json={})).json()["token"]
        elsewhere = await ticking.client(token)
        assert (await elsewhere.get("/v1/jobs")).status_code == 200

        await served.engine.access.revoke_key(key.split("_")[1])
        ticker.advance(5)

        assert (await elsewhere.get("/v1/jobs")).status_code == 401
        assert (await (await served.client(token)).get("/v1/jobs")).status_code == 401

    async def test_a_token_expires(self, served):
        client = await served.client(await served.key())
        token = (await client.post("/v1/tokens", json={"expires_in": 1})).json()["token"]
        key_cache = served.engine.access.key_cache
        at = await key_cache.now()
        key_cache._clock = Instant(at + 60_000_000), key_cache._clock[1]

        assert (await (await served.client(token)).get("/v1/jobs")).status_code == 401

    async def test_an_administrator_creates_a_token_for_a_tenant(self, served, admin):
        made = await admin.post("/v1/tokens", json={"scopes": ["read"]}, headers={"Holdfast-Tenant": "acme"})
        bearer = await served.client(made.json()["token"])

        assert made.json()["tenant"] == "acme"
        assert (await bearer.get("/v1/jobs?tenant=acme")).status_code == 200
        problem(await bearer.get("/v1/jobs?tenant=other"), 403, "forbidden")

    async def test_a_token_without_a_key_creates_no_token(self, served):
        at = await served.engine.access.key_cache.now() // 1_000_000
        client = await served.client(signed(CLAIMS | {"exp": at + 600, "iat": at}))

        assert (await client.get("/v1/jobs")).status_code == 200
        problem(await client.post("/v1/tokens", json={}), 403, "forbidden")

    async def test_a_token_never_exceeds_its_key(self, served):
        """A token that names a key is bound by it, whatever it says."""
        key = await served.key("acme", "read")
        at = await served.engine.access.key_cache.now() // 1_000_000
        claims = CLAIMS | {"exp": at + 600, "iat": at, "key": key.split("_")[1]}
        more = await served.client(signed(claims | {"scope": "read submit admin"}))
        elsewhere = await served.client(signed(claims | {"tenant": "other"}))

        assert (await more.get("/v1/jobs")).status_code == 200
        problem(await more.post("/v1/jobs", json={"type": "send"}), 403, "forbidden")
        problem(await elsewhere.get("/v1/jobs"), 401, "unauthorized")


async def test_no_token_is_created_without_a_secret(admin):
    refused = problem(await admin.post("/v1/tokens", json={}), 409, "no_jwt_secret")

    assert "HOLDFAST_JWT_SECRET" in refused["detail"]
