"""``aliquot doctor``."""

from aliquot.cli.machines import this_machine
from aliquot.cli.options import list_options
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import command as declare
from aliquot.cli.views.checks import CHECKS


@declare(
    "doctor",
    examples=[
        ("aliquot doctor", "checks all, changes nothing"),
        ("aliquot doctor --where 'ok=no' -o json", "only what fails"),
    ],
)
@list_options(CHECKS)
def command(choice: Choice) -> int:
    """Exit code 7 where a check failed, whatever of them is shown."""
    from aliquot.cli.output.choices import chosen, show_list
    from aliquot.cli.output.failures import check_failed
    from aliquot.cli.output.streams import out, say, width
    from aliquot.cli.views.checks import check_lines, told

    with this_machine() as machine:
        checks = told(machine.checks())
    failed = [check for check in checks if check.ok is False]
    if choice.form == "table":
        kept = chosen(CHECKS, checks, choice, now=0)
        if kept:
            out("\n".join(check_lines(kept, width=width())))
        elif failed:
            say(f"none of {len(checks)} checks match")
        else:
            say(f"none of {len(checks)} checks match; none failed")
    else:
        show_list(CHECKS, checks, choice)
    if not failed:
        return 0
    names = ", ".join(check.name for check in failed)
    return check_failed(f"{len(failed)} of {len(checks)} checks failed: {names}")
