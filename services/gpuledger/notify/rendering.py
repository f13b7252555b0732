"""Notices as mail: the words laid out by Jinja2, as text and as HTML in which nothing of a notice is markup."""

from functools import cache
from typing import NamedTuple

import jinja2

from gpuledger.notify.notices import read_body
from gpuledger.notify.texts import text_of

_SUBJECT_MOST = 200


class Rendered(NamedTuple):
    """A mail without its headers."""

    subject: str
    text: str
    html: str


def render(body: bytes) -> Rendered:
    """Return the mail of a payload.

    Args:
        body: The payload, as ``Notice.body`` made it.
    """
    kind, noticed_at, data = read_body(body)
    told = text_of(data)
    subject = one_line(told.subject)
    values = {"kind": kind.value, "noticed_at": noticed_at, "told": told, "subject": subject}
    templates = _templates()
    return Rendered(
        subject,
        templates.get_template("notice.txt.j2").render(values),
        templates.get_template("notice.html.j2").render(values),
    )


def one_line(text: str) -> str:
    """Return a text as one line of printable characters: what stands in a header must not become another header."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _SUBJECT_MOST else line[: _SUBJECT_MOST - 1] + "…"


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gpuledger.notify"),
        autoescape=jinja2.select_autoescape(("html.j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["one_line"] = one_line
    return environment
