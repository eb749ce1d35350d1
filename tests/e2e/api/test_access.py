"""Who gets in, and how far."""

import pytest

from holdfast.api.app import Api
from holdfast.api.asgi import request_from_scope
from holdfast.api.auth.auth_throttle import ClientAddresses, FailureThrottle, throttle_key
from holdfast.api.http import HttpResponse
from holdfast.api.routes import ALL
from holdfast.api.routing import ANY_CALLER, PUBLIC, Route, Routes
from holdfast.compose import build_api
from holdfast.config import Settings
from holdfast.errors import Misconfigured
from holdfast.model.access import Scope
from holdfast.policy.access import TENANT_SCOPES
from tests.e2e.api.conftest import ADMIN, problem

SCOPES = [scope.value for scope in Scope]


async def _reached(_call):
    return HttpResponse(None, 204)


def stubbed():
    """The table of routes as it is, with handlers that only tell that they were reached."""
    return Routes(route._replace(handler=_reached, body=None, query=None) for route in ALL)


def path_of(route):
    return route.path.replace("{id}", "0190b5a2-7c3e-7000-8000-000000000000").replace("{", "").replace("}", "")


@pytest.fixture
def reachable(served):
    served.api = Api(served.api.service._replace(routes=stubbed()))
    return served


class TestScopes:
    """T09: each route with each scope, from the table of routes itself."""

    @pytest.mark.databases("sqlite")
    @pytest.mark.parametrize("scope", SCOPES)
    async def test_a_key_reaches_only_the_routes_of_its_scopes(self, reachable, scope):
        client = await reachable.client(await reachable.key("acme", scope))
        wanted, found = {}, {}
        for route in ALL:
            may = route.scope in (PUBLIC, ANY_CALLER) or route.scope == scope != "admin"
            if scope == "admin":  # of a tenant
                may = may or route.tenant_admin or route.scope in TENANT_SCOPES - {"admin"}
            wanted[route.method, route.path] = 204 if may else 403
            found[route.method, route.path] = (await client.request(route.method, path_of(route))).status_code

        assert found == wanted

    @pytest.mark.databases("sqlite")
    async def test_an_administrator_of_the_installation_reaches_all_routes(self, reachable):
        client = await reachable.client(await reachable.key("default", "admin"))
        found = {(await client.request(route.method, path_of(route))).status_code for route in ALL}

        assert found == {204}

    @pytest.mark.databases("sqlite")
    async def test_only_public_routes_respond_without_a_key(self, reachable):
        """T32: a scan of a fresh installation."""
        client = await reachable.client(None)
        found = [(await client.request(route.method, path_of(route))).status_code for route in ALL]

        assert found == [204 if route.scope == PUBLIC else 401 for route in ALL]
        assert {route.path for route in ALL if route.scope == PUBLIC} <= {
            "/", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs.css", "/assets/{name}", "/metrics",
            "/v1/sign-in",
        }  # fmt: skip

    @pytest.mark.databases("sqlite")
    async def test_only_administrators_manage_tenants_and_keys(self, served):
        """T38."""
        client = await served.client(await served.key("acme", "submit", "read", "cancel", "worker"))
        for method, path in (
            ("GET", "/v1/keys"),
            ("POST", "/v1/keys"),
            ("GET", "/v1/tenants"),
            ("POST", "/v1/tenants"),
        ):
            problem(await client.request(method, path, json={} if method == "POST" else None), 403, "forbidden")

    def test_a_route_without_a_scope_fails_at_the_start(self):
        with pytest.raises(Misconfigured, match="declares no scope"):
            Routes([Route("GET", "/v1/x", None, _reached, "x", {200: None})])


