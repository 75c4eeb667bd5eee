"""A share: one part of one GPU."""

from dataclasses import dataclass

from aliquot.model.identities import GpuUuid
from aliquot.model.quantities import Bytes, Thousandths


@dataclass(frozen=True, slots=True)
class Share:
    gpu: GpuUuid
    memory: Bytes | None
    """``None`` where the card does not tell its memory; it is then leased whole."""
    compute: Thousandths
    whole: bool = False
    """The whole GPU, for one lease alone: nothing is put in front of its driver."""
