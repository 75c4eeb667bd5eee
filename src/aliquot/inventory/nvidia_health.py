"""Whether a GPU can be trusted, from the state that its driver reports.

State and not events: an event is told once, to whoever listens at that moment, and one that
is remembered keeps a repaired card out for ever (a fault that users of other systems report
again and again). These states clear when the card is reset. XIDs, which only the kernel log
keeps, are added by ``with_xids`` under the rule written there.
"""

from dataclasses import replace

from aliquot.inventory.nvidia import Card, NvmlCode
from aliquot.model import Gpu, Health, HealthState

_RECOVERY_ACTIONS = {
    1: "the driver asks for a reset of the GPU",
    2: "the driver asks for a reboot of the machine",
    3: "the driver asks to end peer-to-peer traffic",
    4: "the driver asks to drain and reset the GPU",
}
_NO_ACTION = 0

_RESET = {46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}
_MORE_THAN_A_RESET = {54, 79, 151}
_BY_A_WORKFLOW = {48, 74}
_GRAVE_XIDS = _RESET | _MORE_THAN_A_RESET | _BY_A_WORKFLOW
"""After these the card is of no use until somebody acts, by the immediate action that NVIDIA's catalogue
has for them ("Analyzing Xid Errors with the Xid Catalog"): RESET_GPU; CHECK_MECHANICALS (no auxiliary
power), RESTART_BM (off the bus), RESTART_VM; and the workflows of double-bit ECC and NVLink errors, which
end in a reset. The rest is ignored, or ends a program (13, 31, 43, 45, 68 ...). 144 to 150, of newer NVLink,
say only in their details which they are: the driver's recovery action tells those."""


def health_of(card: Card) -> Health:
    """Judged after the card's other fields were asked for; their refusals count."""
    refusals = set(card.refusals.values())
    if NvmlCode.GPU_IS_LOST in refusals:
        return Health(HealthState.LOST, "the driver lost the GPU: it no longer answers on the bus")
    if NvmlCode.RESET_REQUIRED in refusals:
        return Health(HealthState.UNHEALTHY, "the driver says that the GPU must be reset")
    if not card.answered:
        return Health(HealthState.UNKNOWN, "the driver answers nothing about it")
    grave = [why for why in (_recovery(card), _ecc(card), _row_remapping(card)) if why]
    if grave:
        return Health(HealthState.UNHEALTHY, "; ".join(grave))
    return Health(HealthState.HEALTHY, _pending(card))


def with_xids(
    gpu: Gpu, xids: tuple[int, ...], *, action: int | None = None, where: str = "in the kernel log"
) -> Gpu:
    """``gpu`` judged by what the kernel log has since its driver was loaded, or what else tells of XIDs.

    The log still shows an XID after the card was reset, and a reset leaves no line there.
    So a driver that knows of recovery actions and asks for none is believed.
    """
    grave = [xid for xid in xids if xid in _GRAVE_XIDS]
    if not grave or action == _NO_ACTION:
        return gpu
    why = f"XID {grave[-1]} {where}"
    known = gpu.health
    if known.state is HealthState.HEALTHY:
        return replace(gpu, health=Health(HealthState.UNHEALTHY, why))
    return replace(gpu, health=Health(known.state, f"{known.why}; {why}" if known.why else why))


def recovery_action(card: Card) -> int | None:
    """What the driver says must be done with the card; None where it does not know of that."""
    field = card.constant("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
    values = None if field is None else card.ask_list("nvmlDeviceGetFieldValues", [field])
    if not values or values[0].nvmlReturn != 0:
        return None
    return int(values[0].value.uiVal)


def _recovery(card: Card) -> str | None:
    action = recovery_action(card)
    if not action:
        return None
    return _RECOVERY_ACTIONS.get(action, f"the driver asks for recovery action {action}")


def _ecc(card: Card) -> str | None:
    count = card.ask(
        "nvmlDeviceGetTotalEccErrors",
        card.constant("NVML_MEMORY_ERROR_TYPE_UNCORRECTED"),
        card.constant("NVML_VOLATILE_ECC"),
    )
    return f"{count} uncorrected ECC error{'s' if count > 1 else ''}" if count else None


def _row_remapping(card: Card) -> str | None:
    rows = card.ask("nvmlDeviceGetRemappedRows")
    return "a bad memory row could not be remapped" if rows is not None and rows[3] else None


def _pending(card: Card) -> str | None:
    """What does no harm now and is mended by the next reset."""
    rows = card.ask("nvmlDeviceGetRemappedRows")
    if rows is not None and rows[2]:
        return "a memory row waits for a reset to be remapped"
    if card.ask("nvmlDeviceGetRetiredPagesPendingStatus"):
        return "memory pages wait for a reset to be retired"
    return None
