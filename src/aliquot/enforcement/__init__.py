"""What holds a tenant to its share: the limits file, the ledger, and where the governor lies.

What lives here: writing `limits`, making and reading `ledger`, making, checking and
repairing a device's `turns`, what a keeper says to governors, the folder of the governor's libraries,
and the rules for how strongly a lease can be held. What may be imported: `model` and the standard
library. What never: another stage, the driver, a lease's state.

The governor itself is C (`native/governor`) and runs in the tenant's process; this package and it
meet only in these files, whose one layout is `native/abi/layout.toml`.
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred
from aliquot.enforcement.governor import governor_folder
from aliquot.enforcement.isolation import TAKEN_AHEAD, UNKNOWN_PASSES, achievable_isolation, why_advisory
from aliquot.enforcement.ledger import create_ledger, live_slots, read_ledger
from aliquot.enforcement.limits import limits_agree, write_limits
from aliquot.enforcement.turns import create_turns

if TYPE_CHECKING:
    from aliquot.enforcement.attestation import build_of
    from aliquot.enforcement.keeping import (
        Beats,
        Keeping,
        Kept,
        Outside,
        lease_number,
        process_number,
        process_numbers,
        read_kept,
        tell_outside,
    )
    from aliquot.enforcement.turns_page import (
        Nonsense,
        Sitter,
        nonsense_of,
        read_page,
        repair,
        strangers_on,
    )
    from aliquot.enforcement.verifying import (
        PROGRAM,
        nothing_to_try,
        program_arguments,
        program_folder,
        read_attempts,
    )

# Of `verify`, `show` and the keeper, who begins when the program runs.
__getattr__ = deferred(
    __name__,
    {
        "attestation": "build_of",
        "keeping": "Beats Keeping Kept Outside lease_number process_number "
        "process_numbers read_kept tell_outside",
        "turns_page": "Nonsense Sitter nonsense_of read_page repair strangers_on",
        "verifying": "PROGRAM nothing_to_try program_arguments program_folder read_attempts",
    },
)

__all__ = [
    "PROGRAM",
    "TAKEN_AHEAD",
    "UNKNOWN_PASSES",
    "Beats",
    "Keeping",
    "Kept",
    "Nonsense",
    "Outside",
    "Sitter",
    "achievable_isolation",
    "build_of",
    "create_ledger",
    "create_turns",
    "governor_folder",
    "lease_number",
    "limits_agree",
    "live_slots",
    "nonsense_of",
    "nothing_to_try",
    "process_number",
    "process_numbers",
    "program_arguments",
    "program_folder",
    "read_attempts",
    "read_kept",
    "read_ledger",
    "read_page",
    "repair",
    "strangers_on",
    "tell_outside",
    "why_advisory",
    "write_limits",
]
