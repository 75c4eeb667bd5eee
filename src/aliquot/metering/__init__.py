"""metering: what was used, and what of each card was leased.

What lives here: pure arithmetic over leases, ledgers and cards. What may be imported:
``aliquot.model`` and the standard library. What never: a clock, a file, the book, the ledger's
layout, another stage. Sums are integers (bytes or thousandths, times nanoseconds); floats
appear only where a person or a document is told seconds. What was not measured is None.
"""

from aliquot.metering.covering import Coverage, coverage
from aliquot.metering.settling import settle
from aliquot.metering.tallying import TallyBy, UsageRow, tally

__all__ = ["Coverage", "TallyBy", "UsageRow", "coverage", "settle", "tally"]
