"""A share as options of an engine, and as text to paste: read back by what reads them."""

import csv
import subprocess
from collections.abc import Callable
from itertools import pairwise

import pytest
import yaml

from aliquot.injection import Engine, ShareFolder, cdi_flags, flags, forms, process_edits
from aliquot.model import AliquotError, DeviceNode, DriverFiles, Edits, Hook, Lease, LeaseId, Mount, Reason

MakeEngine = Callable[..., Engine]
LEASE = LeaseId("abcde")
EDITS = Edits(
    env=(("ALIQUOT_LEASE", "abcde"), ("NVIDIA_VISIBLE_DEVICES", "void")),
    device_nodes=(DeviceNode("/dev/nvidia0", "/dev/nvidia0"), DeviceNode("/dev/nvidia1", "/dev/nvidia4")),
    mounts=(Mount("/s/limits", "/t/limits"), Mount('/s/a, "b"', "/t/ledger", read_only=False)),
)


def test_plain_options_carry_everything_and_fail_closed_where_a_source_is_missing() -> None:
    words = flags(EDITS, lease_id=LEASE)
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert pairs[:2] == [("--env", "ALIQUOT_LEASE=abcde"), ("--env", "NVIDIA_VISIBLE_DEVICES=void")]
    assert pairs[2:4] == [("--device", "/dev/nvidia0"), ("--device", "/dev/nvidia4:/dev/nvidia1")]
    assert pairs[4] == ("--mount", "type=bind,source=/s/limits,target=/t/limits,readonly")
    assert pairs[-1] == ("--label", "aliquot.lease=abcde")
    assert "-v" not in words
    assert "--volume" not in words


def test_a_path_with_commas_and_quotes_reaches_the_engine_as_one_field() -> None:
    (value,) = [word for word in flags(EDITS, lease_id=LEASE) if "ledger" in word]
    assert next(csv.reader([value])) == ["type=bind", 'source=/s/a, "b"', "target=/t/ledger"]


def test_an_engine_under_selinux_is_told_to_let_the_files_in(engine: MakeEngine) -> None:
    confined = engine(selinux=True)
    for words in (flags(EDITS, lease_id=LEASE, engine=confined), cdi_flags(LEASE, engine=confined)):
        assert ("--security-opt", "label=disable") in pairwise(words)
    assert "--security-opt" not in flags(EDITS, lease_id=LEASE, engine=engine())


def test_cdi_needs_the_name_and_the_label_alone() -> None:
    assert cdi_flags(LEASE) == ("--device", "aliquot.dev/share=abcde", "--label", "aliquot.lease=abcde")


def test_a_hook_cannot_go_by_plain_options() -> None:
    with pytest.raises(AliquotError, match="only CDI") as raised:
        flags(Edits(hooks=(Hook("createContainer", "/x"),)), lease_id=LEASE)
    assert raised.value.reason is Reason.NO_CDI


@pytest.mark.parametrize("inherited", ["", "/opt/lib", None])
def test_the_shell_form_does_in_a_real_shell_what_the_process_form_does(
    lease: Callable[..., Lease], nvidia: DriverFiles, inherited: str | None
) -> None:
    process = process_edits(lease(), folder=ShareFolder("/s/it's $HOME"), driver=nvidia)
    text = forms(LEASE, process=process, container=EDITS, cdi=False).shell
    environ = {"PATH": "/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES": "all"}
    environ |= {} if inherited is None else {"LD_LIBRARY_PATH": inherited}
    script = text + 'echo "$LD_LIBRARY_PATH|$ALIQUOT_LEASE|${NVIDIA_VISIBLE_DEVICES-unset}"'
    said = subprocess.run(
        ["sh", "-eu", "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    rest = f":{inherited}" if inherited else ""
    assert said.stdout == f"/s/it's $HOME/lib{rest}|abcde|unset\n"


def test_the_option_forms_continue_a_line_that_a_shell_reads_back_unchanged() -> None:
    text = forms(LEASE, process=Edits(), container=EDITS, cdi=False).docker
    assert all(line.endswith(" \\") for line in text.splitlines())
    script = f'printf "%s\\n" {text} end'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [*flags(EDITS, lease_id=LEASE), "end"]
    podman = forms(LEASE, process=Edits(), container=EDITS, cdi=True).podman
    assert podman == "--device aliquot.dev/share=abcde \\\n--label aliquot.lease=abcde \\\n"


def test_the_compose_form_is_yaml_below_a_service_and_makes_no_folder() -> None:
    text = forms(LEASE, process=Edits(), container=EDITS, cdi=False).compose
    service = yaml.safe_load("services:\n  app:\n" + text)["services"]["app"]
    assert service["labels"] == {"aliquot.lease": "abcde"}
    assert service["environment"] == dict(EDITS.env)
    assert service["devices"] == ["/dev/nvidia0:/dev/nvidia0", "/dev/nvidia4:/dev/nvidia1"]
    assert service["volumes"][1] == {
        "type": "bind",
        "source": '/s/a, "b"',
        "target": "/t/ledger",
        "read_only": False,
        "bind": {"create_host_path": False},
    }
    assert service["volumes"][0]["read_only"] is True
