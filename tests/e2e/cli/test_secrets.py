"""No secret appears in an error, or in the process list."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.cli.process_list import mask
from holdfast.errors import Misconfigured
from tests.support.eventually import awaited

MALFORMED = [
    "postgres//u:hunter2@host/db",
    "host=db password='hunter2",
    "u:hunter2@host/db",
    "hunter2",
    "postgresql://u:hunter2@[host/db",
    "ftp://u:hunter2@host/db",
]
MISREAD = [
    "{}://u:hunter2/3@host/db",
    "{}://u:hunter2#3@host/db",
    "{}://u:hunter2?3@host/db",
    "{}://u:5/hunter2@host/db",
    "{}://u:5?hunter2@host/db",
    "{}://u:pass@host:hunter2/db",
]


@pytest.mark.parametrize("url", MALFORMED)
@pytest.mark.parametrize("name", ["DB_DSN", "HOLDFAST_REDIS_URL", "HOLDFAST_API_URL", "HOLDFAST_SMTP_URL"])
def test_a_url_that_cannot_be_parsed_is_not_shown(cli, name, url):
    ended = cli("jobs", "list", **{name: url})
    assert ended.code == 2
    assert ended.complaint.startswith(f"{name}: invalid value: expected ")
    assert "hunter2" not in ended.err


@pytest.mark.parametrize("url", MISREAD)
@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_password_that_was_misread_as_a_port_or_path_is_not_shown(cli, scheme, url):
    ended = cli("jobs", "list", DB_DSN=url.format(scheme))
    assert ended.code == 2
    assert ended.complaint.startswith("DB_DSN: the host or port cannot be read: ")
    assert "%2F" in ended.complaint
    assert "hunter2" not in ended.err


async def test_an_application_does_not_show_a_misread_password():
    app = Holdfast("postgresql://u:hunter2/3@host/db")

    @app.job
    async def send() -> None: ...

    with pytest.raises(Misconfigured) as caught:
        await send.enqueue()
    assert "hunter2" not in str(caught.value)


def test_keys_and_passwords_are_masked_in_arguments():
    arguments = (
        b"holdfast\0--key\0hf_1_abc\0jobs\0--api-key=hf_2\0--url\0postgresql://u:p@:w@h/d?password=x&a=b\0x:y@z\0"
    )
    assert mask(arguments) == (
        b"holdfast\0--key\0********\0jobs\0--api-key=****\0--url\0postgresql://u:****@h/d?password=*&a=b\0x:y@z\0"
    )
    assert mask(b"holdfast\0--api\0http://localhost:8080/a\0") == b"holdfast\0--api\0http://localhost:8080/a\0"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux has /proc/self/cmdline")
def test_the_process_list_does_not_show_a_key_or_a_password(tmp_path, environment):
    start = "import sys; from holdfast.cli.main import main; main()"
    arguments = ["jobs", "tail", "--api", "http://u:hunter2@127.0.0.1:9", "--key", "hf_hunter2"]
    process = subprocess.Popen(
        [sys.executable, "-c", start, *arguments], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        shown = Path(f"/proc/{process.pid}/cmdline")
        awaited(lambda: b"*" * 7 in shown.read_bytes() or process.poll() is not None, within=40)
        assert process.poll() is None
        assert b"hunter2" not in shown.read_bytes()
    finally:
        process.kill()
        process.wait()
