"""SMTP server in a process, whose behaviour depends on recipients and subjects.

`python -m tests.support.mailserver FILE [options]` prints its port, and appends each accepted message to FILE as a line
of JSON. Recipients: `later…` gets 450 the first time, `never…` gets 550. Subjects: `greylist` gets 451 at DATA the
first time, `spam` gets 554 at DATA; for `drop` the server accepts the message and cuts the connection before its
response, once; for `hang` it never responds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
from email import message_from_bytes, policy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

USER, PASSWORD = b"jobs", b"secret of the mail server"


class Handler:
    """Handler of recipients and messages."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: set[str] = set()

    async def handle_RCPT(  # noqa: N802 - name defined by the library
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Sequence[str]
    ) -> str:
        del server, session, options
        if address.startswith("never"):
            return "550 no such user"
        if address.startswith("later") and not self._again(address):
            return "450 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        message = message_from_bytes(content, policy=policy.default)
        as_sent = message_from_bytes(content, policy=policy.compat32)
        subject = str(message["Subject"])
        if subject == "spam":
            return "554 not here"
        if subject == "greylist" and not self._again(subject):
            return "451 later"
        if subject == "hang":
            await asyncio.sleep(3_600)
        message_data = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": [[name, str(value)] for name, value in message.items()],
            "raw_headers": [[name, "".join(value.splitlines())] for name, value in as_sent.items()],
            "texts": {
                part.get_content_type(): part.get_content()
                for part in message.walk()
                if part.get_content_maintype() == "text"
            },
            "tls": server.transport is not None and server.transport.get_extra_info("ssl_object") is not None,
            "login": session.authenticated,
            "raw": content.decode("latin-1"),
        }
        with self._file.open("a") as file:
            file.write(json.dumps(message_data) + "\n")
        if subject == "drop" and not self._again(subject):
            assert isinstance(server.transport, asyncio.WriteTransport)
            server.transport.abort()
        return "250 taken"

    def _again(self, what: str) -> bool:
        again = what in self._seen
        self._seen.add(what)
        return again


def _login(_server: object, _session: object, _envelope: object, _mechanism: str, given: Any) -> AuthResult:
    good = isinstance(given, LoginPassword) and (given.login, given.password) == (USER, PASSWORD)
    return AuthResult(success=good, handled=good)  # the server rejects a wrong login itself


async def _main(options: argparse.Namespace) -> None:
    context = None
    if options.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.certificate, options.key)
    handler = Handler(Path(options.file))
    upgrade = options.mode == "starttls"

    def create() -> SMTP:
        return SMTP(
            handler,
            hostname="mail.test",
            tls_context=context if upgrade else None,
            require_starttls=upgrade,
            auth_require_tls=upgrade,
            authenticator=_login if options.login else None,
            auth_required=options.login,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(create, "127.0.0.1", 0, ssl=context if options.mode == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the parent process exits


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--mode", choices=("plain", "starttls", "tls"), default="plain")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--login", action="store_true")
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
