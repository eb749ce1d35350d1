"""SSRF: no spelling of its address may reach a server on this machine."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.builtin.webhooks.address_guard import NOT_PUBLIC, AddressGuard, GuardRules
from holdfast.builtin.webhooks.client import WebhookClient
from holdfast.builtin.webhooks.handler import Webhook, WebhookRules
from holdfast.model.outcome import Failed, Succeeded
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments
from holdfast.worker.running.runner import Runner
from tests.support.network_namespace import require_isolation
from tests.support.receiver import Receiver, answers
from tests.unit.worker.conftest import a_job

pytestmark = pytest.mark.isolated_network

HOSTS = [
    # This machine, in every writing that a resolver or a parser may know
    "127.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.0.0.1",
    "0x7f.1", "017700000001", "0177.0.0.1", "0177.1", "00000177.0.0.1", "0", "0.0.0.0", "0x0", "00", "localhost",
    "LOCALHOST", "localhost.", "LocalHost.", "ip6-localhost", "ip6-loopback", "127%2e0%2e0%2e1", "%6c%6f%63alhost",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:7F00:0001]",
    "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2001:0:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[fe80::5efe:127.0.0.1]", "[2a00::5efe:7f00:1]",
    "[::1%25lo]", "[fe80::1%25lo]",
    # Metadata of clouds, and networks behind the machine
    "169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "0xa9fea9fe", "2852039166", "[fd00:ec2::254]",
    "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "10.0.0.1", "172.16.0.1", "192.168.0.1",
    "100.64.0.1", "198.18.0.1", "[fc00::1]", "[fec0::1]", "224.0.0.1", "[ff02::1]", "255.255.255.255",
]  # fmt: skip

FORMS = [
    "http://user@127.0.0.1:{port}/", "http://example.com@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@example.com/",
    "http://example.com:{port}@127.0.0.1:{port}/", "http://127.0.0.1:{port}#@example.com/", "//127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}/", "http:127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http://127.0.0.1:{port}?x=@a.b",
    "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_x", "file://127.0.0.1:{port}/", "http://127。0。0。1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/", "http://127.0.0.1:{port}/\r\nX: y", " http://127.0.0.1:{port}/", "\thttp://127.0.0.1:{port}/",
    "http://localhost\x00.example.com:{port}/", "https://127.0.0.1:{port}/", "HTTPS://LOCALHOST:{port}/",
    "http://[::1]:{port}/%0d%0aX:%20y", "http://127.0.0.1:{port}/../../", "dict://127.0.0.1:{port}/x",
]  # fmt: skip


def corpus(port):
    return [f"http://{host}:{port}/" for host in HOSTS] + [form.format(port=port) for form in FORMS]


def addresses():
    """Return the hosts that a name server may return."""
    for host in HOSTS:
        with suppress(ValueError):
            yield str(ip_address(host.strip("[]")))


class Trap:
    """Server that listens on every address of this machine."""

    def __init__(self):
        self.connections = 0

    @asynccontextmanager
    async def set(self):
        async def caught(_reader, writer):
            self.connections += 1
            writer.close()

        server = await asyncio.start_server(caught, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        sockets = [("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)]
        server.close()
        servers = []
        for host, family in sockets:
            made = socket.socket(family)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind((host, self.port))
            servers.append(await asyncio.start_server(caught, sock=made))
        try:
            yield self
        finally:
            for each in servers:
                each.close()
                await each.wait_closed()


class Names(AbstractResolver):
    """Name server of an attacker: returns the next scripted address at each lookup."""

    def __init__(self, *answers):
        self._answers = list(answers)

    async def resolve(self, host, port=0, family=socket.AF_INET):
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host, host=each, port=port, proto=0, flags=socket.AI_NUMERICHOST,
                family=socket.AF_INET6 if ":" in each else socket.AF_INET,
            )
            for each in addresses
        ]  # fmt: skip

    async def close(self):
        pass


@asynccontextmanager
async def delivering(engine, *, allow=(), ports=(), resolver=None):
    """Return a handler that can refuse only by address: it allows plain http and the port."""
    require_isolation()
    rules = GuardRules.of(allow, ports, plain_http=True)
    made = Webhook(WebhookRules(rules), engine.deliveries, client=WebhookClient(AddressGuard(rules), resolver=resolver))
    registry = Registry()
    registry.add(Handler("webhook", made.webhook, "async", Arguments(made.webhook, "webhook")))
    runner = Runner(registry, engine.attempts, threads=ThreadPoolExecutor(1))

    async def deliver(url, tenant="acme"):
        job = a_job("webhook", {"url": url, "timeout": 5}, tenant=tenant)
        task = runner.call(job)
        return await runner.run(job, task, runner.context(job, task, None))

    try:
        yield deliver
    finally:
        await made.aclose()


async def test_no_url_reaches_the_trap(engine):
    """T11, T12: names and literal addresses, in every spelling."""
    async with Trap().set() as trap, delivering(engine, ports=[trap.port]) as deliver:
        urls = corpus(trap.port)
        assert len(set(urls)) >= 60
        for url in urls:
            outcome = await deliver(url)
            assert isinstance(outcome, Failed), url
            assert not outcome.retryable or NOT_PUBLIC in outcome.failure.message, (url, outcome)
        assert trap.connections == 0


async def test_the_trap_is_reachable_if_the_settings_allow_it(engine):
    """Shows that the other tests could fail."""
    async with Trap().set() as trap, delivering(engine, allow=["127.0.0.0/8", "::1", "0.0.0.0/8"]) as deliver:
        for n, host in enumerate(("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")):
            await deliver(f"http://{host}:{trap.port}/", tenant=f"t{n}")
            assert trap.connections > n, host


async def test_no_redirect_reaches_the_trap(engine):
    """T11: a 3xx is only a failure."""
    async with (
        Trap().set() as trap,
        Receiver("127.0.0.2") as receiver,
        delivering(engine, allow=["127.0.0.2"], ports=[trap.port]) as deliver,
    ):
        for n, url in enumerate(corpus(trap.port)):
            location = url.replace("\r\n", "%0d%0a").replace("\x00", "%00")
            status = (301, 302, 303, 307, 308)[n % 5]
            receiver.behave = answers(status, f"Location: {location.encode().decode('latin-1')}")
            outcome = await deliver(receiver.url)
            assert isinstance(outcome, Failed), url
            assert f"HTTP {status}" in outcome.failure.message or "not HTTP" in outcome.failure.message, outcome
        assert len(receiver.got) >= 60
        assert trap.connections == 0


async def test_a_redirect_loop_sends_one_request(engine):
    """F39."""
    async with Receiver("127.0.0.2") as receiver, delivering(engine, allow=["127.0.0.2"]) as deliver:
        receiver.behave = answers(302, f"Location: {receiver.url}")
        assert isinstance(await deliver(receiver.url), Failed)
        assert len(receiver.got) == 1


async def test_a_name_that_changes_its_address_does_not_reach_the_trap(engine):
    """T11: every connection checks the address that it connects to."""
    hostile = [[each] for each in addresses()] + [["127.0.0.1", "::1"]]
    assert len(hostile) > 40
    names = Names(["127.0.0.2"], *hostile)
    async with (
        Trap().set() as trap,
        Receiver("127.0.0.2") as receiver,
        delivering(engine, allow=["127.0.0.2"], ports=[trap.port, receiver.port], resolver=names) as deliver,
    ):
        receiver.behave = answers(200, "Connection: close")
        assert isinstance(await deliver(f"http://rebind.example:{receiver.port}/"), Succeeded)
        for n, _ in enumerate(hostile):  # each for another tenant, because breakers are per tenant
            outcome = await deliver(f"http://rebind.example:{trap.port}/", tenant=f"t{n}")
            assert isinstance(outcome, Failed)
            assert NOT_PUBLIC in outcome.failure.message
        assert (trap.connections, len(receiver.got)) == (0, 1)


async def test_only_the_allowed_addresses_of_a_name_are_tried(engine):
    """T11."""
    names = Names(["127.0.0.1", "::1", "127.0.0.2", "10.0.0.1"])
    async with (
        Trap().set() as trap,
        delivering(engine, allow=["127.0.0.2"], ports=[trap.port], resolver=names) as deliver,
    ):
        outcome = await deliver(f"http://mixed.example:{trap.port}/")
        assert isinstance(outcome, Failed)
        assert trap.connections == 1  # at 127.0.0.2, which is allowed: the trap listens on all


@pytest.mark.parametrize("tls", [True, False], ids=["a self-signed certificate", "no TLS at all"])
async def test_a_receiver_without_valid_tls_gets_no_request(engine, tmp_path, tls):
    """F39: bad TLS."""
    from tests.support.certificate import a_certificate

    got = []

    async def serve(reader, writer):
        got.append(await reader.read(10))
        writer.close()

    context = None
    if tls:
        import ssl

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*a_certificate(tmp_path))
    server = await asyncio.start_server(serve, "127.0.0.2", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with delivering(engine, allow=["127.0.0.2"], resolver=Names(["127.0.0.2"])) as deliver:
        outcome = await deliver(f"https://localhost:{port}/")
    server.close()
    await server.wait_closed()
    assert isinstance(outcome, Failed)
    assert ("TLS failed" if tls else "cannot be reached") in outcome.failure.message
    assert got == [] if tls else not any(b"POST" in each for each in got)
