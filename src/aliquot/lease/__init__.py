"""lease: who holds which share. The book, the life of a lease, and when it is over.

What lives here: the book (one SQLite file per machine or user), the pure state machine of a
lease (``lifecycle``), the pure decision which leases are over (``upkeep``), and the look into
/proc that it rests on (``liveness``). What may be imported: ``aliquot.model`` and the standard
library. What never: another stage, a driver, a container engine, a share's files. Only
``storage``, ``log`` and ``opening`` touch the file, only ``liveness`` touches /proc (and ``failures``, to
name who holds a lock); nothing here has a clock, times come in.
"""

from aliquot.lease.book import Book, StaleDecisionError
from aliquot.lease.drafts import LeaseDraft, LeaseEvent
from aliquot.lease.lifecycle import (
    Command,
    Event,
    IllegalStepError,
    Paused,
    Resized,
    Resumed,
    describe_holder,
    step,
)
from aliquot.lease.liveness import describe, is_alive, processes_carrying
from aliquot.lease.opening import open_book
from aliquot.lease.upkeep import Action, ContainerState, Due, Evidence, due, judge

__all__ = [
    "Action",
    "Book",
    "Command",
    "ContainerState",
    "Due",
    "Event",
    "Evidence",
    "IllegalStepError",
    "LeaseDraft",
    "LeaseEvent",
    "Paused",
    "Resized",
    "Resumed",
    "StaleDecisionError",
    "describe",
    "describe_holder",
    "due",
    "is_alive",
    "judge",
    "open_book",
    "processes_carrying",
    "step",
]
