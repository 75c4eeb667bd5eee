"""Write the counted parts of docs/softgpu.md: `--check` only looks whether they are up to date.

What the driver's library defines itself is a strong symbol in it, what only answers NOT_SUPPORTED a weak
one, or behind a gate the stub itself (native/softgpu/generate_stubs.py), so the built library is the list.
The forms of PTX are those of the engine's table. The figures of numba-cuda's tests come from
tests/numba_suite/expected.tsv.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.numba_suite.expected import PASSED, read
from tests.numba_suite.running import ROOT

from numba_suite import table

BOOK = ROOT / "docs" / "softgpu.md"
LIBRARIES = ROOT / "src" / "aliquot" / "_native" / "softgpu"
ENGINE = ROOT / "native" / "softgpu" / "engine" / "code"
# The first that fits.
FAMILIES = {
    "devices, initialisation, errors, lookup": "Init|DriverGet|Get|Device|FlushGPU|Profiler|Logs",
    "contexts": "Ctx|GreenCtx|DevResource|DevSm",
    "modules, libraries, kernels, linking": "Module|Library|Kernel|Func|Link",
    "launches and occupancy": "Launch|Occupancy|Param",
    "arrays, textures, surfaces, tensor maps": (
        "Array|Mipmapped|Tex|Surf|TensorMap|Memcpy(?:[AHD]toA|Ato[HD])|MemMapArray"
    ),
    "memory and copies": "Mem|Pointer",
    "IPC, multicast, external memory": "Ipc|Multicast|Import|External|Destroy|Signal|Wait|Logical|Fabric",
    "streams and events": "Stream|Event|ThreadExchange",
    "graphs, user objects": "Graph(?!ics)|User",
    "OpenGL, EGL, VDPAU; checkpoints, core dumps": "",
}


def functions(library: str, prefix: str) -> dict[str, bool]:
    """Names without version and stream suffix, and whether any version of it is real."""
    symbols = subprocess.run(
        ["nm", "--defined-only", str(LIBRARIES / library)], capture_output=True, text=True, check=True
    ).stdout
    listed = {symbol: (address, binding) for address, binding, symbol in map(str.split, symbols.splitlines())}
    found: dict[str, bool] = {}
    for symbol, (_, binding) in listed.items():
        name = re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", symbol)
        if name.startswith(prefix) and binding in "TW":
            gated, stub = listed.get(f"sg_here_{symbol}"), listed.get(f"sg_stub_{symbol}")
            real = binding == "T" if gated is None else stub is None or gated[0] != stub[0]
            found[name] = found.get(name, False) or real
    return found


def driver_table() -> str:
    counts: dict[str, list[int]] = {family: [0, 0] for family in FAMILIES}
    missing: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name, real in functions("libcuda.so.1", "cu").items():
        family = next(f for f, pattern in FAMILIES.items() if re.match(f"cu(?:{pattern})", name))
        counts[family][0] += real
        counts[family][1] += 1
        if not real:
            missing[family].append(name)
    lines = ["| family | works | of | answers `CUDA_ERROR_NOT_SUPPORTED` |", "|---|---|---|---|"]
    for family, (works, of) in counts.items():
        names = sorted(missing[family])
        shown = ", ".join(f"`{name}`" for name in names[:8]) + (
            f" and {len(names) - 8} more" if len(names) > 8 else ""
        )
        lines.append(f"| {family} | {works} | {of} | {shown or '—'} |")
    all_works, all_of = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    nvml = functions("libnvidia-ml.so.1", "nvml")
    return "\n".join(
        [
            *lines,
            f"| **all** | **{all_works}** | **{all_of}** | |",
            "",
            f"NVML: {sum(nvml.values())} of {len(nvml)} functions.",
        ]
    )


def ptx_sentence() -> str:
    """The compiler expands the table as it does for the engine."""
    text = '#define FORM(opcode, words, ...) @ opcode @ words @\n#include "forms.def"\n'
    out = subprocess.run(
        ["cc", "-E", "-P", f"-I{ENGINE}", "-"], input=text, capture_output=True, text=True, check=True
    ).stdout
    opcodes = Counter(re.findall(r'@ ("\w+") @', out))
    return f"The engine's table has {opcodes.total()} forms of {len(opcodes)} opcodes."


def excluded() -> str:
    rows = [row for row in read().values() if row.outcome not in PASSED]
    lines = ["| test | outcome | why |", "|---|---|---|"]
    for row in sorted(rows, key=lambda row: (row.outcome, row.test)):
        reason = row.reason.replace("|", "\\|")
        lines.append(f"| `{row.test}` | {row.outcome} | {reason} |")
    return "\n".join(lines)


def written(book: str) -> str:
    parts = {
        "driver": driver_table(),
        "ptx": ptx_sentence(),
        "numba": table(read().values()),
        "excluded": excluded(),
    }
    for name, text in parts.items():
        begin, end = f"<!-- counted: {name} -->", "<!-- end -->"
        head, found, rest = book.partition(begin)
        if not found:
            raise SystemExit(f"{BOOK}: no place for the counted part {name}")
        book = f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}"
    return book


def main() -> int:
    before = BOOK.read_text()
    after = written(before)
    if "--check" in sys.argv:
        return int(before != after)
    BOOK.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
