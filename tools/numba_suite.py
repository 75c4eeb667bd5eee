"""numba-cuda's own test-suite on software GPUs, compared with tests/numba_suite/expected.tsv.

    python tools/numba_suite.py                whole; goes on where an earlier run of this build stopped
    python tools/numba_suite.py test_atomics   the files with that in their names
    python tools/numba_suite.py --again        whole, from the beginning
    python tools/numba_suite.py --update       write what was seen into the list
    python tools/numba_suite.py --figures      only print the list's figures, as docs/softgpu.md has them

Exit status 1 where anything differs from the list.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.numba_suite.expected import FILE, Expected, differences, figures, read, updated, write
from tests.numba_suite.running import ROOT, Suite


def client_python() -> Path:
    return Path(os.environ.get("ALIQUOT_NUMBA_PYTHON", ROOT / ".clients-numba" / "bin" / "python"))


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def table(rows: Iterable[Expected]) -> str:
    """In Markdown: what docs/softgpu.md has between its two marks."""
    lines = [
        "| area | passed, of all not skipped | passed, of those that launch a kernel | skipped |",
        "|---|---|---|---|",
    ]
    for row in figures(rows):
        name = f"**{row.area}**" if row.area == "all" else row.area
        launching = share(row.launching_passed, row.launching)
        lines.append(f"| {name} | {share(row.passed, row.of)} | {launching} | {row.skipped} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="parts of the names of test files")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    known = read() if FILE.exists() else {}
    if options.figures:
        print(table(known.values()))
        return 0
    suite = Suite(client_python(), ROOT / "build" / "numba-suite")
    if options.again:
        shutil.rmtree(suite.results_folder(), ignore_errors=True)
    files = [
        file for file in suite.files() if not options.names or any(name in file for name in options.names)
    ]
    results = suite.run(
        dict.fromkeys(files, ()), jobs=options.jobs, report=lambda line: print(line, flush=True)
    )
    whole = not options.names
    found = differences(known, results, whole=whole)
    if options.update:
        known = updated(known, results, whole=whole)
        write(known.values())
    print(*found, sep="\n")
    print(table(known.values()))
    print(
        f"{len(found)} differences from {FILE.relative_to(ROOT)}"
        + (", which now says so" if options.update else "")
    )
    return 1 if found and not options.update else 0


if __name__ == "__main__":
    sys.exit(main())
