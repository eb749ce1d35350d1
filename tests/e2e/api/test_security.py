"""Rules for every route, generated from the route table: headers, origins, tenants, secrets, fields."""

import asyncio
import json
import logging
import re

import httpx2
import msgspec
import pytest

from holdfast.api.app import Api
from holdfast.api.headers import Cors, request_id
from holdfast.api.http import HttpResponse
from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from holdfast.api.routing import PUBLIC, Route, Routes
from holdfast.compose import build_api
from holdfast.config.values import Origins
from holdfast.errors import Misconfigured
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure, Succeeded
from holdfast.telemetry import logs
from tests.e2e.api.conftest import ADMIN, problem
from tests.support.builders import enter, report, take
from tests.support.eventually import eventually

UNKNOWN = "0190b5a2-7c3e-7000-8000-000000000000"
STREAM = "/v1/events"


async def lines_with(written, text):
    """Return the log lines with a text; the line of a request may follow its response."""
    return [line for line in written().splitlines() if text in line]


def path_of(route, identity=UNKNOWN):
    return re.sub(r"\{\w+\}", identity, route.path)


async def ask(client, route, identity=UNKNOWN, **options):
    """A request to a route; of a stream, the head."""
    if route.body is not None:
        options.setdefault("json", {})
    if route.path == STREAM:
        async with client.stream("GET", path_of(route, identity), **options) as answer:
            return answer
    return await client.request(route.method, path_of(route, identity), **options)


class TestHeaders:
    """T30, T14."""

    @pytest.mark.databases("sqlite")
    async def test_every_response_has_the_security_headers(self, live):
        for key in (ADMIN, None):
            client = await live.client(key)
            for route in ALL:
                headers = (await ask(client, route)).headers
                at = f"{route.method} {route.path}"
                assert headers["x-content-type-options"] == "nosniff", at
                assert headers["referrer-policy"] == "no-referrer", at
                assert headers["x-frame-options"] == "DENY", at
                assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", headers["x-request-id"]), at
                assert headers["cache-control"] == ("no-cache" if route.path in ("/", "/docs.css") else "no-store"), at
                assert "access-control-allow-origin" not in headers, at
                assert "server" not in headers, at
                policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
                assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'", at
                assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'", at
        for path in ("/index.html", "/v1", "/v2/jobs", "/v1/jobs/", "/.env", "/admin", "/healthz/"):
            answer = await client.get(path)
            assert answer.status_code == 404, path
            assert answer.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize(
        "given, kept",
        [
            (b"abc-123.X_y", True), (b"a" * 64, True), (b"a" * 65, False), (b"", False), (b"a b", False),
            (b"-a", False),
            (b"a\r\nb", False), (b"a, b", False), (b"<script>", False), (b"\xff", False), (None, False),
        ],
    )  # fmt: skip
    def test_a_request_keeps_its_id_if_it_is_a_short_token(self, given, kept):
        assert (request_id(given) == given) is kept

    @pytest.mark.databases("sqlite")
    async def test_the_request_id_of_the_client_is_returned(self, served):
        client = await served.client(None, **{"x-request-id": "from-a-proxy.1"})
        assert (await client.get("/v1/jobs")).headers["x-request-id"] == "from-a-proxy.1"


ORIGIN = "https://app.example.com"


