"""What one lease used: its ledger's figures, believed only as far as they can be true.

The tenant's own processes write the ledger, so a figure may be anything. It is taken for
display and statistics, never for what is owed: leased bytes times time comes from the book.
"""

import math
from collections.abc import Sequence

from aliquot.model import Bytes, Lease, Ledger, LedgerDevice, Share, Stretch, Usage, UsageSpan, spans_before

_BUSY_MAX = 1 << 58
"""Nanoseconds: nine years of one GPU. The device's clock may run ahead of the wall's (a software GPU in
virtual time), so wall time is no bound."""

_FIGURE_MAX = 1 << 53
"""More bytes than a machine has, more refusals than 285 years of one a microsecond. Such a figure
is nonsense, hence unknown: clamped, it would drown every sum that it enters. Up to here a float is
exact as well."""


def settle(
    lease: Lease, ledger: Ledger | None, *, at: int, past: Sequence[Stretch] = ()
) -> tuple[Usage, ...]:
    """One Usage a share, in the lease's order, from ``held_at`` to ``at`` (nanoseconds).

    ``past``: what it had before it was resized.
    ``ledger`` None: there was no governor or it cannot be read, and what only it knows stays
    None. So does a figure that cannot be, that of a device that the ledger lacks, and of a share
    that is a whole card. A lease that was never held, or a clock that was set back, gives 0 wall time.
    """
    wall = max(0, at - lease.held_at) if lease.held_at is not None else 0
    devices = ledger.devices if ledger is not None else ()
    return tuple(
        _settle_share(
            lease,
            share,
            devices[position] if position < len(devices) else None,
            wall,
            before=spans_before(past, position, wall=wall),
        )
        for position, share in enumerate(lease.shares)
    )


def _settle_share(
    lease: Lease, share: Share, device: LedgerDevice | None, wall: int, *, before: tuple[UsageSpan, ...]
) -> Usage:
    measured = None if share.whole else device
    peak = None if measured is None else believable(measured.peak)
    if peak is not None and share.memory is not None:
        peak = min(peak, max([share.memory, *(span.leased_bytes or 0 for span in before)]))
    return Usage(
        lease=lease.id,
        gpu=share.gpu,
        wall_ns=wall,
        leased_bytes=share.memory,
        leased_compute=share.compute,
        peak_bytes=None if peak is None else Bytes(peak),
        mean_bytes=None if measured is None or peak is None else _mean(measured.byte_seconds, wall, peak),
        denied=None if measured is None else believable(measured.denied),
        busy_ns=None if measured is None else believable(measured.compute_ns, most=_BUSY_MAX),
        before=before,
    )


def believable(figure: int | None, *, most: int = _FIGURE_MAX) -> int | None:
    """``figure``, or None where it cannot be."""
    return figure if figure is not None and 0 <= figure <= most else None


def _mean(byte_seconds: float | None, wall_ns: int, peak: int) -> float | None:
    """Over the whole wall time, idle time included; never above the peak. None without time."""
    if byte_seconds is None or wall_ns == 0 or not math.isfinite(byte_seconds):
        return None
    return max(0.0, min(byte_seconds * 1e9 / wall_ns, float(peak)))
