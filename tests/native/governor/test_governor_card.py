"""What a driver takes otherwise than it was asked: shapes, code, handles for other processes."""

from tests.native.governor.shares import ShareOnDisk

from aliquot.model import MIB


def test_an_array_is_charged_what_its_rows_truly_take(card_share: ShareOnDisk) -> None:
    """4,096 rows of 100 floats, each in 512 bytes: by its shape it would be 1.6 MiB."""
    seen = card_share.run(
        """
begin(); before = used()
check(cuda.cuArrayCreate_v2(ref(p), (ctypes.c_uint64 * 3)(100, 4096, 0x20 | 1 << 32)))
during = used() - before
check(cuda.cuArrayDestroy(p))
check(alloc(78 * MIB + MIB // 4)[0])
say([during, used() - before, cuda.cuArrayCreate_v2(ref(p), (ctypes.c_uint64 * 3)(100, 4096, 0x20 | 1 << 32))])
"""
    )
    assert seen == [2 * MIB, 78 * MIB + MIB // 4, 2]