class TestOrigins:
    """T29."""

    OTHERS = (
        "https://app.example.com.evil.org", "https://evil-app.example.com", "https://example.com", "null", "*", "",
        "http://app.example.com", "https://app.example.com:8443", "https://APP.example.com", "https://app.example.com/",
        "https://app.example.com, https://evil.org", "file://",
    )  # fmt: skip

    @pytest.fixture
    async def settings(self, settings):
        return msgspec.structs.replace(settings, cors_origins=(ORIGIN, "http://localhost:5173"))

    @pytest.mark.databases("sqlite")
    async def test_only_listed_origins_may_read_responses(self, served):
        client = await served.client()
        for origin in (ORIGIN, "http://localhost:5173"):
            for path in ("/v1/jobs", "/healthz", "/v1/nothing"):
                headers = (await client.get(path, headers={"origin": origin})).headers
                assert (headers["access-control-allow-origin"], headers["vary"]) == (origin, "Origin")
                assert "access-control-allow-credentials" not in headers
        for origin in self.OTHERS:
            for answer in (
                await client.get("/v1/jobs", headers={"origin": origin}),
                await client.options("/v1/jobs", headers={"origin": origin, "access-control-request-method": "POST"}),
            ):
                assert not [name for name in answer.headers if name.startswith("access-control")], origin
                assert answer.headers["vary"] == "Origin"

    @pytest.mark.databases("sqlite")
    async def test_a_preflight_request_gets_the_allowed_methods(self, served):
        client = await served.client(None)
        answer = await client.options("/v1/jobs", headers={"origin": ORIGIN, "access-control-request-method": "POST"})
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert "Authorization" in answer.headers["access-control-allow-headers"]

    def test_no_origin_is_allowed_by_default(self):
        assert [Cors(()).headers(method, ORIGIN.encode()) for method in ("GET", "OPTIONS")] == [[], []]

    @pytest.mark.parametrize("text", ["*", "null", "example.com", "https://*.example.com", "https://a.b/", "ftp://a.b"])
    def test_wildcard_and_malformed_origins_are_rejected(self, text):
        with pytest.raises(ValueError):  # noqa: PT011 - the settings name what is wrong
            Origins().read(text)

    def test_exact_origins_are_accepted(self):
        assert Origins().read(f"{ORIGIN}, http://[::1]:5173") == (ORIGIN, "http://[::1]:5173")


class TestReading:
    async def test_no_get_changes_anything(self, served, admin):
        """T28: every GET of the table leaves the feed, the jobs and the tenants as they are."""
        made = (await admin.post("/v1/jobs", json={"type": "send"})).json()["id"]
        await admin.post("/v1/tenants", json={"name": "acme"})

        async def everything():
            kept = await served.engine.store.single(lambda tx: tx.change_log_range())
            jobs = (await admin.get("/v1/jobs")).json()
            return kept, jobs, (await admin.get("/v1/tenants")).json(), len((await admin.get("/v1/keys")).json())

        before = await everything()
        for route in ALL:
            if route.method == "GET" and route.path != STREAM:
                for method in ("GET", "HEAD"):
                    for identity in (made, "acme"):
                        answer = await admin.request(method, path_of(route, identity))
                        assert answer.status_code < 500, route.path
        assert await everything() == before


CANARY = "canary-7f3a"