class TestTenants:
    async def test_another_tenants_job_is_not_found(self, served):
        """T01: for each route with an id, the responses for a foreign and an unknown id differ only in the id."""
        acme, other = [await served.client(await served.key(tenant)) for tenant in ("acme", "other")]
        foreign = (await acme.post("/v1/jobs", json={"type": "send"})).json()["id"]
        unknown = "0190b5a2-7c3e-7000-8000-000000000000"
        for route in ALL:
            if route.path.startswith("/v1/jobs/{id}") and route.scope != Scope.ADMIN:
                body = None if route.body is None else {}
                answers = [
                    await other.request(route.method, route.path.replace("{id}", each), json=body)
                    for each in (foreign, unknown)
                ]
                assert [each.status_code for each in answers] == [404, 404], route.path
                assert answers[0].text.replace(foreign, "") == answers[1].text.replace(unknown, ""), route.path
        assert (await acme.get(f"/v1/jobs/{foreign}")).json()["status"] == "ready"

    async def test_only_administrators_act_for_another_tenant(self, served, admin):
        acme = await served.client(await served.key("acme"))
        named = {"Holdfast-Tenant": "other"}

        problem(await acme.post("/v1/jobs", json={"type": "send"}, headers=named), 403, "forbidden")
        assert (await admin.post("/v1/jobs", json={"type": "send"}, headers=named)).json()["tenant"] == "other"
        assert (await acme.get("/v1/jobs")).json()["items"] == []

    async def test_an_invalid_tenant_name_is_rejected(self, admin):
        named = {"Holdfast-Tenant": "a b"}

        problem(await admin.post("/v1/jobs", json={"type": "send"}, headers=named), 422, "invalid")


class TestBruteForce:
    """T08: ten failures a minute from one address, and at one key."""

    async def test_a_client_that_guesses_keys_is_throttled(self, ticking, ticker):
        thief = await ticking.client(None, address="203.0.113.9")
        answers = [
            await thief.get("/v1/jobs", headers={"authorization": f"Bearer hf_{n:016x}_{n:064x}"}) for n in range(1_000)
        ]
        held = [each for each in answers if each.status_code == 429]

        assert [each.status_code for each in answers[:10]] == [401] * 10
        assert len(held) == 990
        assert {(each.content, each.headers["retry-after"]) for each in held} == {(held[0].content, "60")}
        assert len({each.content for each in answers[:10]}) == 1

        assert (await (await ticking.client(ADMIN, address="203.0.113.10")).get("/v1/jobs")).status_code == 200
        assert (await (await ticking.client("hf_wrong", address="203.0.113.9")).get("/v1/jobs")).status_code == 429
        ticker.advance(60)
        assert (await (await ticking.client("hf_wrong", address="203.0.113.9")).get("/v1/jobs")).status_code == 401

    async def test_a_valid_key_works_behind_the_address_of_a_client_that_guesses(self, served, ticking):
        """Behind one proxy, all clients may have the same address."""
        known, new = await served.key(), await served.key()
        owner = await ticking.client(known, address="203.0.113.9")
        assert (await owner.get("/v1/jobs")).status_code == 200
        thief = await ticking.client("hf_wrong", address="203.0.113.9")
        assert [(await thief.get("/v1/jobs")).status_code for _ in range(12)] == [401] * 10 + [429] * 2

        for key in (known, new, ADMIN):
            client = await ticking.client(key, address="203.0.113.9")
            assert (await client.get("/v1/jobs")).status_code == 200

    async def test_a_failed_authentication_is_logged_without_the_secret(self, served, ticking, caplog):
        token = await served.key()
        thief = await ticking.client(f"{token[:-64]}{7:064x}", address="203.0.113.9")
        for _ in range(20):
            await thief.get("/v1/jobs")

        lines = [each.getMessage() for each in caplog.records if "authentication failed" in each.getMessage()]
        assert len(lines) == 10
        assert f"from 203.0.113.9 for key {token.split('_')[1]}" in lines[0]
        assert lines[-1].endswith("; further failures are throttled for a minute")
        assert f"{7:064x}" not in caplog.text

    async def test_guesses_of_one_key_are_throttled_but_its_owner_is_not(self, served, ticking):
        token = await served.key()
        guesses = []
        for number in range(30):
            guess = f"{token[:-64]}{number:064x}"
            guesses.append(await (await ticking.client(guess, address=f"198.51.100.{number}")).get("/v1/jobs"))

        assert [each.status_code for each in guesses] == [401] * 10 + [429] * 20
        owner = await ticking.client(token, address="192.0.2.1")
        assert (await owner.get("/v1/jobs")).status_code == 200

    async def test_unknown_and_wrong_keys_get_the_same_response(self, served, ticking):
        tokens = (await served.key(), f"hf_{'0' * 16}_{'0' * 64}")
        seen = []
        for kind, token in enumerate(tokens):
            guesses = [await ticking.client(f"{token[:-64]}{n:064x}", address=f"10.{kind}.0.{n}") for n in range(12)]
            answers = [await guess.get("/v1/jobs") for guess in guesses]
            seen.append([(each.status_code, each.content, each.headers.get("retry-after")) for each in answers])

        assert seen[0] == seen[1]
        assert [code for code, _, _ in seen[0]] == [401] * 10 + [429] * 2

    async def test_requests_without_a_key_are_not_counted_as_guesses(self, ticking):
        silent = await ticking.client(None, address="203.0.113.9")

        assert {(await silent.get("/v1/jobs")).status_code for _ in range(30)} == {401}

    def test_memory_is_bounded(self):
        attempts = FailureThrottle(monotonic=lambda: 0.0)
        for number in range(20_000):
            attempts.record_failure(f"address {number}")

        assert len(attempts._failures) == 10_000


