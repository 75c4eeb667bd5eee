"""The real ``aliquot`` as a process, on a machine of its own: a state folder under tmp_path."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Aliquot = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def one_t4(typed: Aliquot) -> str:
    """The UUID of the machine's only GPU."""
    made = typed("softgpu", "create", "T4", "-q")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_machine_without_a_gpu_says_so_and_lists_nothing(typed: Aliquot) -> None:
    done = typed("gpus", "-l", "vendor=software")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(typed("softgpu", "list", "-o", "json").stdout)["items"] == []


def test_a_software_gpu_is_found_in_every_shell_until_removed(aliquot: Aliquot, one_t4: str) -> None:
    (item,) = json.loads(aliquot("gpus", "-l", "vendor=software", "-o", "json").stdout)["items"]
    assert item["uuid"] == one_t4
    assert item["freeMemoryBytes"] == item["capacityBytes"]
    assert item["leasedComputeThousandths"] == 0
    assert aliquot("show", one_t4[:12]).returncode == 0
    assert aliquot("softgpu", "remove", one_t4[:12]).returncode == 0
    assert aliquot("softgpu", "list", "-q").stdout == ""


def test_a_list_of_software_gpus_shows_what_they_were_told_to_do_wrong(aliquot: Aliquot, one_t4: str) -> None:
    def listed() -> tuple[list[str], str]:
        (item,) = json.loads(aliquot("softgpu", "list", "-o", "json").stdout)["items"]
        header, row = aliquot("softgpu", "list", "-o", "wide").stdout.splitlines()
        assert header.split()[-1] == "FAILURES"
        return item["failures"], row.split()[-1]

    assert listed() == ([], "none")
    assert aliquot("softgpu", "fail", one_t4, "xid=62,slow=2").returncode == 0
    assert listed() == (["xid=62", "slow=2"], "xid=62,slow=2")
    (gpu,) = json.loads(aliquot("gpus", "-l", "vendor=software", "-o", "json").stdout)["items"]
    assert (gpu["health"], gpu["healthWhy"]) == ("unhealthy", "XID 62 told by aliquot softgpu fail")
    assert "failures" not in gpu
    assert aliquot("softgpu", "list", "--where", "failures=none", "-q").stdout == ""
    assert aliquot("softgpu", "fail", one_t4, "--clear").returncode == 0
    assert listed() == ([], "none")


def test_a_set_is_made_listed_used_and_removed_by_its_name(
    aliquot: Aliquot, typed: Aliquot, one_t4: str
) -> None:
    made = aliquot("softgpu", "create", "2xtiny", "T4", "--name", "lab", "-q").stdout.split()
    assert len(made) == 3
    assert aliquot("softgpu", "list", "lab", "-q").stdout.split() == made
    assert aliquot("softgpu", "list", "--where", "set=lab", "-q").stdout.split() == made
    assert aliquot("gpus", "-l", "set=lab", "-q").stdout.split() == made
    sets = [item["set"] for item in json.loads(aliquot("softgpu", "list", "-o", "json").stdout)["items"]]
    assert sorted(sets, key=str) == [None, "lab", "lab", "lab"]
    exported = json.loads(aliquot("softgpu", "env", "lab", "-o", "json").stdout)["env"]
    assert exported["CUDA_VISIBLE_DEVICES"].split(",") == made
    assert "CUDA_VISIBLE_DEVICES" not in json.loads(aliquot("softgpu", "env", "-o", "json").stdout)["env"]
    assert typed("softgpu", "env", "nope").stdout == "false\n"  # `eval` of it fails, and the script with it

    again = typed("softgpu", "create", "tiny", "--name", "lab")
    assert again.returncode == 2
    assert "there is a set 'lab' already" in again.stderr
    assert typed("softgpu", "list", "no-such-set").returncode == 3
    assert aliquot("plan", "lab:1/4").returncode == 0
    lease = aliquot("lease", "--gpu", "lab:1/4", "-o", "name").stdout.strip()
    kept = typed("softgpu", "remove", "lab", one_t4)
    assert kept.returncode == 1
    assert f"lease {lease} holds a share of " in kept.stderr
    assert "nothing was removed" in kept.stderr
    assert sorted(aliquot("softgpu", "list", "-q").stdout.split()) == sorted([one_t4, *made])
    assert aliquot("release", lease).returncode == 0
    assert aliquot("softgpu", "remove", "lab").returncode == 0
    assert aliquot("softgpu", "list", "-q").stdout.split() == [one_t4]
    assert typed("softgpu", "remove", "lab").returncode == 3


