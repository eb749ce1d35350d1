"""A real mail server as a process of its own, which does to single recipients and messages what their names say.

Runs `python -m tests.support.mailserver FILE [options]`: prints its port, and writes each message it took as a line of
JSON into FILE. Recipients: `later…` is put off (450) the first time, `never…` is refused (550). Subjects:
`greylist` is put off at DATA (451) once, `spam` is refused at DATA (554), `drop` is taken and the connection cut
before the answer, once; `hang` is never answered.
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
    """What is done with a message."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: set[str] = set()

    async def handle_RCPT(  # noqa: N802 - the library's name for it
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
        subject = str(message["Subject"])
        if subject == "spam":
            return "554 not here"
        if subject == "greylist" and not self._again(subject):
            return "451 later"
        if subject == "hang":
            await asyncio.sleep(3_600)
        told = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": [[name, str(value)] for name, value in message.items()],
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
            file.write(json.dumps(told) + "\n")
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
    return AuthResult(success=good, handled=good)  # of a wrong one the server tells by itself


async def _main(asked: argparse.Namespace) -> None:
    context = None
    if asked.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(asked.certificate, asked.key)
    handler = Handler(Path(asked.file))
    upgrade = asked.mode == "starttls"

    def made() -> SMTP:
        return SMTP(
            handler,
            hostname="mail.test",
            tls_context=context if upgrade else None,
            require_starttls=upgrade,
            auth_require_tls=upgrade,
            authenticator=_login if asked.login else None,
            auth_required=asked.login,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(made, "127.0.0.1", 0, ssl=context if asked.mode == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until whoever started it is gone


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--mode", choices=("plain", "starttls", "tls"), default="plain")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--login", action="store_true")
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
