"""metering: what was used, and what of each card was leased.

What lives here: pure arithmetic over leases, ledgers and cards. What may be imported:
``aliquot.model`` and the standard library. What never: a clock, a file, the book, the ledger's
layout, another stage. Sums are integers (bytes or thousandths, times nanoseconds); floats
appear only where a person or a document is told seconds. What was not measured is None.
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred
from aliquot.metering.settling import settle

if TYPE_CHECKING:
    from aliquot.metering.covering import Coverage, coverage
    from aliquot.metering.tallying import TallyBy, UsageRow, tally

# A lease that ends is settled; sums are for who asks.
__getattr__ = deferred(__name__, {"covering": "Coverage coverage", "tallying": "TallyBy UsageRow tally"})

__all__ = ["Coverage", "TallyBy", "UsageRow", "coverage", "settle", "tally"]