def test_a_list_of_software_gpus_shows_the_time_of_those_that_have_another(
    typed: Aliquot, one_t4: str
) -> None:
    def shown(*words: str) -> list[str]:
        return typed("softgpu", "list", *words).stdout.splitlines()[0].split()

    assert not {"TIME", "SLICE"} & set(shown())
    assert {"TIME", "SLICE"} <= set(shown("-o", "wide"))
    assert typed("softgpu", "create", "tiny", "--time", "scaled=2.5").returncode == 0
    assert shown()[-1] == "TIME"
    assert typed("softgpu", "create", "tiny", "--time", "virtual", "--slice", "500us").returncode == 0
    assert shown()[-2:] == ["TIME", "SLICE"]
    items = json.loads(typed("softgpu", "list", "-o", "json").stdout)["items"]
    assert [(item["time"], item["slice"]) for item in items] == [
        ("real", "2ms"),
        ("scaled=2.5", "2ms"),
        ("virtual", "500us"),
    ]
    assert typed("softgpu", "list", "--where", "time=real", "-q").stdout.strip() == one_t4


def test_one_wrong_profile_of_several_makes_none(typed: Aliquot) -> None:
    assert typed("softgpu", "create", "2xtiny", "T9").returncode == 2
    assert json.loads(typed("softgpu", "list", "-o", "json").stdout)["items"] == []


def test_a_lease_is_listed_shown_and_given_back(aliquot: Aliquot, one_t4: str) -> None:
    lease = aliquot("lease", "--gpu", "T4:1/4", "--for", "2h", "--name", "train", "-o", "name").stdout.strip()
    assert aliquot("leases", "-q").stdout.split() == [lease]
    (item,) = json.loads(aliquot("leases", "-o", "json", "--where", "size='T4:25%'").stdout)["items"]
    assert (item["name"], item["state"], item["holderDetail"]) == ("train", "held", {"kind": "nobody"})
    assert [share["gpu"] for share in item["shares"]] == [one_t4]

    shown = aliquot("show", "train")
    assert "25% fair: guaranteed, idle time is given away" in shown.stdout
    assert "peak" in shown.stdout
    document = json.loads(aliquot("show", lease, "-o", "json").stdout)
    assert document["id"] == lease
    assert document["story"]
    assert [usage["gpu"] for usage in document["usage"]] == [one_t4]

    assert aliquot("release", "train").returncode == 0
    assert aliquot("leases", "-q").stdout == ""
    assert aliquot("leases", "--ended", "-q").stdout.split() == [lease]
    assert aliquot("release", lease).returncode == 3


