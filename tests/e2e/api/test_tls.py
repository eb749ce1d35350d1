"""HTTPS: the server with a certificate, and the errors of `serve` and `up` about certificate files."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import time

import httpx2
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization

from holdfast.api.http import HttpResponse
from holdfast.api.routing import PUBLIC, Route, Routes
from holdfast.api.server.timeouts import DEFAULT_LIMITS
from holdfast.api.server.tls import TlsFile, load_tls
from tests.e2e.api.conftest import ADMIN
from tests.e2e.api.raw_http import AUTHORIZATION, GET, JOB, post, running_server
from tests.e2e.api.test_hardening import CORPUS
from tests.support.certificate import a_certificate
from tests.support.eventually import TIMEOUT_S
from tests.support.services import Service

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def files(tmp_path):
    """Certificate and key for localhost."""
    return a_certificate(tmp_path)


@pytest.fixture
def context(files):
    certificate, key = files
    return load_tls(TlsFile(str(certificate), "HOLDFAST_TLS_CERT"), TlsFile(str(key), "HOLDFAST_TLS_KEY"))


@pytest.fixture
def trusting(files):
    """Client context that trusts the certificate."""
    return ssl.create_default_context(cafile=files[0])


@pytest_asyncio.fixture
async def server(served, context):
    async with running_server(served, tls=context) as server:
        yield server


def shake_hands(port, context):
    """Do a TLS handshake as a client with this context."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        context.wrap_socket(connection, server_hostname="localhost").close()


class TestHandshake:
    async def test_a_client_that_trusts_the_certificate_gets_a_response(self, server, trusting):
        connection = await server.connect(trusting)
        await connection.send(GET)
        assert (await connection.response())[0] == 200
        session = connection.writer.get_extra_info("ssl_object")
        assert session.version() in ("TLSv1.2", "TLSv1.3")

    async def test_an_http_client_submits_a_job(self, server, trusting):
        url = f"https://localhost:{server.port}"
        async with httpx2.AsyncClient(base_url=url, verify=trusting, trust_env=False) as client:
            submitted = await client.post(
                "/v1/jobs", json={"type": "send"}, headers={"authorization": f"Bearer {ADMIN}"}
            )
        assert submitted.status_code == 201

    async def test_a_client_that_does_not_trust_the_certificate_refuses_it(self, server):
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(shake_hands, server.port, ssl.create_default_context())

    async def test_http_1_1_is_negotiated(self, server, trusting):
        trusting.set_alpn_protocols(["h2", "http/1.1"])
        connection = await server.connect(trusting)
        assert connection.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"

    @pytest.mark.filterwarnings("ignore:.*TLSv1_1 is deprecated:DeprecationWarning")
    async def test_versions_before_tls_1_2_are_refused(self, server, trusting):
        trusting.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        trusting.maximum_version = ssl.TLSVersion.TLSv1_1
        trusting.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(shake_hands, server.port, trusting)

    async def test_a_plain_http_request_gets_no_response(self, server, trusting):
        plain = await server.connect()
        await plain.send(GET)
        assert not (await plain.rest()).startswith(b"HTTP/")
        connection = await server.connect(trusting)
        await connection.send(GET)
        assert (await connection.response())[0] == 200

    async def test_a_handshake_that_does_not_progress_times_out(self, served, context):
        limits = DEFAULT_LIMITS._replace(head_timeout_s=0.2)
        async with running_server(served, limits, context) as server:
            silent = await server.connect()
            assert await silent.rest() == b""