class TestAddresses:
    """T36: who says that a request came from elsewhere is believed if it is a proxy of ours."""

    @pytest.mark.parametrize(
        "peer, forwarded, trusted, found",
        [
            ("203.0.113.9", None, (), "203.0.113.9"),
            ("203.0.113.9", "1.2.3.4", (), "203.0.113.9"),
            ("203.0.113.9", "1.2.3.4", ("10.0.0.0/8",), "203.0.113.9"),
            ("10.0.0.1", "1.2.3.4", ("10.0.0.0/8",), "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4", ("10.0.0.0/8",), "1.2.3.4"),
            ("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", ("10.0.0.0/8",), "1.2.3.4"),
            ("10.0.0.1", "10.0.0.3", ("10.0.0.0/8",), "10.0.0.3"),
            ("10.0.0.1", "1.2.3.4, nonsense", ("10.0.0.0/8",), "10.0.0.1"),
            ("10.0.0.1", "", ("10.0.0.0/8",), "10.0.0.1"),
            ("::ffff:10.0.0.1", "::ffff:1.2.3.4", ("10.0.0.0/8",), "1.2.3.4"),
            ("::1", "2001:db8::7", ("::1/128",), "2001:db8::7"),
            ("fe80::1%eth0", None, (), "fe80::1"),
            ("", "1.2.3.4", ("10.0.0.0/8",), ""),
        ],
    )
    def test_the_client_address_is_found_behind_trusted_proxies(self, peer, forwarded, trusted, found):
        headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
        head = {"method": "GET", "path": "/", "headers": headers, "client": (peer, 1) if peer else None}

        assert ClientAddresses(trusted).of(request_from_scope(head, None)) == found

    def test_ipv6_addresses_are_throttled_by_network(self):
        assert throttle_key("2001:db8::1") == throttle_key("2001:db8::ffff:2") != throttle_key("2001:db8:0:1::1")

    @pytest.mark.databases("sqlite")
    async def test_a_forged_forwarded_header_is_ignored(self, ticking):
        thief = await ticking.client("hf_nonsense", address="203.0.113.9")
        codes = [
            (await thief.get("/v1/jobs", headers={"x-forwarded-for": f"10.0.0.{n}"})).status_code for n in range(12)
        ]

        assert codes == [401] * 10 + [429] * 2


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("key", ["short", "changemechangeme", "aaaaaaaaaaaaaaaaaaaa", "admin-admin-admin-admin"])
async def test_a_weak_admin_key_is_rejected(engine, key):
    """T05, T32: no default credentials."""
    with pytest.raises(Misconfigured, match=r"^HOLDFAST_ADMIN_KEY: "):
        build_api(Settings(admin_key=key), engine)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize(
    "secret", ["x" * 31, "changeme" * 4, "your-256-bit-secret-your-256-bit-secret", "0123456789" * 4]
)
@pytest.mark.parametrize("name", ["jwt_secret", "jwt_previous_secret"])
async def test_a_weak_secret_is_rejected(engine, name, secret):
    """T05."""
    with pytest.raises(Misconfigured, match=f"^HOLDFAST_{name.upper()}: ") as refused:
        build_api(Settings(**{name: secret}), engine)
    assert secret not in str(refused.value)


@pytest.mark.databases("sqlite")
async def test_an_installation_without_keys_rejects_every_caller(engine, served):
    """T32: even if the service were built so."""
    served.api = build_api(Settings(), engine)
    for token in (None, "", "None", "null", "admin", f"hf_{'0' * 16}_{'0' * 64}"):
        problem(
            await (await served.client(token, address=f"10.0.0.{len(token or '')}")).get("/v1/jobs"),
            401,
            "unauthorized",
        )
