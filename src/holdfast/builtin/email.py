"""The `email` job type: one SMTP message, sent at least once, with the same Message-ID."""

import asyncio
import re
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import aiosmtplib
from msgspec import Struct

from holdfast.builtin.mail_headers import addresses_field, text_field
from holdfast.errors import Invalid, Misconfigured
from holdfast.model.time import Duration, in_seconds, seconds
from holdfast.policy.text import escape_unprintable, sanitize
from holdfast.worker.context.context import Context
from holdfast.worker.handlers.exceptions import Discard, Retry

MAX_ADDRESS_LENGTH = 254
MAX_RECIPIENTS = 50
MAX_SUBJECT_LENGTH = 500
_PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
_MAX_REPLY_LENGTH = 300

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


class MailFailed(Retry):
    """The message was not sent, or the outcome is unknown; a later attempt may succeed."""


class MailRefused(Discard):
    """The message cannot be sent; retrying does not help."""


class SendResult(Struct, frozen=True):
    """Result of handing a message to the server."""

    accepted: list[str]
    later: dict[str, str]
    """Recipients to try again, and the server's reply."""
    never: dict[str, str]
    """Recipients that the server rejected permanently, and its reply."""
    answer: str


class Mail(Struct, frozen=True):
    """Result of a message, which the job returns."""

    message_id: str
    accepted: list[str]
    refused: dict[str, str]
    answer: str


class RenderedMail(NamedTuple):
    """Message as it is sent."""

    id: str
    content: bytes


