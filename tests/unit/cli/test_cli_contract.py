"""Keys of the documents that programs read: within ``aliquot/v1`` they are only ever added.

A key missing here is a broken script somewhere: do not take one out, raise the version.
"""

from dataclasses import fields

import pytest

from aliquot.cli.output.columns import Listing
from aliquot.cli.output.documents import API_VERSION
from aliquot.cli.output.failures import considered_item, failure_document
from aliquot.cli.views.checks import CHECKS
from aliquot.cli.views.gpus import GPUS, GpuRow
from aliquot.cli.views.leases import LEASES, LeaseRow
from aliquot.cli.views.usage import USAGE
from aliquot.model import AliquotError, Considered, Fit, GpuUuid, Reason

_GPU = (
    "index",
    "uuid",
    "name",
    "memoryBytes",
    "freeMemoryBytes",
    "leasedMemoryBytes",
    "outsideMemoryBytes",
    "leasedComputeThousandths",
    "utilisationPercent",
    "health",
    "usedMemoryBytes",
    "capacityBytes",
    "contextBytes",
    "vendor",
    "pciId",
    "computeCapability",
    "multiprocessors",
    "temperatureCelsius",
    "mig",
    "cordoned",
    "processCount",
    "shareable",
    "healthWhy",
    "processes",
    "leases",
)
_LEASE = (
    "id",
    "name",
    "user",
    "size",
    "gpus",
    "isolation",
    "state",
    "holder",
    "createdAt",
    "expiresAt",
    "memoryBytes",
    "computeThousandths",
    "policy",
    "endedAt",
    "lastedSeconds",
    "endWhy",
    "command",
    "shares",
    "holderDetail",
    "heldAt",
)
_SHARE = (
    "gpu",
    "index",
    "memoryBytes",
    "computeThousandths",
    "whole",
    "computeHeld",
)
_USAGE = (
    "key",
    "leases",
    "wallSeconds",
    "gibHours",
    "gpuHours",
    "peakBytes",
    "deniedAllocations",
    "sharesOfUnknownMemory",
    "byteSeconds",
    "computeSecondsReserved",
    "busyGpuHours",
    "busySeconds",
)
_CHECK = (
    "name",
    "ok",
    "text",
    "fix",
)
_ERROR = (
    "code",
    "exitCode",
    "title",
    "message",
    "facts",
    "considered",
    "next",
)
_CONSIDERED = (
    "gpu",
    "index",
    "name",
    "alternative",
    "fit",
    "wantedMemoryBytes",
    "wantedComputeThousandths",
    "capacityBytes",
    "freeMemoryBytes",
    "freeComputeThousandths",
    "outsideMemoryBytes",
    "shortMemoryBytes",
    "shortComputeThousandths",
    "detail",
)


def test_a_gpu_keeps_its_keys(gpus: list[GpuRow]) -> None:
    assert set(_GPU) <= set(GPUS.item(gpus[0]))


def test_a_lease_keeps_its_keys(lease_list: list[LeaseRow]) -> None:
    item = LEASES.item(lease_list[0])
    assert set(_LEASE) <= set(item)
    shares = item["shares"]
    assert isinstance(shares, list)
    assert [set(_SHARE) - set(share) for share in shares] == [set()]


@pytest.mark.parametrize(("listing", "keys"), [(USAGE, _USAGE), (CHECKS, _CHECK)])
def test_a_flat_list_keeps_its_keys(listing: Listing[object], keys: tuple[str, ...]) -> None:
    assert set(keys) <= {column.key or column.name for column in listing.columns}


def test_an_error_keeps_its_keys() -> None:
    document = failure_document(AliquotError(Reason.NO_ROOM, "x"), 4)
    assert (document["apiVersion"], document["kind"]) == (API_VERSION, "Error")
    assert set(_ERROR) <= set(document["error"])  # type: ignore[call-overload]


def test_a_considered_gpu_keeps_its_keys_and_leaves_no_number_out() -> None:
    one = Considered(gpu=GpuUuid("GPU-0"), index=0, name="T4", alternative=0, fit=Fit.FITS)
    item = considered_item(one)
    assert set(_CONSIDERED) <= set(item)
    assert len(item) >= len(fields(Considered)) + 1  # `wanted` is two numbers


def test_the_version_is_the_first() -> None:
    assert API_VERSION == "aliquot/v1"
