"""The nouns of Aliquot: what every stage takes and gives.

What lives here: frozen, slotted dataclasses, enums, quantities and the one error
type. What may be imported: the standard library, nothing else. What never: a clock,
a file, a socket, a subprocess, another package of Aliquot. An unknown value is
``None``, never 0.
"""

from aliquot.model.asks import Alternative, Amount, Ask, Fraction, Isolation, Policy, Unknown
from aliquot.model.attempts import Attempt, Outcome, Verification
from aliquot.model.driver import DriverFiles
from aliquot.model.edits import DeviceNode, Edits, Hook, Mount
from aliquot.model.errors import AliquotError
from aliquot.model.identities import GpuUuid, LeaseId, is_lease_id, is_lease_name, lease_id
from aliquot.model.leases import (
    ContainerHolder,
    Holder,
    Lease,
    LeaseState,
    NobodyHolder,
    ProcessHolder,
    Stretch,
)
from aliquot.model.nodes import (
    Gpu,
    GpuProcess,
    Health,
    HealthState,
    KnownGpu,
    Mig,
    Node,
    Notice,
    Severity,
    Snapshot,
    Vendor,
)
from aliquot.model.placements import Considered, Fit, Placed, PlacementPolicy, Refused, ShareRequest
from aliquot.model.quantities import (
    GIB,
    MIB,
    WHOLE,
    Bytes,
    Thousandths,
    format_bytes,
    format_bytes_exactly,
    format_compute,
)
from aliquot.model.reasons import Reason
from aliquot.model.shares import Share
from aliquot.model.usage import (
    Attestation,
    Ledger,
    LedgerDevice,
    LedgerSlot,
    Usage,
    UsageSpan,
    spans_before,
)

__all__ = [
    "GIB",
    "MIB",
    "WHOLE",
    "AliquotError",
    "Alternative",
    "Amount",
    "Ask",
    "Attempt",
    "Attestation",
    "Bytes",
    "Considered",
    "ContainerHolder",
    "DeviceNode",
    "DriverFiles",
    "Edits",
    "Fit",
    "Fraction",
    "Gpu",
    "GpuProcess",
    "GpuUuid",
    "Health",
    "HealthState",
    "Holder",
    "Hook",
    "Isolation",
    "KnownGpu",
    "Lease",
    "LeaseId",
    "LeaseState",
    "Ledger",
    "LedgerDevice",
    "LedgerSlot",
    "Mig",
    "Mount",
    "NobodyHolder",
    "Node",
    "Notice",
    "Outcome",
    "Placed",
    "PlacementPolicy",
    "Policy",
    "ProcessHolder",
    "Reason",
    "Refused",
    "Severity",
    "Share",
    "ShareRequest",
    "Snapshot",
    "Stretch",
    "Thousandths",
    "Unknown",
    "Usage",
    "UsageSpan",
    "Vendor",
    "Verification",
    "format_bytes",
    "format_bytes_exactly",
    "format_compute",
    "is_lease_id",
    "is_lease_name",
    "lease_id",
    "spans_before",
]