def test_releasing_goes_on_after_one_that_is_not_there(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    ids = [typed("lease", "--gpu", "1GiB", "-o", "name").stdout.strip() for _ in range(2)]
    done = typed("release", ids[0], "nobody-has-this", ids[1])
    assert done.returncode == 3
    assert "nobody-has-this" in done.stderr
    assert [line.split()[1] for line in done.stderr.splitlines() if line.startswith("released")] == ids
    assert typed("leases", "-q").stdout == ""


def test_every_form_of_a_lease_is_printed_alone_or_together(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    everything = typed("lease", "--gpu", "1GiB").stdout
    for title in ("environment", "docker", "podman", "compose", "fair: guaranteed"):
        assert title in everything
    lease = everything.split()[0]
    assert typed("leases", "-q").stdout.split() == [lease]
    environment = typed("lease", "--gpu", "1GiB", "-o", "env").stdout
    shell = subprocess.run(
        ["sh", "-ec", f"{environment}\nenv"], capture_output=True, text=True, check=True, timeout=30
    )
    assert "LD_LIBRARY_PATH=" in shell.stdout
    compose = typed("lease", "--gpu", "1GiB", "-o", "compose").stdout
    assert set(yaml.safe_load(compose)) >= {"environment", "labels", "volumes"}
    options = typed("lease", "--gpu", "1GiB", "-o", "docker").stdout
    assert len(options.splitlines()) == 1
    words = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {options.strip()} IMAGE"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert words[-1] == "IMAGE"
    assert set(words[:-1:2]) <= {"--env", "--mount", "--label", "--device", "--volume", "-e", "-v"}


def test_run_says_its_share_and_passes_the_childs_code(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    done = aliquot("run", "--gpu", "1/4", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.returncode, done.stdout) == (42, "out\n")
    first, *rest = done.stderr.splitlines()
    assert first.startswith("lease ")
    assert "25%" in first
    assert "advisory" in first
    assert "compute advisory (fair)" in first
    assert rest == ["err"]
    assert aliquot("leases", "-q").stdout == ""


def test_a_forgotten_double_dash_is_understood(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    done = aliquot("run", "-q", "--gpu", "1/4", "printf", "%s", "-o", "--help")
    assert (done.returncode, done.stdout, done.stderr) == (0, "-o--help", "")


def test_run_uses_a_lease_and_leaves_it(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    lease = aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    assert aliquot("run", "--lease", lease, "--", "true").returncode == 0
    assert aliquot("leases", "-q").stdout.split() == [lease]


def test_a_command_that_is_not_there_is_127(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    done = aliquot("run", "-q", "--gpu", "1GiB", "--", "/nowhere/at/all")
    assert done.returncode == 127
    assert "Traceback" not in done.stderr


def test_the_second_sixty_percent_is_refused_with_who_holds_what(
    aliquot: Aliquot, typed: Aliquot, one_t4: str
) -> None:
    assert one_t4
    lease = typed("lease", "--gpu", "60%", "-o", "name").stdout.strip()
    refused = aliquot("run", "--gpu", "60%", "--", "true")
    assert refused.returncode == 4
    assert "[no-room]" in refused.stderr.splitlines()[0]
    assert lease in refused.stderr
    assert "  try   aliquot " in refused.stderr

    why = typed("why", "60%")
    assert why.returncode == 4
    assert lease in why.stdout
    document = json.loads(typed("why", "60%", "-o", "json").stdout)
    assert document["fits"] is False
    assert [holder["id"] for holder in document["holders"]] == [lease]
    assert document["considered"][0]["shortComputeThousandths"] == 200


def test_what_never_fits_is_5_everywhere(aliquot: Aliquot, typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    for line in ("why 500GiB", "plan 500GiB", "lease --gpu 500GiB", "run --gpu 500GiB -- true"):
        done = (aliquot if line.startswith("run") else typed)(*line.split())
        assert done.returncode == 5, line
        assert "500GiB" in done.stdout + done.stderr


def test_without_any_gpu_run_names_the_software_gpu(aliquot: Aliquot) -> None:
    if json.loads(aliquot("gpus", "-o", "json").stdout)["items"]:
        pytest.skip("this machine has a GPU")
    done = aliquot("run", "--gpu", "1GiB", "--", "true")
    assert done.returncode == 5
    assert "[no-gpu]" in done.stderr
    assert "aliquot softgpu create T4" in done.stderr


def test_a_plan_is_a_file_that_is_read_back(
    aliquot: Aliquot, typed: Aliquot, one_t4: str, tmp_path: Path
) -> None:
    assert one_t4
    file = tmp_path / "ask.yaml"
    file.write_text(typed("plan", " 2 x T4 : 0.5GiB @ 1/8, 512MiB ", "--policy", "cap", "-o", "yaml").stdout)
    normal = typed("plan", "-f", str(file), "-o", "name").stdout.strip()
    assert normal == "2xT4:512MiB@12.5%,512MiB"
    assert yaml.safe_load(file.read_text())["spec"]["policy"] == "cap"
    from_stdin = aliquot("plan", "-f", "-", "-o", "yaml", stdin=file.read_text())
    assert from_stdin.stdout == file.read_text()
    assert "guaranteed and never more" in typed("plan", "-f", str(file)).stdout


def test_usage_adds_up_to_the_card(aliquot: Aliquot, typed: Aliquot, one_t4: str) -> None:
    assert aliquot("run", "-q", "--gpu", "1/4", "--", "true").returncode == 0
    for by in ("lease", "command", "user"):
        report = json.loads(typed("usage", "--by", by, "-o", "json").stdout)
        assert (report["kind"], len(report["items"])) == ("UsageList", 1)
        card = next(card for card in report["coverage"] if card["gpu"] == one_t4)
        leased = card["leasedByteSeconds"] + card["unleasedByteSeconds"]
        assert leased == pytest.approx(card["cardByteSeconds"], rel=1e-12)
        assert card["leasedComputeSeconds"] > 0
    assert typed("usage", "--since", "1h").returncode == 0


def test_doctor_gives_a_line_a_check_and_7_for_a_fault(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    done = typed("doctor", "-o", "json")
    items = json.loads(done.stdout)["items"]
    failed = [item["name"] for item in items if item["ok"] is False]
    assert done.returncode == (7 if failed else 0)
    assert {"governor", "book"} <= {item["name"] for item in items}


def test_what_a_software_gpu_did_is_a_document_like_all_others(typed: Aliquot, one_t4: str) -> None:
    found = json.loads(typed("softgpu", "busy", one_t4, "-o", "json").stdout)
    assert (found["kind"], found["gpu"], found["time"]) == ("Busy", one_t4, "real")
    assert (found["computeNs"], found["accounts"], found["preemptions"]) == (0, [], 0)
    assert (found["sliceNs"], found["switchingNs"]) == (2_000_000, None)
    assert not [key for key in found if "_" in key]


def test_doctor_names_what_makes_a_lost_software_gpu_well(typed: Aliquot, one_t4: str) -> None:
    assert typed("softgpu", "fail", one_t4, "lost").returncode == 0
    done = typed("doctor", "-o", "json")
    (lost,) = (item for item in json.loads(done.stdout)["items"] if "lost" in str(item))
    assert (done.returncode, lost["ok"]) == (7, False)
    assert typed(*lost["fix"].split()[1:]).returncode == 0
    assert " lost" not in typed("doctor").stdout


def test_an_unwritable_state_folder_is_an_error_with_a_path(aliquot: Aliquot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (
        ["gpus"],
        ["leases"],
        ["lease", "--gpu", "1GiB"],
        ["run", "--gpu", "1GiB", "--", "true"],
    ):
        done = aliquot(*arguments, env={"ALIQUOT_STATE_DIR": str(tmp_path / "file" / "state")})
        assert "aliquot failed" not in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_output_is_ascii_in_the_c_locale(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    env = {"LC_ALL": "C"}
    for arguments in (["gpus"], ["gpus", "-o", "wide"], ["why", "500GiB"], ["doctor"], ["--help"]):
        done = aliquot(*arguments, env=env)
        assert (done.stdout + done.stderr).isascii(), arguments


@pytest.mark.slow
def test_completion_offers_commands_options_and_leases(aliquot: Aliquot, one_t4: str) -> None:
    assert one_t4
    lease = aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()

    def completed(words: str, position: int) -> str:
        return aliquot(
            env={"_ALIQUOT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        ).stdout

    assert "gpus" in completed("aliquot g", 1)
    assert "--isolation" in completed("aliquot run --iso", 2)
    assert lease in completed(f"aliquot release {lease[0]}", 2)
    assert lease in completed("aliquot run --lease ", 3)


def test_leases_of_a_time_are_live_and_ended_the_newest_first(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    first, second, third = (
        typed("lease", "--gpu", "1GiB", "--name", name, "-o", "name").stdout.strip() for name in "abc"
    )
    for lease in (second, first):
        assert typed("release", lease).returncode == 0
    for words in (("--since", "1h"), ("--all",)):
        assert typed("leases", *words, "-q").stdout.split() == [third, second, first]
    assert typed("leases", "--ended", "--since", "1h", "-q").stdout.split() == [first, second]
    assert typed("leases", "-q").stdout.split() == [third]
    header, *_ = typed("leases", "--ended").stdout.splitlines()
    assert header.split()[-2:] == ["ENDED", "WHY"]


def test_usage_of_one_user_by_lease_and_by_user(typed: Aliquot, one_t4: str) -> None:
    lease = typed("lease", "--gpu", "1GiB", "--name", "night", "-o", "name").stdout.strip()
    (item,) = json.loads(typed("leases", "-o", "json").stdout)["items"]
    mine = f"user={item['user']}"
    assert typed("usage", "-l", mine, "-q").stdout.split() == [lease]
    assert typed("usage", "-l", "user=nobody-here", "-q").stdout == ""
    assert typed("usage", "--by", "user", "-l", mine, "-q").stdout.split() == [item["user"]]
    table = typed("usage").stdout
    assert table.split()[:3] == ["LEASE", "NAME", "USER"]
    assert one_t4[:12] in table
    assert typed("usage", "--by", "command", "-l", mine).returncode == 2


def test_a_plan_tells_the_isolation_of_a_process_and_of_a_container(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    answers = [
        json.loads(typed("plan", size, *words, "-o", "json").stdout)["isolation"]
        for size in ("1/4", "T4")
        for words in ((), ("--container",))
    ]
    assert answers == ["advisory", "soft", "advisory", "firm"]


def test_doctor_says_so_where_it_has_nothing_to_show(typed: Aliquot, one_t4: str) -> None:
    assert one_t4
    done = typed("doctor", "--where", "name=nothing")
    assert done.stdout == ""
    assert done.stderr.startswith("none of ")
    assert len([line for line in done.stderr.splitlines() if line.startswith("none of ")]) == 1


@pytest.mark.usefixtures("one_t4")
def test_a_lease_that_lets_unknown_functions_through_says_so_wherever_it_is_shown(
    aliquot: Aliquot, typed: Aliquot
) -> None:
    lease = aliquot("lease", "--gpu", "T4:1/4", "--unknown", "pass", "-o", "name").stdout.strip()
    document = json.loads(aliquot("show", lease, "-o", "json").stdout)
    assert (document["unknown"], document["isolation"]) == ("pass", "advisory")
    assert "nobody counts" in document["isolationWhy"]
    assert document["story"][0]["detail"] == "for nobody; unknown functions pass"
    assert "reach the driver, uncounted" in aliquot("show", lease).stdout
    assert aliquot("release", lease).returncode == 0
    held = typed("lease", "--gpu", "T4:1/4", "--unknown", "pass", "--isolation", "soft")
    assert held.returncode == 5, "what nobody counts is not held"