class TestTenants:
    """T01, T03, S23: no byte of one tenant's in anything that another receives."""

    @pytest.fixture
    async def filled(self, served):
        """A tenant whose jobs are in every state, with a mark in whatever a tenant can write."""
        store = served.engine.store
        acme = await served.client(await served.key("acme-" + CANARY))
        given = {
            "type": f"type.{CANARY}", "queue": f"queue.{CANARY}", "payload": {CANARY: CANARY}, "tags": [CANARY],
            "concurrency_key": CANARY, "max_attempts": 1,
        }  # fmt: skip
        batch = [{**given, "idempotency_key": f"{CANARY}-{n}", "concurrency_key": f"{CANARY}-{n}"} for n in range(5)]
        answer = await acme.post("/v1/jobs/batch", json={"jobs": batch})
        assert answer.status_code == 201, answer.text
        lane = Lane(given["queue"], "acme-" + CANARY, 0)
        held = await take(store, await enter(store, name="worker-of-all"), lane, limit=3)
        await report(store, held[0], Failed(Failure(kind=CANARY, message=CANARY)))
        await report(store, held[1], Succeeded(CANARY.encode().join([b'"', b'"'])))
        await acme.post(f"/v1/jobs/{answer.json()['items'][4]['id']}/cancel", json={"reason": CANARY})
        await acme.post("/v1/jobs", json={**given, "delay": 60})
        return [item["id"] for item in answer.json()["items"]]

    async def test_no_route_shows_another_tenants_data(self, served, filled):
        scopes = ("submit", "read", "cancel", "worker")
        other = await served.client(await served.key("other", *scopes))
        for route in ALL:
            if route.path == STREAM:
                continue
            for identity in (filled[0], f"queue.{CANARY}", f"acme-{CANARY}"):
                told = route.summary
                answer = await ask(other, route, identity)
                # What a caller sent itself may come back to it; nothing else.
                shown = (answer.text + str(dict(answer.headers))).replace(identity, "")
                assert CANARY not in shown, (route.method, route.path, told)
                if not route.query:
                    continue
                for name in getattr(route.query, "__struct_fields__", ()):
                    answer = await other.request(
                        route.method, path_of(route, identity), params={name: f"acme-{CANARY}"}
                    )
                    shown = answer.text.replace(identity, "").replace(f"acme-{CANARY}", "")
                    assert CANARY not in shown, (route.method, route.path, name)

    @pytest.mark.databases("sqlite")
    async def test_no_stream_shows_another_tenants_data(self, live):
        """T03."""
        acme = await live.client(await live.key("acme-" + CANARY))
        other = await live.client(await live.key("other"))
        async with other.stream("GET", STREAM) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            await acme.post("/v1/jobs", json={"type": f"type.{CANARY}", "queue": f"queue.{CANARY}"})
            await other.post("/v1/jobs", json={"type": "mine"})
            heard = []
            async with asyncio.timeout(30):
                while not any('"mine"' in line for line in heard):
                    heard.append(await anext(lines))
        assert CANARY not in "".join(heard)

    async def test_another_tenants_resource_is_not_found(self, served, filled):
        """T01: for each route with a parameter, byte for byte."""
        other = await served.client(await served.key("other", "submit", "read", "cancel", "worker"))
        for route in ALL:
            if not route.parameters:
                continue
            found = []
            for identity in (filled[0], UNKNOWN):
                answer = await ask(other, route, identity)
                headers = {k: v for k, v in answer.headers.items() if k not in ("x-request-id", "content-length")}
                found.append((answer.status_code, headers, answer.text.replace(identity, "")))
            assert found[0] == found[1], route.path

    async def test_metrics_are_for_administrators_and_name_no_tenant(self, served, filled):
        """T03."""
        tenant = await served.client(await served.key("other", "submit", "read", "cancel", "worker"))
        problem(await tenant.get("/metrics"), 403, "forbidden")
        problem(await (await served.client(None)).get("/metrics"), 401, "unauthorized")
        page = (await (await served.client()).get("/metrics")).text
        assert f'queue="queue.{CANARY}"' in page
        assert f"acme-{CANARY}" not in page


SECRETS = {
    "bearer": "s3cr3t-bearer-0123456789abcdef", "query": "s3cr3t-query-0123", "body": "s3cr3t-body-4567",
    "cookie": "s3cr3t-cookie-89ab", "path": "s3cr3t-path-cdef", "raised": "s3cr3t-raised-0246",
}  # fmt: skip


