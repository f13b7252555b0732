"""Values that quote a person: dead letters and messages of the outbox, which are kept whole, and texts put aside.

Nobody knows the shape of a value that could not be read, so that a name is looked for as a word, however the
value writes it. One that was read after all, or that somebody discarded, or is published, has done its work and can
lose its bytes. One that still waits keeps them: nothing is dropped (law 7).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuledger.database.engine import Reader, Writer
from gpuledger.ledger.copying import driver

_ESCAPED = re.compile(r"(?:\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt]))+")
_PLAIN = re.compile(rb"[A-Za-z0-9]+")
_FETCHED = 100

_LETTERS = """
    SELECT id, coalesce(resolved_at, discarded_at) IS NOT NULL, place, raw, convert_to(said, 'UTF8')
    FROM (SELECT *, concat_ws(E'\\n', place, reason, hint, context) AS said FROM ledger.dead_letters) AS letters
    WHERE position(%(part)s::bytea IN raw) > 0 OR position(%(part)s::bytea IN convert_to(said, 'UTF8')) > 0
    ORDER BY id
"""
_TEXTS = """
    SELECT ref, body FROM side.texts WHERE position(%(part)s::bytea IN body) > 0 ORDER BY ref
"""
_MESSAGES = """
    SELECT id, published_at IS NOT NULL, value FROM ledger.outbox
    WHERE position(%(part)s::bytea IN value) > 0 ORDER BY id
"""


class Mention:
    """Recognises a name in bytes of any kind.

    Args:
        name: The name as the source writes it.
    """

    def __init__(self, name: str) -> None:
        left, right = (r"\b" if re.match(r"\w", end) else "" for end in (name[:1], name[-1:]))
        self._word = re.compile(left + re.escape(name) + right)
        self.part = max(_PLAIN.findall(name.encode()), key=len, default=b"")
        """What the bytes of every value hold in which the name occurs, whatever its encoding."""

    def occurs_in(self, value: bytes) -> bool:
        """Tell whether the name stands in the value as a word, plain or with the escapes of JSON."""
        try:
            texts = [value.decode()]
        except UnicodeDecodeError:
            texts = [value.decode("utf-8", "surrogateescape"), value.decode("latin-1")]
        return any(self._word.search(text) or self._word.search(_unescaped(text)) for text in texts)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A dead letter that waits: its id, and where a person finds it."""

    id: int
    place: str


@dataclass(slots=True)
class Quotations:
    """Where a name occurs.

    Args:
        ended: Ids of dead letters that were read after all, or discarded.
        waiting: Dead letters that wait.
        published: Ids of messages that are out.
        unpublished: Ids of messages that are not.
        texts: References of texts put aside, whoever wrote them.
    """

    ended: list[int] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    unpublished: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Tell whether the name occurs at all."""
        return bool(self.ended or self.waiting or self.published or self.unpublished or self.texts)


def find(connection: Reader | Writer, name: str) -> Quotations:
    """Return the dead letters, messages and texts in which a name occurs."""
    mention, found = Mention(name), Quotations()
    if not name.strip():
        return found
    for id_, ended, place, *quoted in _iter(connection, "quoting_letters", _LETTERS, mention.part):
        if not any(mention.occurs_in(value) for value in quoted):
            continue
        if ended:
            found.ended.append(id_)
        else:
            found.waiting.append(Waiting(id_, place))
    for id_, published, value in _iter(connection, "quoting_messages", _MESSAGES, mention.part):
        if mention.occurs_in(value):
            (found.published if published else found.unpublished).append(id_)
    for ref, body in _iter(connection, "quoting_texts", _TEXTS, mention.part):
        if mention.occurs_in(body):
            found.texts.append(ref)
    return found


def erase(writer: Writer, found: Quotations) -> None:
    """Delete texts; take the bytes, and all quoted of them, from what has done its work: that it was there stays."""
    connection = driver(writer)
    connection.execute("DELETE FROM side.texts WHERE ref = ANY(%s)", (found.texts,))
    # The digest goes too: whoever guesses the bytes could confirm them. A random one keeps the place unique.
    connection.execute(
        "UPDATE ledger.dead_letters SET raw = '', raw_digest = sha256(uuid_send(gen_random_uuid())), context = '{}',"
        " place = format('%%s[%%s]@%%s', stream, partition, position), reason = 'erased', hint = ''"
        " WHERE id = ANY(%s) AND coalesce(resolved_at, discarded_at) IS NOT NULL",
        (found.ended,),
    )
    connection.execute(
        "UPDATE ledger.outbox SET value = '' WHERE id = ANY(%s) AND published_at IS NOT NULL",
        (found.published,),
    )


def _iter(
    connection: Reader | Writer, cursor_name: str, query: str, part: bytes
) -> Iterator[tuple[Any, ...]]:
    """Yield rows a few at a time: a value may be large."""
    with driver(connection).cursor(name=cursor_name) as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(query, {"part": part})
        yield from cursor


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
