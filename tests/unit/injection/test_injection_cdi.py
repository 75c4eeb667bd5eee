"""A lease's CDI specification, and its file."""

import json
import os
from pathlib import Path

import pytest

from aliquot.injection import (
    ShareFolder,
    cdi_spec,
    listed_cdi_specs,
    remove_cdi_spec,
    spec_path,
    writable_cdi_folder,
    write_cdi_spec,
)
from aliquot.model import AliquotError, DeviceNode, Edits, Hook, LeaseId, Mount, Reason

LEASE = LeaseId("abcde")
FULL = Edits(
    env=(("ALIQUOT_LEASE", "abcde"),),
    device_nodes=(DeviceNode("/dev/nvidia0", "/dev/nvidia0"),),
    mounts=(Mount("/s/limits", "/t/limits"), Mount("/s/ledger", "/t/ledger", read_only=False)),
    hooks=(Hook("createContainer", "/usr/bin/hook", ("hook", "x"), ("A=b",)),),
)


def test_a_specification_says_everything_in_the_lowest_version() -> None:
    assert cdi_spec(FULL, LEASE) == {
        "cdiVersion": "0.3.0",
        "kind": "aliquot.dev/share",
        "devices": [
            {
                "name": "abcde",
                "containerEdits": {
                    "env": ["ALIQUOT_LEASE=abcde"],
                    "deviceNodes": [{"path": "/dev/nvidia0"}],
                    "mounts": [
                        {
                            "hostPath": "/s/limits",
                            "containerPath": "/t/limits",
                            "options": ["ro", "nosuid", "nodev", "bind"],
                        },
                        {
                            "hostPath": "/s/ledger",
                            "containerPath": "/t/ledger",
                            "options": ["rw", "nosuid", "nodev", "bind"],
                        },
                    ],
                    "hooks": [
                        {
                            "hookName": "createContainer",
                            "path": "/usr/bin/hook",
                            "args": ["hook", "x"],
                            "env": ["A=b"],
                        }
                    ],
                },
            }
        ],
    }


def test_a_device_node_under_another_name_needs_a_newer_version() -> None:
    spec = cdi_spec(Edits(device_nodes=(DeviceNode("/dev/nvidia0", "/dev/nvidia3"),)), LEASE)
    assert spec["cdiVersion"] == "0.5.0"
    assert spec["devices"][0]["containerEdits"] == {
        "deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/nvidia3"}]
    }


def test_a_specification_is_written_whole_readable_by_all_and_removed(tmp_path: Path) -> None:
    folder = ShareFolder(str(tmp_path / "shares/abcde"))
    place = tmp_path / "new" / "cdi"
    path = write_cdi_spec(FULL, LEASE, folder=folder, cdi_folder=str(place))
    assert path == spec_path(str(place), folder, LEASE)
    assert json.loads(path.read_text()) == cdi_spec(FULL, LEASE)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(place) == [path.name]  # noqa: PTH208
    assert listed_cdi_specs(str(place), folder=folder) == (LEASE,)
    assert remove_cdi_spec(LEASE, folder=folder, cdi_folder=str(place)) is True
    assert remove_cdi_spec(LEASE, folder=folder, cdi_folder=str(place)) is False
    assert listed_cdi_specs(str(place), folder=folder) == ()


def test_specifications_of_another_book_and_of_others_are_left_alone(tmp_path: Path) -> None:
    ours, theirs = ShareFolder("/run/aliquot/shares/abcde"), ShareFolder("/tmp/else/shares/abcde")
    for folder in (ours, theirs):
        write_cdi_spec(FULL, LEASE, folder=folder, cdi_folder=str(tmp_path))
    (tmp_path / "nvidia.yaml").write_text("")
    assert listed_cdi_specs(str(tmp_path), folder=ours) == (LEASE,)
    remove_cdi_spec(LEASE, folder=ours, cdi_folder=str(tmp_path))
    assert listed_cdi_specs(str(tmp_path), folder=theirs) == (LEASE,)
    assert (tmp_path / "nvidia.yaml").exists()


def test_what_a_killed_writer_left_is_swept_and_never_read_by_an_engine(tmp_path: Path) -> None:
    folder = ShareFolder("/run/aliquot/shares/abcde")
    half = tmp_path / f".{spec_path('', folder, LEASE).stem}.x1y2.tmp"
    half.write_text("{")
    assert half.suffix not in (".json", ".yaml")
    assert listed_cdi_specs(str(tmp_path), folder=folder) == ()
    assert not half.exists()


def test_a_folder_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AliquotError, match="cannot write") as raised:
        write_cdi_spec(FULL, LEASE, folder=ShareFolder("/s/x"), cdi_folder=str(tmp_path / "file" / "cdi"))
    assert raised.value.reason is Reason.NO_CDI


def test_a_failed_rename_leaves_no_temporary_file(tmp_path: Path) -> None:
    folder = ShareFolder("/s/x")
    spec_path(str(tmp_path), folder, LEASE).mkdir()
    with pytest.raises(AliquotError, match="cannot write"):
        write_cdi_spec(FULL, LEASE, folder=folder, cdi_folder=str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 1


def test_the_last_folder_that_can_be_written_is_chosen(tmp_path: Path) -> None:
    static, dynamic = tmp_path / "etc", tmp_path / "run" / "cdi"
    static.mkdir()
    (tmp_path / "run").mkdir()
    assert writable_cdi_folder([str(static), str(dynamic)]) == str(dynamic)
    (tmp_path / "run").rmdir()
    (tmp_path / "run").write_text("no folder")
    assert writable_cdi_folder([str(static), str(dynamic)]) == str(static)
    assert writable_cdi_folder([]) is None


def test_a_folder_of_roots_is_not_writable_for_another_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        assert writable_cdi_folder(["/etc/cdi"]) is None
        return
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        os._exit(0 if writable_cdi_folder([str(tmp_path / "cdi")]) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
