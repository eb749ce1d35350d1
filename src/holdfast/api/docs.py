"""`/docs`: the table of routes as a page. Plain HTML: no script, no foreign host, nothing to load."""

from collections.abc import Iterable
from html import escape
from itertools import groupby

from holdfast.api.table import Route


def page(routes: Iterable[Route]) -> bytes:
    """The page."""
    rows = []
    for tag, group in groupby(routes, key=lambda route: route.tag):
        rows.append(f"<h2>{escape(tag)}</h2><dl>")
        rows += [
            f"<dt><code>{route.method} {escape(route.path)}</code> <small>{escape(str(route.scope))}</small></dt>"
            f"<dd>{escape(route.summary)}</dd>"
            for route in group
        ]
        rows.append("</dl>")
    return ("<!doctype html><meta charset=utf-8><title>holdfast</title>" + "".join(rows)).encode()
