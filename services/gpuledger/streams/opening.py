"""Which broker to use, decided once from the settings."""

from gpuledger.settings import Settings
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Broker


def open_broker(settings: Settings) -> Broker:
    """Return Kafka when a bootstrap address is set, else files below the data folder.

    Opening does not connect; the first call does, and raises Unavailable when nobody answers.
    """
    if settings.kafka_bootstrap is None:
        return FileBroker(settings.home / "streams")
    # The Kafka client takes a tenth of a second to import; without Kafka nobody should wait for it.
    from gpuledger.streams.kafka import KafkaBroker, Security

    security = Security(
        protocol=settings.kafka_security_protocol,
        mechanism=settings.kafka_sasl_mechanism,
        username=settings.kafka_sasl_username,
        password_file=settings.kafka_sasl_password_file,
        ca_file=settings.kafka_ca_file,
        cert_file=settings.kafka_cert_file,
        key_file=settings.kafka_key_file,
        key_password_file=settings.kafka_key_password_file,
    )
    return KafkaBroker(settings.kafka_bootstrap, security=security)
