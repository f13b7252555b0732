"""Work that is done while the database is busy: one process keeps its own processor and the server's at work.

A batch is a dozen statements, and after each whoever writes it would only wait. There is no thread for it: the
interpreter hands its lock over every 5 ms, which is as long as the server takes for many of the statements.
"""

import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import RV, PQGen
from psycopg.waiting import Wait

Item = TypeVar("Item")

Work = Callable[[], bool]
"""Does a little work, less than a millisecond of it, and tells whether there may be more. It touches no database, and
keeps what goes wrong to itself until somebody asks for what it made."""


class Connection(psycopg.Connection[Any]):
    """A connection of the driver that works, where it is given work, as long as the server has not answered."""

    work: Work | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Run one exchange with the server to its end; see the driver's own."""
        if self.work is not None:
            gen = _meanwhile(gen, self.pgconn.socket, self.work)
        return super().wait(gen, interval, timeout)


def connect_so(engine: sa.Engine) -> sa.Engine:
    """Have an engine make connections that can be given work; return it."""

    @sa.event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, arguments: Any, settings: Any) -> Connection:  # noqa: ANN401
        return Connection.connect(*arguments, **settings)

    return engine


@contextmanager
def working(connection: sa.Connection, work: Work | None) -> Iterator[None]:
    """Give a connection work for what is asked of it in the block, in place of any that it has; None leaves it that."""
    driver = connection.connection.driver_connection
    if work is None or not isinstance(driver, Connection):
        yield
        return
    before, driver.work = driver.work, work
    try:
        yield
    finally:
        driver.work = before


class Ahead(Generic[Item]):
    """Items of an iterator, of which some are made before somebody asks for them.

    Args:
        items: Makes them; slowly enough that it is worth it.
        at_once: How many are made between two looks at the server.
    """

    def __init__(self, items: Iterable[Item], at_once: int = 1) -> None:
        self._items, self._at_once = iter(items), at_once
        self._made: deque[Item] = deque()
        self._error: Exception | None = None
        self._is_over = False

    def work(self) -> bool:
        """Make some more; tell whether there may be more to make."""
        if not self._is_over:
            wanted = len(self._made) + self._at_once
            try:
                self._made.extend(islice(self._items, self._at_once))
            except Exception as error:  # noqa: BLE001 - raised where the item is asked for that it went wrong with
                self._error = error
            self._is_over = len(self._made) < wanted
        return not self._is_over

    def __iter__(self) -> Iterator[Item]:
        """Yield all of them in order, each once; what went wrong is raised in its place."""
        return chain(self._taken(), self._items)

    def _taken(self) -> Iterator[Item]:
        while self._made:
            yield self._made.popleft()
        if self._error is not None:
            raise self._error


def _meanwhile(gen: PQGen[RV], socket: int, work: Work) -> PQGen[RV]:
    """Go through the same exchange, and work before each wait until the server has said something."""
    look = select.poll()
    interrupted: BaseException | None = None
    is_left = True
    try:
        asked = next(gen)
        while True:
            look.register(socket, _events(asked))
            while is_left and not look.poll(0):
                try:
                    is_left = work()
                except BaseException as error:  # noqa: BLE001 - raised below, with the connection at rest
                    interrupted, is_left = error, False
            asked = gen.send((yield asked))
    except StopIteration as ended:
        answer: RV = ended.value
    except psycopg.Error as error:
        raise (interrupted or error) from None
    if interrupted is not None:
        raise interrupted
    return answer


def _events(asked: Wait) -> int:
    return (select.POLLIN if asked & Wait.R else 0) | (select.POLLOUT if asked & Wait.W else 0)
