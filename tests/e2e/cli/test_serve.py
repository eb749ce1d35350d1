"""`holdfast serve` refuses to start without keys, or with weak or broken ones."""

import json

import pytest

from holdfast.api.server.server import bind
from holdfast.errors import Misconfigured


@pytest.fixture
def serve(holdfast, tmp_path):
    """Run `serve` on a migrated database, with options with which it refuses to start."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    assert holdfast("migrate", HOLDFAST_DATABASE_URL=url).code == 0

    def run(*arguments, **variables):
        return holdfast("serve", "--port", "0", *arguments, HOLDFAST_DATABASE_URL=url, **variables)

    return run


STRONG = "f3a9c2e17b5d4860a1c3e5f7092b4d6e8a0c2e4f"


@pytest.mark.parametrize(
    "host, named", [("0.0.0.0", "HOLDFAST_HOST"), ("::", "HOLDFAST_HOST"), ("127.0.0.1", "HOLDFAST_ADMIN_KEY")]
)
def test_serve_does_not_start_without_a_key(serve, host, named):
    """T32: on a public or a local address; the error names the fix."""
    ended = serve("--host", host)

    assert ended.code == 2
    assert ended.complaint.startswith(f"{named}: ")
    assert "set HOLDFAST_ADMIN_KEY" in ended.complaint


@pytest.mark.parametrize(
    "variables, message",
    [
        ({"HOLDFAST_ADMIN_KEY": "hunter2"}, "HOLDFAST_ADMIN_KEY: it has 7 bytes"),
        ({"HOLDFAST_ADMIN_KEY": "changemechangeme"}, "HOLDFAST_ADMIN_KEY: it is well known"),
        ({"HOLDFAST_JWT_SECRET": "x9" * 8}, "HOLDFAST_JWT_SECRET: it has 16 bytes"),
        ({"HOLDFAST_JWT_SECRET": "secret" * 6}, "HOLDFAST_JWT_SECRET: it is well known"),
        ({"HOLDFAST_JWT_SECRET": STRONG, "HOLDFAST_ADMIN_KEY": "admin"}, "HOLDFAST_ADMIN_KEY: it has 5 bytes"),
        ({"HOLDFAST_JWT_JWKS_FILE": "nowhere.json"}, "HOLDFAST_JWT_JWKS_FILE: nowhere.json cannot be read"),
        ({"HOLDFAST_JWT_PUBLIC_KEY_FILE": "jobs.db"}, "HOLDFAST_JWT_PUBLIC_KEY_FILE: jobs.db: it contains no"),
    ],
)  # fmt: skip
def test_serve_does_not_start_with_a_weak_or_broken_key(serve, variables, message):
    """T05."""
    ended = serve(**variables)

    assert (ended.code, ended.out) == (2, "")
    assert ended.complaint.startswith(message)
    assert not any(value in ended.complaint for name, value in variables.items() if "FILE" not in name)


def test_algorithms_other_than_hs256_name_the_package_they_need(serve, tmp_path):
    """HS256 works without optional packages."""
    key = {"kid": "e", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [key]}))
    start = "import sys; sys.modules['cryptography'] = None; from holdfast.cli.main import main; main()"

    ended = serve(start=start, HOLDFAST_JWT_JWKS_FILE="keys.json")
    assert (ended.code, "pip install 'holdfast[jwt]'" in ended.complaint) == (2, True)
    weak = serve(start=start, HOLDFAST_JWT_SECRET="short")
    assert weak.complaint.startswith("HOLDFAST_JWT_SECRET: it has 5 bytes")


def test_a_taken_port_is_refused():
    with bind("127.0.0.1", 0) as first, pytest.raises(Misconfigured, match="HOLDFAST_PORT"):
        bind("127.0.0.1", first.getsockname()[1])