class TestSecrets:
    """T25: secrets through every route, header, query, body and exception; none in any log, error or metric."""

    @pytest.fixture
    def written(self, caplog):
        caplog.set_level(logging.DEBUG)

        def everything():
            formats = (logs.TextLines(), logs.JsonLines())
            return "\n".join(
                each.format(record)
                for record in caplog.records
                for each in formats
                if record.name.startswith(("holdfast", "uvicorn"))
            )

        return everything

    @pytest.mark.databases("sqlite")
    async def test_no_secret_appears_in_responses_or_logs(self, served, written, settings):
        told = []
        service = served.api.service

        async def fail(call):
            seen = (
                f"{call.request.headers} {call.request.path} {call.request.query_string} password={SECRETS['raised']}"
            )
            raise RuntimeError(seen) from ValueError(SECRETS["raised"])

        failing = Routes(route._replace(handler=fail, body=None, query=None, scope=PUBLIC) for route in ALL)
        headers = {
            "authorization": f"Bearer {SECRETS['bearer']}",
            "cookie": f"session={SECRETS['cookie']}",
            "x-api-key": SECRETS["cookie"],
        }
        for routes in (service.routes, failing):
            served.api = Api(service._replace(routes=routes))
            client = await served.client(None, address="203.0.113.7")
            for route in routes.table:
                for path in {path_of(route, SECRETS["path"]), f"/v1/{SECRETS['path']}"}:
                    answer = await client.request(
                        route.method, path, headers=headers, params={"token": SECRETS["query"]},
                        json={"password": SECRETS["body"], "type": SECRETS["body"]},
                    )  # fmt: skip
                    told.append((answer.text + str(answer.headers)).replace(SECRETS["path"], "", 1))
        served.api = Api(service)
        told.append((await (await served.client()).get("/metrics")).text)
        everything = "\n".join([*told, written()])
        assert "failed" in everything
        assert {name for name, secret in SECRETS.items() if secret in everything} == set()
        assert ADMIN not in everything

    @pytest.mark.databases("sqlite")
    async def test_no_secret_appears_when_the_database_is_unreachable(self, served, written, monkeypatch):
        from holdfast.errors import Unavailable

        async def away(*_arguments, **_options):
            raise Unavailable(f"cannot connect to postgresql://me:{SECRETS['raised']}@db/jobs")

        monkeypatch.setattr(served.engine.store, "read", away)
        answer = await (await served.client()).get("/v1/jobs")
        problem(answer, 503, "unavailable")
        assert SECRETS["raised"] not in written() + answer.text

    @pytest.mark.databases("sqlite")
    async def test_an_internal_error_is_logged_with_its_request_id(self, served, written):
        async def fail(_call):
            raise KeyError("missing")

        route = Route("GET", "/v1/jobs/{id}", PUBLIC, fail, "x", {200: None})
        served.api = Api(served.api.service._replace(routes=Routes([route])))
        answer = await (await served.client(None)).get(f"/v1/jobs/{UNKNOWN}")
        told = problem(answer, 500, "internal")
        assert answer.headers["x-request-id"] in told["detail"]
        assert "missing" not in answer.text
        (line,) = [line for line in written().splitlines() if line.startswith("{") and '"level":"error"' in line]
        found = json.loads(line)
        assert found["request_id"] == answer.headers["x-request-id"]
        assert f"GET /v1/jobs/{UNKNOWN} failed: 'missing' [KeyError at " in found["message"]
        assert "test_security.py" in found["message"]

    @pytest.mark.databases("sqlite")
    async def test_the_access_log_has_one_line_per_request(self, settings, engine, served, written):
        """T26: whatever a client writes, it is one line; the rest of the path is not there at all."""
        for wanted, level in ((False, "DEBUG"), (True, "INFO")):
            served.api = build_api(msgspec.structs.replace(settings, access_log=wanted), engine)
            client = await served.client(None)
            await client.get("/v1/x%0a2026-01-01T00:00:00Z%20ERROR%20forged%1b[31m?q=%0aforged")
            assert len(await eventually(lambda text=f" {level} GET (no route) 404": lines_with(written, text))) == 1
        assert "forged" not in written()

    def test_a_log_record_is_always_one_line(self):
        """T26."""
        text = "a\nb\r\x1b[31m\u2028c\x00\x85d"
        record = logging.LogRecord("holdfast", logging.INFO, "", 0, "%s", (text,), None)
        for form in (logs.TextLines(), logs.JsonLines()):
            line = form.format(record)
            assert len(line.splitlines()) == 1 or isinstance(form, logs.JsonLines)
            assert not re.search(r"[\x00-\x1f\x7f]", line)


