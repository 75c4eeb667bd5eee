"""Every profile against what the makers of the cards publish, and against itself."""

import pytest

from aliquot.model import MIB, Bytes
from aliquot.softgpu import Profile, profile_names, read_profile

CARDS = tuple(name for name in profile_names() if name != "tiny")

BANDWIDTH = {
    "M40": 288e9,
    "P40": 346e9,
    "P100": 732e9,
    "V100": 900e9,
    "T4": 320e9,
    "A10": 600e9,
    "L4": 300e9,
    "L40S": 864e9,
    "A100-40": 1555e9,
    "A100-80": 2039e9,
    "H100": 3350e9,
    "H200": 4800e9,
    "B200": 8000e9,
    "RTX4090": 1008e9,
}
"""Bytes a second, of the data sheets. Those of H200 and B200 are rounded down by up to 2.5 %."""

PER_CAPABILITY = {
    (5, 2): (48, 96, 2048, 32),
    (6, 0): (48, 64, 2048, 32),
    (6, 1): (48, 96, 2048, 32),
    (7, 0): (96, 96, 2048, 32),
    (7, 5): (64, 64, 1024, 16),
    (8, 0): (163, 164, 2048, 32),
    (8, 6): (99, 100, 1536, 16),
    (8, 9): (99, 100, 1536, 24),
    (9, 0): (227, 228, 2048, 32),
    (10, 0): (227, 228, 2048, 32),
}
"""CUDA programming guide: KiB of shared memory a block can opt in to and a multiprocessor has,
threads and blocks that a multiprocessor holds."""

SPLIT_BY_MIG = {"A100-40", "A100-80", "H100", "H200", "B200"}


def figure(profile: Profile, key: str) -> int:
    return dict(profile.figures)[key]


def test_the_cards_of_the_issue_are_there() -> None:
    assert set(CARDS) == set(BANDWIDTH)


@pytest.mark.parametrize("name", CARDS)
def test_bandwidth_is_clock_times_bus_width_and_that_of_the_data_sheet(name: str) -> None:
    assert read_profile(name).bandwidth == pytest.approx(BANDWIDTH[name], rel=0.025)


@pytest.mark.parametrize("name", profile_names())
def test_limits_are_those_of_the_compute_capability(name: str) -> None:
    profile = read_profile(name)
    found = (
        figure(profile, "shared_per_block_optin_bytes") // 1024,
        figure(profile, "shared_per_multiprocessor_bytes") // 1024,
        figure(profile, "threads_per_multiprocessor"),
        figure(profile, "blocks_per_multiprocessor"),
    )
    assert found == PER_CAPABILITY[profile.compute_capability]
    assert figure(profile, "registers_per_block") == 65536
    assert figure(profile, "shared_per_block_bytes") == 48 * 1024


@pytest.mark.parametrize("name", CARDS)
def test_the_link_moves_what_its_generation_and_width_allow(name: str) -> None:
    profile = read_profile(name)
    gigatransfers = {3: 8, 4: 16, 5: 32}[figure(profile, "pcie_generation")]
    megabytes = gigatransfers * 1000 * figure(profile, "pcie_width") / 8 * 128 / 130
    assert figure(profile, "host_link_mb_per_s") == pytest.approx(megabytes, rel=0.001)


@pytest.mark.parametrize("name", CARDS)
def test_single_precision_lanes_are_those_of_the_compute_capability(name: str) -> None:
    profile = read_profile(name)
    narrow = profile.compute_capability in {(6, 0), (7, 0), (7, 5), (8, 0)}
    assert figure(profile, "fp32_lanes_per_multiprocessor") == (64 if narrow else 128)


@pytest.mark.parametrize("name", profile_names())
def test_power_and_temperature_are_in_order(name: str) -> None:
    profile = read_profile(name)
    idle, least, limit = (
        figure(profile, key) for key in ("power_idle_mw", "power_limit_min_mw", "power_limit_mw")
    )
    assert 0 < idle < least <= limit
    assert 70 < figure(profile, "slowdown_celsius") < figure(profile, "shutdown_celsius") < 110


@pytest.mark.parametrize("name", profile_names())
def test_what_the_driver_takes_is_whole_chunks_and_leaves_most_of_the_card(name: str) -> None:
    profile = read_profile(name)
    own = (profile.memory_reserved, profile.context_bytes, Bytes(figure(profile, "module_bytes")))
    assert [size % (2 * MIB) for size in own] == [0, 0, 0]
    assert min(own) > 0
    assert sum(own) < profile.memory / 10
    threads = profile.multiprocessors * figure(profile, "threads_per_multiprocessor")
    assert figure(profile, "local_threads") == threads
    assert threads * 1024 <= profile.context_bytes, "a context holds the default stack of every thread"


@pytest.mark.parametrize("name", profile_names())
def test_only_the_cards_with_mig_can_be_split_and_only_the_desks_card_has_fans(name: str) -> None:
    profile = read_profile(name)
    assert figure(profile, "mig_instances") == (7 if name in SPLIT_BY_MIG else 0)
    assert dict(profile.figures).get("fans", 0) == (2 if name == "RTX4090" else 0)
    assert figure(profile, "ecc") == (0 if name == "RTX4090" else 1)


@pytest.mark.parametrize("name", CARDS)
def test_pci_ids_are_nvidias_and_tell_the_cards_apart(name: str) -> None:
    ids = [figure(read_profile(other), "pci_device_id") for other in CARDS]
    mine = figure(read_profile(name), "pci_device_id")
    assert mine & 0xFFFF == 0x10DE
    assert ids.count(mine) == 1


def test_a_smaller_device_sets_local_memory_aside_for_fewer_threads() -> None:
    whole = read_profile("A100-80")
    small = whole.scaled(Bytes(whole.memory // 80))
    assert figure(small, "local_threads") == -(-figure(whole, "local_threads") // 80)
    assert figure(small, "threads_per_multiprocessor") == figure(whole, "threads_per_multiprocessor")
