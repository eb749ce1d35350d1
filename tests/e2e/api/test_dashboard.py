"""The dashboard as it is served: its files, who the caller is, and the way in by a link."""

import gzip
import re

import msgspec
import pytest

from holdfast.api import static_files
from holdfast.api.auth.tickets import TICKET_LIFETIME_S, Tickets
from holdfast.errors import Unauthorized

pytestmark = pytest.mark.databases("sqlite")


class TestFiles:
    async def test_the_page_is_public_and_revalidated_on_every_load(self, served):
        client = await served.client(None)
        page = await client.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["cache-control"] == "no-cache"
        again = await client.get("/", headers={"if-none-match": page.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", page.headers["etag"])
        assert (await client.get("/", headers={"if-none-match": '"other"'})).status_code == 200

    async def test_assets_are_cached_forever_and_have_the_security_headers(self, served):
        """T27, T30."""
        client = await served.client(None)
        page = await client.get("/")
        names = re.findall(r"\./assets/([^\"]+)", page.text)
        assert len(names) >= 2
        for name in names:
            answer = await client.get(f"/assets/{name}")
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))
            for header in ("content-security-policy", "x-content-type-options", "x-frame-options"):
                assert answer.headers[header] == page.headers[header]
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "nonce" not in policy

    @pytest.mark.parametrize(
        "accepted, packed",
        [
            ("gzip", True),
            ("br, GZIP;q=0.5", True),
            ("*", True),
            ("gzip;q=0", False),
            ("br", False),
            ("identity", False),
        ],
    )
    async def test_assets_are_compressed_for_clients_that_accept_gzip(self, served, accepted, packed):
        client = await served.client(None)
        async with client.stream("GET", "/", headers={"accept-encoding": accepted}) as answer:
            raw = b"".join([chunk async for chunk in answer.aiter_raw()])
        assert answer.headers["vary"] == "accept-encoding"
        assert ("content-encoding" in answer.headers) == packed
        assert (gzip.decompress(raw) if packed else raw) == static_files.index().content

    @pytest.mark.parametrize(
        "name", ["x.js", "..%2Findex.html", "%2e%2e", "%2e%2e%2fbuild.json", "%2Fetc%2Fpasswd", "index.html"]
    )
    async def test_no_other_file_is_served(self, served, name):
        answer = await (await served.client(None)).get(f"/assets/{name}")
        assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")

    async def test_an_installation_without_a_dashboard_says_how_to_build_it(self, served, monkeypatch):
        monkeypatch.setattr(static_files, "index", lambda: None)
        answer = await (await served.client(None)).get("/")
        assert answer.status_code == 404
        assert "./dev dashboard" in answer.json()["detail"]


class TestMe:
    async def test_me_describes_the_caller_and_its_scopes(self, served):
        mine = (await (await served.client(await served.key("acme", "read"))).get("/v1/me")).json()
        assert (mine["tenant"], mine["scopes"], mine["until"], mine["demo"]) == ("acme", ["read"], None, False)
        assert mine["name"].startswith("key:")
        assert (await (await served.client()).get("/v1/me")).json()["scopes"][-1] == "admin"
        assert (await (await served.client(None)).get("/v1/me")).status_code == 401

    @pytest.mark.parametrize(
        "scopes, allowed", [(["read", "submit"], []), (["read", "submit", "cancel"], ["cancel", "delete"])]
    )
    async def test_a_read_only_caller_is_offered_no_actions(self, served, scopes, allowed):
        client = await served.client(await served.key("acme", *scopes))
        made = (await client.post("/v1/jobs", json={"type": "x"})).json()
        listed = (await client.get("/v1/jobs")).json()["items"][0]
        detail = (await client.get(f"/v1/jobs/{made['id']}")).json()
        assert [sorted(each["actions"]) for each in (made, listed, detail)] == [allowed] * 3


class TestSignIn:
    """T31: what stands in a link is good once, and soon not at all."""

    async def test_a_ticket_is_exchanged_once_for_a_key_that_expires(self, served):
        ticket = served.api.service.tickets.issue()
        client = await served.client(None)
        made = await client.post("/v1/sign-in", json={"ticket": ticket})
        assert made.status_code == 201
        assert made.json()["expires_at"] is not None
        assert (await (await served.client(made.json()["token"])).get("/v1/me")).json()["scopes"][-1] == "admin"
        assert (await client.post("/v1/sign-in", json={"ticket": ticket})).status_code == 401

    @pytest.mark.parametrize("ticket", ["x", "é", "a" * 128])
    async def test_other_tickets_are_rejected(self, served, ticket):
        served.api.service.tickets.issue()
        answer = await (await served.client(None)).post("/v1/sign-in", json={"ticket": ticket})
        assert answer.status_code == 401

    def test_a_ticket_expires_after_an_hour(self):
        now = [0.0]
        tickets = Tickets(monotonic=lambda: now[0])
        early, late = tickets.issue(), tickets.issue()
        now[0] = TICKET_LIFETIME_S - 1
        tickets.redeem(early)
        now[0] = TICKET_LIFETIME_S + 1
        with pytest.raises(Unauthorized):
            tickets.redeem(late)


class TestBasePath:
    """A proxy that leaves its own path in front of ours."""

    @pytest.fixture
    def settings(self, settings):
        return msgspec.structs.replace(settings, base_path="/tools/holdfast")

    async def test_routes_respond_with_and_without_the_base_path(self, served):
        client = await served.client()
        page = await client.get("/tools/holdfast/")
        asset = re.search(r"\./(assets/[^\"]+)", page.text)[1]
        for path in (asset, "v1/me", "docs", "docs.css", "healthz"):
            assert [(await client.get(base + path)).status_code for base in ("/tools/holdfast/", "/")] == [200, 200], (
                path
            )

    async def test_the_base_path_without_a_slash_redirects(self, served):
        answer = await (await served.client(None)).get("/tools/holdfast")
        assert (answer.status_code, answer.headers["location"]) == (308, "/tools/holdfast/")

    @pytest.mark.parametrize("path", ["/tools/holdfastv1/me", "/tools/v1/me", "/tools/holdfast/tools/holdfast/v1/me"])
    async def test_other_paths_are_not_found(self, served, path):
        assert (await (await served.client()).get(path)).status_code == 404