class TestConnections:
    """The rules for connections hold under TLS too."""

    async def test_a_connection_serves_several_requests(self, server, trusting):
        connection = await server.connect(trusting)
        for _ in range(3):
            await connection.send(post(JOB))
            assert (await connection.response())[0] == 201

    async def test_ambiguous_requests_are_rejected(self, server, served, trusting, monkeypatch):
        """T37: each gets one response at most."""
        monkeypatch.setattr("holdfast.api.server.connection._LINGER_TIMEOUT_S", 0.02)
        statuses = {}
        for name, request in CORPUS.items():
            connection = await server.connect(trusting)
            await connection.send(request)
            statuses[name] = await connection.statuses()
        assert {name: found for name, found in statuses.items() if found not in ([400], [])} == {}
        assert (await (await served.client()).get("/v1/jobs")).json()["items"] == []

    async def test_a_client_that_is_still_sending_can_read_an_early_response(self, server, trusting):
        connection = await server.connect(trusting)
        await connection.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n", b"x" * 100_000)
        status, headers, _ = await connection.response()
        assert (status, headers["connection"]) == (404, "close")
        await connection.send(b"x" * 100_000)

    async def test_a_client_that_does_not_read_its_response_is_disconnected(self, served, context, trusting):
        """T18."""

        async def large(_call):
            return HttpResponse(b"x" * 50_000_000, 200, {}, "text/plain")

        route = Route("GET", "/large", PUBLIC, large, "x", {200: "text/plain"})
        served.api.service = served.api.service._replace(routes=Routes([route]))
        limits = DEFAULT_LIMITS._replace(stalled_read_timeout_s=0.5)
        async with running_server(served, limits, context) as server:
            stalled = await server.connect(trusting)
            stalled.writer.transport.pause_reading()
            await stalled.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            other = await server.connect(trusting)
            await other.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len((await other.response())[2]) == 50_000_000
            server.stop()
            async with asyncio.timeout(TIMEOUT_S):
                await server.ended

    async def test_events_are_streamed(self, server, served, trusting):
        connection = await server.connect(trusting)
        await connection.send(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + AUTHORIZATION + b"\r\n")
        assert (await connection.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        submitting = await server.connect(trusting)
        await submitting.send(post(JOB))
        assert (await submitting.response())[0] == 201
        async with asyncio.timeout(TIMEOUT_S):
            await connection.reader.readuntil(b"event: job")
        server.stop()
        assert (await connection.rest()).endswith(b"0\r\n\r\n")

    async def test_an_idle_client_that_does_not_read_does_not_delay_the_shutdown(self, served, context, trusting):
        """F05: a pooled connection never answers the TLS close notification."""
        async with running_server(served, tls=context) as server:
            pooled = await server.connect(trusting)
            await pooled.send(GET)
            assert (await pooled.response())[0] == 200
            pooled.writer.transport.pause_reading()
            began = time.monotonic()
            server.stop()
            await server.ended
            assert time.monotonic() - began < 8  # a last response and the linger timeout, not the grace period


class TestFiles:
    def test_serve_speaks_https_with_a_certificate(self, database_url, tmp_path, files, trusting):
        variables = {"HOLDFAST_TLS_CERT": str(files[0]), "HOLDFAST_TLS_KEY": str(files[1]), "HOLDFAST_ADMIN_KEY": ADMIN}
        service = Service(database_url, tmp_path, variables)
        service.start()
        try:
            assert service.url.startswith("https://127.0.0.1:")
            url = service.url.replace("127.0.0.1", "localhost")
            with httpx2.Client(verify=trusting, trust_env=False) as client:
                assert client.get(f"{url}/readyz").status_code == 200
        finally:
            assert service.stop() == 0

    @pytest.mark.parametrize("command", ["serve", "up"])
    @pytest.mark.parametrize("given, missing", [("CERT", "KEY"), ("KEY", "CERT")])
    def test_one_file_without_the_other_is_an_error(self, refused, files, command, given, missing):
        text = refused(command, **{f"HOLDFAST_TLS_{given}": str(files[0])})
        assert text.startswith(f"holdfast: HOLDFAST_TLS_{given} is set without HOLDFAST_TLS_{missing}: set both")

    @pytest.mark.parametrize("setting", ["HOLDFAST_TLS_CERT", "HOLDFAST_TLS_KEY"])
    def test_a_missing_file_is_an_error(self, refused, files, tmp_path, setting):
        text = refused("serve", **_variables(files) | {setting: str(tmp_path / "none.pem")})
        assert text.startswith(f"holdfast: {setting}: cannot read {tmp_path}/none.pem (No such file or directory)")

    def test_the_flag_is_named_if_the_file_came_from_a_flag(self, refused, files):
        text = refused("serve", "--tls-cert", "none.pem", "--tls-key", files[1])
        assert text.startswith("holdfast: --tls-cert: cannot read none.pem")

    def test_a_directory_is_an_error(self, refused, files, tmp_path):
        text = refused("serve", **_variables(files) | {"HOLDFAST_TLS_KEY": str(tmp_path)})
        assert text.startswith(f"holdfast: HOLDFAST_TLS_KEY: cannot read {tmp_path} (Is a directory)")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
    def test_an_unreadable_file_is_an_error(self, refused, files):
        files[1].chmod(0)
        text = refused("serve", **_variables(files))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_KEY: cannot read {files[1]} (Permission denied)")

    def test_swapped_files_are_an_error(self, refused, files):
        text = refused("serve", **_variables(files[::-1]))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_CERT: {files[1]} contains no certificate")

    def test_a_file_that_is_not_pem_is_an_error(self, refused, files):
        files[1].write_text("not a key")
        text = refused("serve", **_variables(files))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_KEY: {files[1]} contains no private key")

    def test_a_damaged_certificate_is_an_error(self, refused, files):
        files[0].write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        text = refused("serve", **_variables(files))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_CERT: OpenSSL cannot load {files[0]} with the key {files[1]}")

    def test_the_key_of_another_certificate_is_an_error(self, refused, files, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        _, key = a_certificate(other)
        text = refused("serve", **_variables((files[0], key)))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_KEY: the private key in {key} does not belong to")

    def test_an_encrypted_key_is_an_error(self, refused, files):
        key = serialization.load_pem_private_key(files[1].read_bytes(), None)
        encryption = serialization.BestAvailableEncryption(b"secret")
        files[1].write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        text = refused("serve", **_variables(files))
        assert text.startswith(f"holdfast: HOLDFAST_TLS_KEY: the private key in {files[1]} is encrypted: decrypt it")


def _variables(files):
    return {"HOLDFAST_TLS_CERT": str(files[0]), "HOLDFAST_TLS_KEY": str(files[1])}


@pytest.fixture
def refused(tmp_path):
    """Run a command that refuses to start; return its only line of output."""
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*arguments, **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        ended = subprocess.run(
            [sys.executable, "-m", "holdfast", *map(str, arguments)],
            cwd=folder,
            env=inherited | {"HOLDFAST_PORT": "0"} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        assert list(folder.iterdir()) == []  # no database, no key: nothing was started
        (line,) = ended.stderr.splitlines()
        return line

    return run
