"""The `email` job type: one message by SMTP, sent at least once, with the same Message-ID at each attempt."""

import asyncio
import re
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import aiosmtplib
from msgspec import Struct

from holdfast.errors import Invalid, Misconfigured
from holdfast.model.time import Duration, in_seconds, seconds
from holdfast.policy.text import escape_unprintable, sanitize
from holdfast.worker.context.context import Context
from holdfast.worker.handlers.exceptions import Discard, Retry

MOST_RECIPIENTS = 50
LONGEST_SUBJECT = 500
_PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
_LONGEST_TOLD = 300

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?P<local>{_ATOM}(?:\.{_ATOM})*)@(?P<domain>{_LABEL}(?:\.{_LABEL})*)")


class MailFailed(Retry):
    """It was not sent, or it is not known whether it was; another attempt may help."""


class MailRefused(Discard):
    """It cannot be sent, however often it is tried."""


class Sent(Struct, frozen=True):
    """What a server did with a message: for whom it took it, for whom not now, and for whom never."""

    accepted: list[str]
    later: dict[str, str]
    never: dict[str, str]
    answer: str


class Mail(Struct, frozen=True):
    """The record of a mail: what the job returns."""

    message_id: str
    accepted: list[str]
    refused: dict[str, str]
    answer: str


class Server(NamedTuple):
    """How mail goes out."""

    host: str
    port: int
    sender: str
    tls: bool = True
    """From the first byte."""
    upgrade: bool = False
    """By STARTTLS, and not without it."""
    user: str | None = None
    password: str | None = None
    timeout: Duration = seconds(60)
    allowed: tuple[str, ...] = ()
    """Addresses and domains that mail may go to; any when there are none."""

    @classmethod
    def of(cls, url: str, sender: str | None, *, timeout: Duration, allowed: Sequence[str] = ()) -> "Server":
        """From settings; raises `Misconfigured`."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
            host = parts.hostname
        except (ValueError, KeyError):
            raise Misconfigured("HOLDFAST_SMTP_URL: write smtps://user:password@host:465") from None
        if not host:
            raise Misconfigured("HOLDFAST_SMTP_URL: it names no host: write smtps://user:password@host:465")
        if sender is None:
            raise Misconfigured("HOLDFAST_SMTP_FROM: say which address mail comes from, such as jobs@example.com")
        if parts.username and parts.scheme == "smtp+plain":
            raise Misconfigured("HOLDFAST_SMTP_URL: a password is not sent without TLS: use smtp:// or smtps://")
        user, password = (None if each is None else unquote(each) for each in (parts.username, parts.password))
        tls, upgrade = parts.scheme == "smtps", parts.scheme == "smtp"
        return cls(host, port, sender, tls, upgrade, user, password, timeout, tuple(allowed))


class Email:
    """Sends mail for one worker."""

    def __init__(self, server: Server, *, trust: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._trust = trust

    async def email(
        self,
        to: str | list[str],
        subject: str,
        *,
        text: str | None = None,
        html: str | None = None,
        cc: list[str] | None = None,
        bcc: list[str] | None = None,
        reply_to: str | None = None,
        ctx: Context,
    ) -> Mail:
        """Send one message. A recipient whom the server puts off is tried again at the next attempt, alone.

        Whom it refuses for good is told in the result; when it refuses all, the job is dead.
        """
        message = self._message(to, cc=cc or [], subject=subject, text=text, html=html, reply_to=reply_to, ctx=ctx)
        left = _recipients([*_listed(to), *(cc or []), *(bcc or [])], self._server.allowed)
        accepted: list[str] = []
        never: dict[str, str] = {}
        calls = 0

        async def send() -> Sent:
            nonlocal calls
            calls += 1
            seconds_left = ctx.time_left()
            within = in_seconds(self._server.timeout)
            try:
                async with asyncio.timeout(within if seconds_left is None else min(within, 0.9 * seconds_left)):
                    return await self._send(message, left)
            except TimeoutError:
                raise MailFailed("the mail server took too long") from None

        for turn in range(1, ctx.job.max_attempts + ctx.attempt + 1):
            # What earlier attempts got rid of is recorded under their turns: only the rest is sent now.
            sent = await ctx.step(f"send-{turn}", send)
            accepted += sent.accepted
            never |= sent.never
            left = list(sent.later)
            if not left:
                return Mail(str(message["Message-ID"]), accepted, never, sent.answer)
            if calls:
                raise MailFailed(f"{len(left)} of its recipients are to be tried later: {_first(sent.later)}")
        raise MailRefused("its recipients were put off too often")

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
    ) -> EmailMessage:
        if text is None and html is None:
            raise Invalid("text: there is nothing to send: give text, html, or both", pointer="/payload/text")
        if len(subject) > LONGEST_SUBJECT or not subject.isprintable():
            raise Invalid(
                f"subject: give at most {LONGEST_SUBJECT} characters in one line, none of them a control character",
                pointer="/payload/subject",
            )
        message = EmailMessage(policy=SMTP)
        message["From"] = _mailbox(self._server.sender, "from")
        message["To"] = [_mailbox(each, "to") for each in _listed(to)]
        if cc:
            message["Cc"] = [_mailbox(each, "cc") for each in cc]
        if reply_to is not None:
            message["Reply-To"] = _mailbox(reply_to, "reply_to")
        message["Subject"] = subject
        # The same at every attempt, so that whoever gets it twice can tell.
        message["Date"] = format_datetime(datetime.fromtimestamp(ctx.job.created_at / 1_000_000, UTC))
        message["Message-ID"] = f"<{ctx.job.id}@{self._server.sender.rpartition('@')[2]}>"
        try:
            message.set_content(text if text is not None else html, subtype="plain" if text is not None else "html")
            if text is not None and html is not None:
                message.add_alternative(html, subtype="html")
        except (UnicodeError, ValueError) as error:
            raise Invalid(f"text: it cannot be written as mail ({error})", pointer="/payload/text") from None
        return message

    async def _send(self, message: EmailMessage, recipients: list[str]) -> Sent:
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
            raise MailFailed(f"the mail server cannot be reached: {_told(error)}") from error
        except OSError as error:
            raise MailFailed(f"the mail server cannot be reached: {error}") from error
        try:
            return await self._hand_over(client, message, recipients)
        finally:
            client.close()

    async def _hand_over(self, client: aiosmtplib.SMTP, message: EmailMessage, recipients: list[str]) -> Sent:
        if self._server.user is not None:
            try:
                await client.login(self._server.user, self._server.password or "")
            except (aiosmtplib.SMTPException, OSError) as error:  # not the job's fault, so another attempt may help
                raise MailFailed(f"the mail server takes no login: {_told(error)}") from error
        refused: dict[str, aiosmtplib.SMTPRecipientRefused] = {}
        answer = ""
        try:
            responses, answer = await client.sendmail(self._server.sender, recipients, message.as_bytes())
            refused = {
                address: aiosmtplib.SMTPRecipientRefused(reply.code, reply.message, address)
                for address, reply in responses.items()
            }
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = {each.recipient: each for each in error.recipients}
        except aiosmtplib.SMTPResponseException as error:
            raise (MailRefused if 500 <= error.code <= 599 else MailFailed)(
                f"the mail server refused it: {_told(error)}"
            ) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            # It may have been taken: the next attempt has the same Message-ID.
            raise MailFailed(f"the mail server hung up: {_told(error)}") from error
        later = {each: _told(why) for each, why in refused.items() if not 500 <= why.code <= 599}
        never = {each: _told(why) for each, why in refused.items() if each not in later}
        accepted = [each for each in recipients if each not in refused]
        if not accepted and not later:
            raise MailRefused(f"the mail server refused all of its recipients: {_first(never)}")
        if not accepted and not never:
            raise MailFailed(f"all of its recipients are to be tried later: {_first(later)}")
        return Sent(accepted, later, never, sanitize(escape_unprintable(answer), _LONGEST_TOLD))


def _listed(to: str | list[str]) -> list[str]:
    return [to] if isinstance(to, str) else to


def _mailbox(address: str, field: str) -> Address:
    found = _ADDRESS.fullmatch(address)
    if found is None or len(address) > 254:
        raise Invalid(
            f"{field}: {address[:100]!r} is not an address: write it as name@example.com, without a display name",
            pointer=f"/payload/{field}",
        )
    return Address(username=found["local"], domain=found["domain"])


def _recipients(addresses: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """Everybody once, and nobody whom the installation does not write to."""
    if not 1 <= len(addresses) <= MOST_RECIPIENTS:
        raise Invalid(f"to: give 1 to {MOST_RECIPIENTS} recipients, cc and bcc among them", pointer="/payload/to")
    for address in addresses:
        domain = _mailbox(address, "to").domain.lower()
        if allowed and domain not in allowed and address.lower() not in allowed:
            raise Invalid(f"to: {address} is not among HOLDFAST_EMAIL_ALLOW", pointer="/payload/to")
    return list(dict.fromkeys(addresses))


def _told(error: BaseException) -> str:
    text = f"{error.code} {error.message}" if isinstance(error, aiosmtplib.SMTPResponseException) else str(error)
    return sanitize(escape_unprintable(text), _LONGEST_TOLD) or type(error).__name__


def _first(told: dict[str, str]) -> str:
    return next((f"{address}: {why}" for address, why in told.items()), "")
