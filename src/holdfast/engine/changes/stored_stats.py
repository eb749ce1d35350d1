"""Encoding of statistics as stored rollups."""

from collections.abc import Iterable

import msgspec

from holdfast.model.change_log import Histogram
from holdfast.model.time import Duration
from holdfast.policy.rollups import JobStats, SeriesKey, StatsByKey
from holdfast.store.port.change_log import Rollup

_ENCODE = msgspec.json.Encoder().encode
_DECODE_HISTOGRAM = msgspec.json.Decoder(Histogram).decode


def decode_rollups(rows: Iterable[Rollup]) -> StatsByKey:
    """Decode stored rollups."""
    return {
        SeriesKey(*row[:4]): JobStats(*row[4:10], _DECODE_HISTOGRAM(row.wait), _DECODE_HISTOGRAM(row.run), *row[12:])
        for row in rows
    }


def encode_rollup(key: SeriesKey, stats: JobStats) -> Rollup:
    """Encode the stats of one key."""
    return Rollup(
        *key,
        stats.submitted,
        stats.started,
        stats.succeeded,
        stats.failed,
        stats.dead,
        stats.cancelled,
        _ENCODE(stats.wait),
        _ENCODE(stats.run),
        stats.cost,
        Duration(stats.waited),
        stats.reaped,
    )
