"""Where a user's things lie, and whose folders are trusted."""

from pathlib import Path

import pytest

from aliquot.model import AliquotError, LeaseId, Reason
from aliquot.node.paths import make_folder, paths_of


def test_root_has_the_machines_folders() -> None:
    paths = paths_of({"HOME": "/root", "XDG_STATE_HOME": "/root/x"}, uid=0)
    assert (paths.state, paths.runtime) == (Path("/var/lib/aliquot"), Path("/run/aliquot"))
    assert paths.share(LeaseId("k3m9x")) == Path("/run/aliquot/shares/k3m9x")


def test_another_user_has_his_own() -> None:
    paths = paths_of({"HOME": "/home/ann"}, uid=4711)
    assert paths.state == Path("/home/ann/.local/state/aliquot")
    assert paths.runtime == Path("/tmp/aliquot-4711")


def test_xdg_is_followed_where_it_is_ours(tmp_path: Path) -> None:
    environ = {"HOME": "/home/ann", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": str(tmp_path)}
    assert paths_of(environ, uid=tmp_path.stat().st_uid or 1).state in (
        Path("/s/aliquot"),
        Path("/var/lib/aliquot"),
    )
    assert paths_of(environ, uid=4711).runtime == Path("/tmp/aliquot-4711")  # somebody else's


def test_the_overrides_win_for_everybody(tmp_path: Path) -> None:
    environ = {"ALIQUOT_STATE_DIR": str(tmp_path / "s"), "ALIQUOT_RUNTIME_DIR": str(tmp_path / "r")}
    for uid in (0, 4711):
        paths = paths_of(environ, uid=uid)
        assert (paths.state, paths.runtime) == (tmp_path / "s", tmp_path / "r")


def test_a_user_without_a_home_is_told_what_to_set() -> None:
    with pytest.raises(AliquotError) as caught:
        paths_of({}, uid=3_999_999)
    assert "ALIQUOT_STATE_DIR" in caught.value.next[0][0]


def test_a_folder_is_made_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b", 0o711)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o711
    make_folder(tmp_path / "a" / "b", 0o711)  # again


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    with pytest.raises(AliquotError) as caught:
        make_folder(loose, 0o711)
    assert caught.value.reason is Reason.FILES_UNWRITABLE


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(AliquotError, match="no link"):
        make_folder(tmp_path / "link", 0o711)


@pytest.mark.parametrize("name", ["a:b", "a;b", "$LIB", "a\nb"])
def test_a_runtime_folder_that_no_library_path_can_hold_is_refused(name: str) -> None:
    """The governor would not be found there, and the program would run without a limit."""
    for variable in ("ALIQUOT_RUNTIME_DIR",):
        with pytest.raises(AliquotError, match="library path"):
            paths_of({variable: f"/run/{name}", "HOME": "/root"}, uid=0)
