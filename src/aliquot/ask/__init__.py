"""What is wanted: text becomes an ``Ask``.

What lives here: the one parser of SPEC (``[COUNT x] [MODEL[!] :] AMOUNT [@ COMPUTE]``),
the words of policies and isolation, and the document form (kind ``Ask``). What may be
imported: ``aliquot.model`` and the standard library; ``documents`` alone reads YAML, and
imports it inside its functions, because every command pays for what is imported here.
What never: a file, a clock, a GPU. Whether an ask fits anywhere is ``placement``'s question.

Every refusal is an ``AliquotError`` that shows the text and a caret under the place where
reading stopped, and says what to write instead.
"""

from aliquot.ask.amounts import UNITS
from aliquot.ask.documents import API_VERSION, KIND, from_document, to_document
from aliquot.ask.specs import parse, parse_compute
from aliquot.ask.words import parse_isolation, parse_placement, parse_policy, parse_unknown

__all__ = [
    "API_VERSION",
    "KIND",
    "UNITS",
    "from_document",
    "parse",
    "parse_compute",
    "parse_isolation",
    "parse_placement",
    "parse_policy",
    "parse_unknown",
    "to_document",
]
