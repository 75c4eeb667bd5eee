"""What a program in a container of a real engine sees of its share, and what it cannot do."""

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from tests.contract.tenancy import IMAGE, LEASE, LIBRARIES, OURS, THEIRS, HandMadeShare, Tenant, given_share

from aliquot.model import DeviceNode, Edits

pytestmark = pytest.mark.engine

SHARE = "/run/aliquot/share"
LIMITS = f"limits of {LEASE}"


def test_root_inside_reads_its_limits_and_cannot_change_them(tenant: Tenant) -> None:
    script = f"""
        cat {SHARE}/limits
        echo 999 > {SHARE}/limits || echo refused
        rm {SHARE}/limits || echo refused
        mount -o remount,rw {SHARE}/limits || echo refused
        umount {SHARE}/limits || echo refused
        cat {SHARE}/limits
    """
    assert tenant.shell(script).splitlines() == [LIMITS, *["refused"] * 4, LIMITS]
    assert Path(tenant.share.folder.limits).read_text() == f"{LIMITS}\n"


@pytest.mark.parametrize("uid", ["0", "12345"])
def test_any_uid_inside_writes_the_ledger(tenant: Tenant, uid: str) -> None:
    assert tenant.shell(f"echo {uid} > {SHARE}/ledger; id -u", "--user", uid) == f"{uid}\n"
    assert Path(tenant.share.folder.ledger).read_text() == f"{uid}\n"


def test_the_book_and_the_other_shares_and_devices_are_invisible(tenant: Tenant) -> None:
    seen = tenant.shell(
        f"ls /run/aliquot; ls {SHARE}; ls {SHARE}/driver/softgpu; ls -d {tenant.share.top}; true"
    )
    assert seen.split() == ["share", "driver", "ledger", "lib", "limits", "turns", OURS]
    assert THEIRS not in tenant.shell("cat /proc/self/mountinfo")


