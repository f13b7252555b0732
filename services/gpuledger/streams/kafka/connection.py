"""Reaching a Kafka cluster: bounded in time, its errors turned into ours, nothing left open."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, errors

from gpuledger.kernel.errors import Fenced, GpuledgerError, NotFound, Refused, Unavailable
from gpuledger.streams.kafka.security import LOGIN, Security
from gpuledger.streams.limits import MAX_VALUE_BYTES, Timeouts
from gpuledger.streams.protocol import PositionLost
from gpuledger.streams.topics import Topic

MAX_MESSAGE_BYTES = MAX_VALUE_BYTES + (1 << 20)
"""The largest value with room for its key, headers and framing."""

TANSU_CLUSTER = "tansu_cluster"
"""How Tansu calls its cluster unless told otherwise."""

LOST_HINT = (
    "the topic was truncated or created anew: restore it, or read what it holds now from its beginning with"
    " gpuledger ingest --from-start; what is booked is not booked twice"
)

_LOST = (errors.OffsetOutOfRangeError, errors.NoOffsetForPartitionError, errors.LogTruncationError)

_UNWANTED = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.AuthorizationError,
)


class _Causes(logging.Handler):
    """Keeps why the newest connection failed: of a password or certificate the client tells its log alone."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.newest: errors.KafkaError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take the error out of what would be printed."""
        for argument in record.args if isinstance(record.args, tuple) else ():
            if isinstance(argument, errors.KafkaError) and not isinstance(argument, errors.KafkaTimeoutError):
                self.newest = argument


_causes = _Causes()
_log, _connections_log = logging.getLogger("kafka"), logging.getLogger("kafka.net.manager")
_connections_log.addHandler(_causes)
if _log.level == logging.NOTSET:
    # The client logs every failed connection that we already report once, as Unavailable.
    _log.setLevel(logging.CRITICAL)
    _connections_log.setLevel(logging.WARNING)
    _connections_log.propagate = False


class Connection:
    """Opens clients of one cluster.

    Args:
        bootstrap: ``host:port[,host:port]``.
        timeouts: How long anything waits.
        security: How the client and the brokers know each other.
    """

    def __init__(self, bootstrap: str, timeouts: Timeouts, security: Security | None = None) -> None:
        self.bootstrap = bootstrap
        self.timeouts = timeouts
        self._security = security or Security()
        self._cluster = ""

    def open(self, client: Callable[..., Any], **settings: object) -> Any:  # noqa: ANN401 - untyped client
        """Open a client of the given kind.

        Raises:
            Refused: When the brokers do not let this client in, or its certificate or password cannot be read.
            Unavailable: When nobody answers in time.
        """
        secured = self._security.arguments()
        _causes.newest = None
        network: list[Any] = []

        def open_network(**options: object) -> Any:  # noqa: ANN401
            network.append(client.DEFAULT_CONFIG["kafka_client"](**options))  # type: ignore[attr-defined]
            return network[-1]

        with self.talking():
            try:
                return client(
                    bootstrap_servers=self.bootstrap.split(","),
                    client_id="gpuledger",
                    bootstrap_timeout_ms=milliseconds(self.timeouts.connect_s),
                    request_timeout_ms=milliseconds(self.timeouts.request_s),
                    reconnect_backoff_max_ms=1000,
                    kafka_client=open_network,
                    **secured,
                    **settings,
                )
            except errors.KafkaError as error:
                # A client that fails to connect leaves its thread and sockets behind.
                for opened in network:
                    opened.close()
                raise (_causes.newest or error) from error

    @contextmanager
    def admin(self) -> Iterator[Any]:
        """Open an administrative client for the length of the block.

        Raises:
            Unavailable: When nobody answers in time, or a request in the block fails.
        """
        client = self.open(KafkaAdminClient)
        try:
            with self.talking():
                yield client
        finally:
            client.close()

    def partitions(self, topic: Topic) -> Sequence[int]:
        """Return the partitions of an existing topic.

        Raises:
            NotFound: When the topic does not exist.
            Unavailable: When the broker cannot be reached.
        """
        with self.admin() as admin:
            described = admin.describe_topics([topic])
        found = sorted(p["partition_index"] for d in described for p in d["partitions"])
        if not found:
            raise NotFound(f"{self.bootstrap} has no topic {topic}", hint="create the topic first")
        return found

    def lists_ends_wrongly(self) -> bool:
        """Tell whether the broker is one that does not say where a partition ends.

        Tansu 0.6, which stands in for Kafka where there is no Java, lists the place behind the first
        record of the last batch. Taken as it is, a reader would believe that it had read everything.

        Raises:
            Unavailable: When the broker cannot be reached.
        """
        if not self._cluster:
            with self.admin() as admin:
                self._cluster = admin.describe_cluster()["cluster_id"] or "unnamed"
        return self._cluster == TANSU_CLUSTER

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Turn the client's errors into what they mean to a caller, while the block talks to the broker.

        Raises:
            PositionLost: When the broker does not hold the position.
            Fenced: When another worker of the same name joined the group.
            Refused: When the broker takes no message of that size, or does not let this client in.
            GpuledgerError: What the client called back and that raised.
            Unavailable: For everything else: it can be tried again.
        """
        try:
            yield
        except _LOST as error:
            raise PositionLost(f"Kafka no longer holds the position: {error}", hint=LOST_HINT) from error
        except errors.FencedInstanceIdError as error:
            raise Fenced(
                "another worker joined the group under this worker's name",
                hint="nothing was written; give each worker a name of its own, or none",
            ) from error
        except (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError) as error:
            raise Refused(
                f"Kafka at {self.bootstrap} refuses a message of that size: {error}",
                hint=f"set the topic's max.message.bytes to {MAX_MESSAGE_BYTES}",
            ) from error
        except _UNWANTED as error:
            raise Refused(
                f"Kafka at {self.bootstrap} does not let this client in: {error}",
                hint=f"check {LOGIN}, and what that login may do there",
            ) from error
        except errors.KafkaError as error:
            if isinstance(error.__cause__, GpuledgerError):
                raise error.__cause__ from None  # our own, from what the client calls back
            raise Unavailable(
                f"Kafka at {self.bootstrap} did not answer as needed: {error}",
                hint="check that GPULEDGER_KAFKA_BOOTSTRAP names a running broker that"
                f" {self._security}, then try again",
            ) from error


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds, as the client wants them."""
    return round(seconds * 1000)
