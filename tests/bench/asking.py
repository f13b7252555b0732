"""Requests over loopback by who costs little: one socket a connection, and no more of HTTP than the API's answers need.

A client library takes as long for a request as the server does, and on two cores both would be measured.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"


class Request(NamedTuple):
    """What is sent.

    Args:
        name: What it is counted under.
        content: The bytes.
    """

    name: str
    content: bytes


def get(name: str, path: str, token: str | None = None) -> Request:
    """Return a question."""
    return Request(name, _head("GET", path, token) + HEAD_END)


def post(name: str, path: str, body: bytes, form: str, token: str | None = None) -> Request:
    """Return what tells or orders something."""
    head = _head("POST", path, token) + f"\r\nContent-Type: {form}\r\nContent-Length: {len(body)}".encode()
    return Request(name, head + HEAD_END + body)


def _head(method: str, path: str, token: str | None) -> bytes:
    shown = f"\r\nAuthorization: Bearer {token}" if token else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json{shown}".encode()


class Connection:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> tuple[int, bytes]:
        """Send a request; return the status and the body of its answer."""
        self._socket.sendall(request.content)
        said = b""
        while (end := said.find(HEAD_END)) < 0:
            said += self._more()
        head, body = said[:end].lower(), said[end + len(HEAD_END) :]
        at = head.find(b"content-length:")
        length = 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])
        while len(body) < length:
            body += self._more()
        return int(head[9:12]), body

    def _more(self) -> bytes:
        more = self._socket.recv(1 << 16)
        if not more:
            raise ConnectionError("the server hung up")
        return more

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


@dataclass
class Answers:
    """What became of requests.

    Args:
        took_s: Name -> how long each took.
        refused: (name, status, body) of what was not answered with 200.
    """

    took_s: dict[str, list[float]] = field(default_factory=dict)
    refused: list[tuple[str, int, bytes]] = field(default_factory=list)
    over_s: float = 0.0

    def add(self, other: "Answers") -> None:
        """Add what became of others, asked at another time."""
        for name, took in other.took_s.items():
            self.took_s.setdefault(name, []).extend(took)
        self.refused += other.refused
        self.over_s += other.over_s

    def count(self) -> int:
        """Return how many there were."""
        return sum(map(len, self.took_s.values()))

    def per_s(self) -> float:
        """Return how many there were each second."""
        return self.count() / self.over_s

    def p(self, per_cent: int, name: str | None = None) -> float:
        """Return a percentile of how long they took, in seconds."""
        took = sorted(s for of, all_s in self.took_s.items() if name in (None, of) for s in all_s)
        return took[min(len(took) - 1, len(took) * per_cent // 100)]


def in_turn(requests: Sequence[Request]) -> Callable[[int], Iterator[Request]]:
    """Return what each of several connections asks, each from another place on, round and round."""

    def of(number: int) -> Iterator[Request]:
        place = number * 7
        while True:
            place += 1
            yield requests[place % len(requests)]

    return of


def flood(port: int, connections: int, for_s: float, of: Callable[[int], Iterator[Request]]) -> Answers:
    """Ask on several connections, on each as soon as the answer before is there."""
    return _ask(port, connections, for_s, of, every_s=0.0)


def stream(
    port: int, connections: int, for_s: float, of: Callable[[int], Iterator[Request]], *, per_s: float
) -> Answers:
    """Ask so often a second, on whichever connection: what is late is made up for, and counts from when it was due."""
    return _ask(port, connections, for_s, of, every_s=connections / per_s)


def _ask(
    port: int, connections: int, for_s: float, of: Callable[[int], Iterator[Request]], *, every_s: float
) -> Answers:
    answers, lock = Answers(), threading.Lock()
    began = time.perf_counter() + 0.01  # when every thread is there

    def work(number: int) -> None:
        own = Answers()
        connection = Connection(port)
        due = began + every_s * number / connections
        for request in of(number):
            now = time.perf_counter()
            if now < due:
                time.sleep(due - now)
            if max(due, now) >= began + for_s:
                break
            asked = due if every_s else time.perf_counter()
            status, body = connection.ask(request)
            own.took_s.setdefault(request.name, []).append(time.perf_counter() - asked)
            if status != 200:
                own.refused.append((request.name, status, body))
            due += every_s
        connection.close()
        with lock:
            answers.add(own)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.over_s = time.perf_counter() - began
    return answers