class TestRoutes:
    def test_openapi_describes_exactly_the_routes(self):
        """T34."""
        described = describe(ALL, "1")["paths"]
        found = {(method.upper(), path) for path, methods in described.items() for method in methods}
        assert found == {(route.method, route.path) for route in ALL if route.described}
        pages = {"/", "/assets/{name}", "/docs", "/docs.css"}
        assert {route.path for route in ALL if not route.described} == pages
        elsewhere = {
            "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs.css", "/", "/assets/{name}"
        }  # fmt: skip
        assert {route.path for route in ALL if not route.path.startswith("/v1/")} <= elsewhere
        names = [route.name for route in ALL]
        assert len(set(names)) == len(names)

    @pytest.mark.databases("sqlite")
    async def test_demo_routes_exist_only_in_demo_mode(self, settings, engine, served):
        """T34."""
        demo = {(route.method, route.path) for route in ALL if route.demo}
        normal = {(route.method, route.path) for route in build_api(settings, engine).service.routes.table}
        assert normal == {(route.method, route.path) for route in ALL} - demo
        assert {
            (r.method, r.path)
            for r in build_api(msgspec.structs.replace(settings, demo=True), engine).service.routes.table
        } >= demo
        for path in ("/v1/demo/seed", "/v1/demo/clear"):
            assert (await (await served.client()).post(path)).status_code == 404

    @pytest.mark.parametrize("scope", [None, "", "everybody", "Admin"])
    def test_a_route_without_a_scope_prevents_the_start(self, scope):
        with pytest.raises(Misconfigured, match="declares no scope"):
            Routes([Route("GET", "/v1/x", scope, _nothing, "x", {200: None})])

    @pytest.mark.databases("sqlite")
    async def test_internal_fields_are_rejected_in_every_body(self, admin):
        """T10: mass assignment."""
        internal = (
            "tenant_id", "attempts", "state", "fence", "generation", "finished_at", "started_at", "created_at",
            "updated_at", "digest", "secret", "is_admin", "__class__", "lease_until", "workflow_id", "actions",
        )  # fmt: skip
        for route in ALL:
            if route.body is None:
                continue
            own = set(route.body.__struct_fields__)
            for name in set(internal) - own:
                answer = await ask(admin, route, json={name: 1})
                found = problem(answer, 422, "invalid")
                assert found["pointer"], (route.path, name)
        base = {"type": "send"}
        for name in ("tenant", "status", "worker", "id", "result", "idempotency_key", *internal):
            found = problem(await admin.post("/v1/jobs", json={**base, name: 1}), 422, "invalid")
            assert found["pointer"] == f"/{name}"
            batch = await admin.post("/v1/jobs/batch", json={"jobs": [{**base, name: 1}]})
            assert batch.status_code == 422

    @pytest.mark.databases("sqlite")
    async def test_unknown_parameters_are_rejected_on_every_route(self, admin):
        for route in ALL:
            if route.path != STREAM:
                answer = await ask(admin, route, params={"nonsense": "1"})
                assert answer.status_code in (404, 422), route.path

    @pytest.mark.databases("sqlite")
    async def test_null_in_a_query_is_rejected(self, admin):
        """A filter that was given and could not be read must not widen to everything: DELETE takes the same filters."""
        for route in ALL:
            if route.query is None or route.path == STREAM:
                continue
            for name in route.query.__struct_fields__:
                for text in ("null", "NULL", ""):
                    answer = await admin.request(route.method, path_of(route), params={name: text})
                    if answer.status_code == 200:
                        asked = msgspec.convert({name: text}, route.query, strict=False)
                        assert getattr(asked, name) == text, (route.path, name)

    @pytest.mark.databases("sqlite")
    async def test_a_bare_number_is_rejected_as_a_time(self, admin):
        """T17: of seconds or of milliseconds? One that was misread would delete what was to be kept."""
        for text in ("0.5", "1700000000", "1e-3", "-1"):
            answer = await admin.delete("/v1/dead", params={"created_before": text})
            assert problem(answer, 422, "invalid")["pointer"] == "/created_before"
        assert (await admin.delete("/v1/dead", params={"created_before": "2030-01-31T12:00:00Z"})).status_code == 200


async def _nothing(_call):
    return HttpResponse(None, 204)


@pytest.mark.databases("sqlite")
async def test_health_reveals_nothing(live, monkeypatch):
    """T33: alive is constant, ready is booleans."""
    client = await live.client(None)
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).json() == {"ready": True, "database": True, "schema": True}

    async def broken():
        return False, False

    monkeypatch.setattr(live.engine, "ready", broken)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "database": False, "schema": False})
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert isinstance(answer, httpx2.Response)