@pytest.mark.parametrize("folder", ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", f"{SHARE}/lib"])
def test_the_governor_lies_at_every_usual_name_of_the_driver(tenant: Tenant, folder: str) -> None:
    for soname in LIBRARIES[:2]:
        assert tenant.shell(f"cat {folder}/{soname}") == f"governor {soname}\n"


def test_the_driver_lies_where_only_the_governor_looks(tenant: Tenant) -> None:
    for soname in LIBRARIES:
        assert tenant.shell(f"cat {SHARE}/driver/{soname}") == f"softgpu {soname}\n"


def test_a_device_folder_is_readable_and_only_its_shared_files_writable(tenant: Tenant) -> None:
    device = f"{SHARE}/driver/softgpu/{OURS}"
    script = f"""
        cat {device}/device
        echo x > {device}/device || echo refused
        rm {device}/arena || echo refused
        touch {device}/new || echo refused
        for name in arena state log; do echo written > {device}/$name && cat {device}/$name; done
    """
    lines = tenant.shell(script, "--user", "12345").splitlines()
    assert lines == [f"uuid {OURS}", *["refused"] * 3, *["written"] * 3]
    assert tenant.shell(script).splitlines() == lines


def test_the_share_is_there_with_a_read_only_root_and_a_fresh_run_folder(tenant: Tenant) -> None:
    script = f"cat {SHARE}/limits /usr/lib64/libcuda.so.1"
    expected = f"{LIMITS}\ngovernor libcuda.so.1\n"
    assert tenant.shell(script, "--read-only") == expected
    assert tenant.shell(script, "--tmpfs", "/run") == expected


@pytest.mark.parametrize("option", ["--volume", "--mount"])
def test_the_users_own_mount_above_the_share_hides_nothing_of_it(
    tenant: Tenant, option: str, tmp_path: Path
) -> None:
    (tmp_path / "libcuda.so.1").write_text("a driver past the governor\n")
    (tmp_path / "other").write_text("the user's file\n")
    for place in ("/usr/lib64", "/run"):
        value = (
            f"{tmp_path}:{place}" if option == "--volume" else f"type=bind,source={tmp_path},target={place}"
        )
        seen = tenant.shell(f"cat {place}/other /usr/lib64/libcuda.so.1 {SHARE}/limits", option, value)
        assert seen == f"the user's file\ngovernor libcuda.so.1\n{LIMITS}\n"


def test_the_environment_says_the_lease_and_asks_nvidias_runtime_for_nothing(tenant: Tenant) -> None:
    lines = tenant.shell("env").splitlines()
    assert {f"ALIQUOT_LEASE={LEASE}", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "NVIDIA_VISIBLE_DEVICES=void"} <= set(
        lines
    )


def test_the_programs_exit_code_and_output_and_input_pass_through(tenant: Tenant) -> None:
    done = tenant.run("--interactive", IMAGE, "sh", "-c", "cat; echo oops >&2; exit 41", stdin="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (41, "hello\n", "oops\n")


def test_a_signal_to_the_client_reaches_the_program(tenant: Tenant) -> None:
    script = "trap 'exit 43' TERM; echo ready; while true; do sleep 0.05; done"
    line = tenant.line("--rm", IMAGE, "sh", "-c", script)
    with subprocess.Popen(line, env=tenant.setup.environ, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        client.send_signal(signal.SIGTERM)
        assert client.wait(timeout=30) == 43


def test_a_terminal_stays_a_terminal(tenant: Tenant) -> None:
    ours, theirs = pty.openpty()
    try:
        line = tenant.line("--rm", "-it", IMAGE, "tty")
        done = subprocess.run(
            line, env=tenant.setup.environ, stdin=theirs, stdout=theirs, stderr=theirs, timeout=60
        )
        assert done.returncode == 0
        assert b"/dev/pts/" in os.read(ours, 1000)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_missing_file_of_the_share_keeps_a_container_from_starting(tenant: Tenant) -> None:
    """As after a reboot, which empties /run: nothing may start without its limits."""
    setup = tenant.setup
    created = subprocess.run(
        tenant.line("--name", "early", IMAGE, "true", verb="create"), env=setup.environ, capture_output=True
    )
    assert created.returncode == 0, created.stderr
    try:
        assert setup.run("start", "--attach", "early").returncode == 0
        Path(tenant.share.folder.limits).unlink()
        refused = setup.run("start", "--attach", "early")
        assert refused.returncode != 0
        assert "no such file" in refused.stderr or "does not exist" in refused.stderr
        assert not Path(tenant.share.folder.limits).exists(), "the engine made a folder in its place"
    finally:
        setup.run("rm", "--force", "early")


def test_a_removed_cdi_specification_keeps_a_container_from_starting(tenant: Tenant) -> None:
    if not tenant.by_cdi:
        pytest.skip("only where the share comes by CDI")
    context = given_share(tenant.setup, tenant.share, tenant.edits, by_cdi=True)
    with context:
        line = tenant.line("--name", "gone", IMAGE, "true", verb="create")
        created = subprocess.run(line, env=tenant.setup.environ, capture_output=True, text=True)
        assert created.returncode == 0, created.stderr
    try:
        refused = tenant.setup.run("start", "--attach", "gone")
        assert refused.returncode != 0
        assert f"aliquot.dev/share={LEASE}" in refused.stderr
    finally:
        tenant.setup.run("rm", "--force", "gone")


def test_a_device_node_under_another_name_gets_in(tenant: Tenant, share: HandMadeShare) -> None:
    edits = Edits(device_nodes=(DeviceNode("/dev/nvidia7", "/dev/null"),))
    with given_share(tenant.setup, share, edits, by_cdi=tenant.by_cdi) as plain:
        assert plain.shell("test -c /dev/nvidia7 && echo x > /dev/nvidia7 && echo there") == "there\n"


def test_a_whole_lease_has_the_drivers_own_files_and_no_governor(
    tenant: Tenant, share: HandMadeShare
) -> None:
    with given_share(tenant.setup, share, share.edits(whole=True), by_cdi=tenant.by_cdi) as whole:
        script = "cat /usr/lib/x86_64-linux-gnu/libcuda.so.1; ls /usr/lib/x86_64-linux-gnu/softgpu; ls /run"
        lines = whole.shell(script).split("\n")
        assert lines[:2] == ["softgpu libcuda.so.1", OURS]
        assert "aliquot" not in lines


def test_a_share_written_an_instant_ago_is_found_every_time(tenant: Tenant, share: HandMadeShare) -> None:
    """Docker watches its CDI folders: a file that it has not noticed yet must not lose the start."""
    if not tenant.by_cdi:
        pytest.skip("only where the share comes by CDI")
    for _ in range(5):
        with given_share(tenant.setup, share, share.edits(), by_cdi=True) as fresh:
            assert fresh.run(IMAGE, "true").returncode == 0