class SmtpServer(NamedTuple):
    """SMTP server and sender."""

    host: str
    port: int
    sender: str
    tls: bool = True
    """TLS from the first byte."""
    upgrade: bool = False
    """STARTTLS is required."""
    user: str | None = None
    password: str | None = None
    timeout: Duration = seconds(60)
    allowed: tuple[str, ...] = ()
    """Addresses and domains that may receive mail; empty allows all."""

    @classmethod
    def parse(cls, url: str, sender: str | None, *, timeout: Duration, allowed: Sequence[str] = ()) -> "SmtpServer":
        """Return the server of the settings; raises `Misconfigured`."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
            host = parts.hostname
        except (ValueError, KeyError):
            raise Misconfigured("HOLDFAST_SMTP_URL: write smtps://user:password@host:465") from None
        if not host:
            raise Misconfigured("HOLDFAST_SMTP_URL: the host is missing: write smtps://user:password@host:465")
        if sender is None:
            raise Misconfigured("HOLDFAST_SMTP_FROM: set the sender's address, such as jobs@example.com")
        if parts.username and parts.scheme == "smtp+plain":
            raise Misconfigured("HOLDFAST_SMTP_URL: a password is not sent without TLS: use smtp:// or smtps://")
        user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
        tls, upgrade = parts.scheme == "smtps", parts.scheme == "smtp"
        return cls(host, port, sender, tls, upgrade, user, password, timeout, tuple(allowed))


class Email:
    """Handler of one worker."""

    def __init__(self, server: SmtpServer, *, trust: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._trust = trust

    async def email(
        self,
        to: str | list[str],
        subject: str,
        *,
        text: str | None = None,
        body: str | None = None,
        html: str | None = None,
        cc: list[str] | None = None,
        bcc: list[str] | None = None,
        reply_to: str | None = None,
        ctx: Context,
    ) -> Mail:
        """Send one message.

        The next attempt sends it again only to recipients that the server deferred. The result lists recipients that
        the server rejected permanently; if it rejects all, the job is dead. `body` is another name of `text`.
        """
        if text is not None and body is not None:
            raise Invalid("body: it is another name of text: give one of the two", pointer="/payload/body")
        text = body if text is None else text
        message = self._message(to, cc=cc or [], subject=subject, text=text, html=html, reply_to=reply_to, ctx=ctx)
        left = _recipients([*_as_list(to), *(cc or []), *(bcc or [])], self._server.allowed)
        accepted: list[str] = []
        never: dict[str, str] = {}
        calls = 0

        async def send() -> SendResult:
            nonlocal calls
            calls += 1
            seconds_left = ctx.time_left()
            limit = in_seconds(self._server.timeout)
            try:
                async with asyncio.timeout(limit if seconds_left is None else min(limit, 0.9 * seconds_left)):
                    return await self._send(message, left)
            except TimeoutError:
                raise MailFailed("the mail server did not respond in time") from None

        for number in range(1, ctx.stored.max_attempts + ctx.attempt + 1):
            # Earlier attempts recorded their results as steps: send only to the recipients that are left.
            result = await ctx.step(f"send-{number}", send)
            accepted += result.accepted
            never |= result.never
            left = list(result.later)
            if not left:
                return Mail(message.id, accepted, never, result.answer)
            if calls:
                raise MailFailed(f"the mail server deferred {len(left)} recipients: {_first(result.later)}")
        raise MailRefused("the mail server deferred the recipients too often")

    def _message(
        self,
        to: str | list[str],
        *,
        cc: list[str],
        subject: str,
        text: str | None,
        html: str | None,
        reply_to: str | None,
        ctx: Context,
    ) -> RenderedMail:
        if text is None and html is None:
            raise Invalid("text: the message is empty: give text, html, or both", pointer="/payload/text")
        if len(subject) > MAX_SUBJECT_LENGTH or not subject.isprintable():
            raise Invalid(
                f"subject: give one line of at most {MAX_SUBJECT_LENGTH} characters, without control characters",
                pointer="/payload/subject",
            )
        message_id = f"<{ctx.stored.id}@{self._server.sender.rpartition('@')[2]}>"
        fields = [
            addresses_field("From", [_checked(self._server.sender, "from")]),
            addresses_field("To", [_checked(address, "to") for address in _as_list(to)]),
            addresses_field("Cc", [_checked(address, "cc") for address in cc]) if cc else None,
            addresses_field("Reply-To", [_checked(reply_to, "reply_to")]) if reply_to is not None else None,
            text_field("Subject", subject),
            # The same at every attempt, so that a receiver can recognise a duplicate.
            f"Date: {format_datetime(ctx.job.created_at)}",
            f"Message-ID: {message_id}",
        ]
        head = "".join(f"{field}\r\n" for field in fields if field is not None)
        return RenderedMail(message_id, head.encode("ascii") + _body(text, html))

    async def _send(self, message: RenderedMail, recipients: list[str]) -> SendResult:
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls,
            start_tls=server.upgrade,
            tls_context=self._trust,
            timeout=in_seconds(server.timeout),
        )
        try:
            await client.connect()
        except aiosmtplib.SMTPException as error:
            raise MailFailed(f"the mail server cannot be reached: {_describe(error)}") from error
        except OSError as error:
            raise MailFailed(f"the mail server cannot be reached: {error}") from error
        try:
            return await self._deliver(client, message, recipients)
        finally:
            client.close()

    async def _deliver(self, client: aiosmtplib.SMTP, message: RenderedMail, recipients: list[str]) -> SendResult:
        if self._server.user is not None:
            try:
                await client.login(self._server.user, self._server.password or "")
            except (aiosmtplib.SMTPException, OSError) as error:  # not a fault of the job, so it is retried
                raise MailFailed(f"the mail server rejected the login: {_describe(error)}") from error
        refused: dict[str, aiosmtplib.SMTPRecipientRefused] = {}
        answer = ""
        try:
            responses, answer = await client.sendmail(self._server.sender, recipients, message.content)
            refused = {
                address: aiosmtplib.SMTPRecipientRefused(reply.code, reply.message, address)
                for address, reply in responses.items()
            }
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = {rejection.recipient: rejection for rejection in error.recipients}
        except aiosmtplib.SMTPResponseException as error:
            raise (MailRefused if 500 <= error.code <= 599 else MailFailed)(
                f"the mail server rejected the message: {_describe(error)}"
            ) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            # The server may have accepted it: the next attempt has the same Message-ID.
            raise MailFailed(f"the connection to the mail server was lost: {_describe(error)}") from error
        later = {address: _describe(reply) for address, reply in refused.items() if not 500 <= reply.code <= 599}
        never = {address: _describe(reply) for address, reply in refused.items() if address not in later}
        accepted = [address for address in recipients if address not in refused]
        if not accepted and not later:
            raise MailRefused(f"the mail server rejected all recipients: {_first(never)}")
        if not accepted and not never:
            raise MailFailed(f"the mail server deferred all recipients: {_first(later)}")
        return SendResult(accepted, later, never, sanitize(escape_unprintable(answer), _MAX_REPLY_LENGTH))


def _as_list(to: str | list[str]) -> list[str]:
    return [to] if isinstance(to, str) else to


def _body(text: str | None, html: str | None) -> bytes:
    """Return the MIME header fields and the content; raises `Invalid` if it cannot be encoded."""
    body = EmailMessage(policy=SMTP)
    try:
        body.set_content(text if text is not None else html, subtype="plain" if text is not None else "html")
        if text is not None and html is not None:
            body.add_alternative(html, subtype="html")
        return body.as_bytes()
    except (UnicodeError, ValueError) as error:
        raise Invalid(f"text: it cannot be encoded as mail ({error})", pointer="/payload/text") from None


def _checked(address: str, field: str) -> str:
    """Return the address; raises `Invalid` unless it is one and contains no encoded word."""
    if _ADDRESS.fullmatch(address) is None or len(address) > MAX_ADDRESS_LENGTH or "=?" in address:
        raise Invalid(
            f"{field}: {address[:100]!r} is not an address: write it as name@example.com, without a display name",
            pointer=f"/payload/{field}",
        )
    return address


def _recipients(addresses: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """Return each address once; raises `Invalid` for an address that the settings do not allow."""
    if not 1 <= len(addresses) <= MAX_RECIPIENTS:
        raise Invalid(f"to: give 1 to {MAX_RECIPIENTS} recipients, including cc and bcc", pointer="/payload/to")
    for address in addresses:
        domain = _checked(address, "to").rpartition("@")[2].lower()
        if allowed and domain not in allowed and address.lower() not in allowed:
            raise Invalid(f"to: {address} is not among HOLDFAST_EMAIL_ALLOW", pointer="/payload/to")
    return list(dict.fromkeys(addresses))


def _describe(error: BaseException) -> str:
    text = f"{error.code} {error.message}" if isinstance(error, aiosmtplib.SMTPResponseException) else str(error)
    return sanitize(escape_unprintable(text), _MAX_REPLY_LENGTH) or type(error).__name__


def _first(replies: dict[str, str]) -> str:
    return next((f"{address}: {reply}" for address, reply in replies.items()), "")
