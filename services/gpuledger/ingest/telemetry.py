"""Samples -> five-minute buckets per (GPU, run, rung): additive, and each sample counted once.

A host often knows a run by a handle only, and often before the ledger knows of the run. Its buckets are kept by the
handle; which run that is, is asked when they are read (view ``telemetry.run_buckets``).
"""

from collections.abc import Sequence

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import Event, book_of
from gpuledger.events.telemetry import RUNGS, GpuSample, Sampled, rungs_of
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import driver
from gpuledger.ledger.sealing import BUCKET_S

PPM_PER_PERCENT = 10_000

Bucket = tuple[int, str, str, str, str]
"""Start second, GPU, workload, run, rung; without a workload the run is a handle, or empty when nobody held it."""

Identity = tuple[str, str]
"""Source and id of an event."""


def counted(reader: Reader, events: Sequence[Event]) -> set[tuple[str, str]]:
    """Return (source, id) of the samples that were counted before."""
    rows = driver(reader).execute(
        "SELECT source, event_id FROM telemetry.samples WHERE book = ANY(%s) AND event_id = ANY(%s)",
        (sorted({book_of(event.data) for event in events}), [event.id for event in events]),
    )
    return set(rows.fetchall())


def count(writer: Writer, book: str, events: Sequence[Event]) -> list[tuple[str, str]]:
    """Add the samples that were not counted before to their buckets; return their (source, id)."""
    first: dict[Identity, Event] = {}
    for event in events:
        first.setdefault((event.source, event.id), event)
    fresh = _remember(writer, book, list(first))
    sums: dict[Bucket, list[int]] = {}
    for identity in fresh:
        event = first[identity]
        assert isinstance(event.data, Sampled)  # noqa: S101 - the caller routed by type
        _sum_up(event.data, event.at_s, sums)
    if sums:
        _add(writer, book, sums)
    return fresh


def _remember(writer: Writer, book: str, identities: Sequence[Identity]) -> list[Identity]:
    """Keep which samples are counted from now on; return those that were not before, in order."""
    sources, ids = [source for source, _ in identities], [id_ for _, id_ in identities]
    rows = driver(writer).execute(
        "INSERT INTO telemetry.samples (book, source, event_id)"
        " SELECT %s, source, id FROM unnest(%s::text[], %s::text[]) AS seen (source, id) ORDER BY source, id"
        " ON CONFLICT DO NOTHING RETURNING source, event_id",
        (book, sources, ids),
    )
    inserted = set(rows.fetchall())
    return [identity for identity in identities if identity in inserted]


def _sum_up(fact: Sampled, at_s: int, sums: dict[Bucket, list[int]]) -> None:
    """Add a message to the sums of its buckets: sampled gpu_ms, and gpu_ms times parts per million of use."""
    pieces = _pieces(at_s, at_s + fact.interval_s)
    for gpu in fact.gpus:
        workload, run = _run(gpu)
        milli = gpu.gpus_milli or GPU_MILLI
        for rung, percent in zip(RUNGS, rungs_of(gpu), strict=True):
            if percent is None:
                continue
            ppm = int((percent * PPM_PER_PERCENT).to_integral_value())
            for bucket_s, length_s in pieces:
                key = (bucket_s, gpu.uuid, workload, run, rung)
                sampled = milli * length_s
                found = sums.get(key)
                if found is None:
                    sums[key] = [sampled, sampled * ppm]
                else:
                    found[0] += sampled
                    found[1] += sampled * ppm


def _pieces(start_s: int, end_s: int) -> list[tuple[int, int]]:
    """Cut an interval at the edges of buckets; return (start of the bucket, seconds in it)."""
    first_s = start_s - start_s % BUCKET_S
    return [
        (bucket_s, min(bucket_s + BUCKET_S, end_s) - max(bucket_s, start_s))
        for bucket_s in range(first_s, end_s, BUCKET_S)
    ]


def _run(gpu: GpuSample) -> tuple[str, str]:
    """Return workload and run; which run a handle stands for depends on facts that may come later, so it stays one."""
    if gpu.run is None:
        return "", gpu.handle or ""
    workload, _, run = gpu.run.rpartition("/")
    return workload, run


def _add(writer: Writer, book: str, sums: dict[Bucket, list[int]]) -> None:
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
