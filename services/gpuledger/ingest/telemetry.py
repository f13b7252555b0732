"""Samples -> five-minute buckets per (GPU, run, rung): additive, and each sample counted once."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, book_of
from gpuledger.events.telemetry import RUNGS, GpuSample, Sampled
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import driver
from gpuledger.ledger.sealing import BUCKET_S

PPM_PER_PERCENT = 10_000

Bucket = tuple[int, str, str, str, str]
"""Start second, GPU, workload, run, rung."""


def counted(reader: Reader, events: Sequence[Event]) -> set[tuple[str, str]]:
    """Return (source, id) of the samples that were counted before."""
    rows = driver(reader).execute(
        "SELECT source, event_id FROM telemetry.samples WHERE book = ANY(%s) AND event_id = ANY(%s)",
        (sorted({book_of(event.data) for event in events}), [event.id for event in events]),
    )
    return set(rows.fetchall())


def count(writer: Writer, book: str, events: Sequence[Event]) -> list[tuple[str, str]]:
    """Add the samples that were not counted before to their buckets; return their (source, id)."""
    connection = driver(writer)
    fresh = []
    for event in events:
        row = connection.execute(
            "INSERT INTO telemetry.samples (book, source, event_id) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING 1",
            (book, event.source, event.id),
        ).fetchone()
        if row is not None:
            fresh.append(event)
    sums: dict[Bucket, tuple[int, int]] = {}
    for event in fresh:
        for bucket, sampled, used in _parts(event):
            before = sums.get(bucket, (0, 0))
            sums[bucket] = (before[0] + sampled, before[1] + used)
    if sums:
        _add(writer, book, sums)
    return [(event.source, event.id) for event in fresh]


def _parts(event: Event) -> Iterator[tuple[Bucket, int, int]]:
    fact = event.data
    assert isinstance(fact, Sampled)  # noqa: S101 - the caller routed by type
    end_s = event.at_s + fact.interval_s
    for gpu in fact.gpus:
        workload, run = _run(gpu)
        for rung in RUNGS:
            percent: Decimal | None = getattr(gpu, rung)
            if percent is None:
                continue
            ppm = int((percent * PPM_PER_PERCENT).to_integral_value())
            start_s = event.at_s
            while start_s < end_s:
                bucket_s = start_s - start_s % BUCKET_S
                edge = min(bucket_s + BUCKET_S, end_s)
                sampled = GPU_MILLI * (edge - start_s)
                yield (bucket_s, gpu.uuid, workload, run, rung), sampled, sampled * ppm
                start_s = edge


def _run(gpu: GpuSample) -> tuple[str, str]:
    workload, _, run = (gpu.run or "").rpartition("/")
    return workload, run


def _add(writer: Writer, book: str, sums: dict[Bucket, tuple[int, int]]) -> None:
    columns = list(
        zip(
            *((instant(start_s), *names, *amounts) for (start_s, *names), amounts in sorted(sums.items())),
            strict=True,
        )
    )
    driver(writer).execute(
        """
        INSERT INTO telemetry.buckets
            (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)
        SELECT %s, * FROM unnest(
            %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])
        ON CONFLICT (book, bucket_at, gpu, workload, run, rung)
        DO UPDATE SET sampled_gpu_ms = buckets.sampled_gpu_ms + excluded.sampled_gpu_ms,
                      used_gpu_upms = buckets.used_gpu_upms + excluded.used_gpu_upms
        """,
        (book, *map(list, columns)),
    )
