"""Write native/cuda/cuda.tsv and nvml.tsv from NVIDIA's headers.

    tools/generate_surface.py INCLUDE_FOLDER

INCLUDE_FOLDER holds cuda.h and nvml.h (the wheels nvidia-cuda-runtime and nvidia-nvml-dev have
them). Every exported function gets one row. What a person decided about a symbol (``class`` and
``why``) is kept from the present table; a symbol that is new gets the class ``unclassified``,
which tools/check_surface.py refuses until somebody has decided.

The headers are read through the C preprocessor, because one source line is up to three exported
names (``cuMemAlloc`` is ``cuMemAlloc_v2``, ``cuMemcpy`` is also ``cuMemcpy_ptds``), and only the
preprocessor knows which.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "native" / "cuda"
CUDA_TABLE = FOLDER / "cuda.tsv"
NVML_TABLE = FOLDER / "nvml.tsv"
COLUMNS = ("symbol", "base", "version", "per_thread", "class", "parameters", "why")
UNCLASSIFIED = "unclassified"

# The faces of cuda.h: plain, per-thread default stream, and every older version of each name.
CUDA_FACES = ((), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",), ("-D__CUDA_API_VERSION_INTERNAL",))
NVML_FACES = ((), ("-DNVML_NO_UNVERSIONED_FUNC_DEFS",))
CUDA_HEADERS = ("cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
# The interoperability headers include these, which the machine need not have. Empty ones do:
# the preprocessor asks for no types.
FOREIGN_HEADERS = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")
WINDOWS_ONLY = {"cuWGLGetDevice"}
TYPEDEF_HEADERS = (
    "cudaTypedefs.h",
    "cudaProfilerTypedefs.h",
    "cudaGLTypedefs.h",
    "cudaEGLTypedefs.h",
    "cudaVDPAUTypedefs.h",
)
# What no typedef header dates: the version each first appeared in, from NVIDIA's release notes.
UNDATED = {"cuGetProcAddress_v2_ptsz": 12000}
# What the header has as an inline function, and a driver as a symbol of its own for who asks
# cuGetProcAddress for the per-thread form of cuGetProcAddress: (symbol, symbol with its list).
INLINE = {"cuGetProcAddress_v2_ptsz": "cuGetProcAddress_v2"}
# Exported and used by nvidia-smi, in no header.
UNLISTED_NVML = {"nvmlInternalGetExportTable": "const void **exportTable, const void *exportTableId"}

PROTOTYPE = re.compile(
    r"\b(CUresult|nvmlReturn_t|const char ?\*) *(?:CUDAAPI +)?(cu[A-Z]\w*|nvml[A-Z]\w*) *\(([^()]*)\) *;"
)
TYPEDEF = re.compile(r"\*PFN_(cu\w+?)_v(\d{4,5})(_pt[sd][sz])?\) *\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Symbol:
    symbol: str
    base: str
    version: int
    per_thread: str
    parameters: str


def preprocessed(header: Path, faces: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """The header as the compiler sees it, once per face, without line breaks."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FOREIGN_HEADERS:
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).touch()
        for face in faces:
            command = ["cc", "-E", "-P", *face, f"-I{header.parent}", f"-I{folder}", str(header)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            yield " ".join(text.split())


def prototypes(texts: Iterable[str]) -> dict[str, str]:
    """symbol → C parameter list."""
    found: dict[str, str] = {}
    for text in texts:
        for _, symbol, parameters in PROTOTYPE.findall(text):
            found.setdefault(symbol, " ".join(parameters.split()))
    return found


def split_symbol(symbol: str) -> tuple[str, int, str]:
    """(base, number after _v or 1, per-thread suffix or ``-``)."""
    match = re.fullmatch(r"(\w+?)(?:_v(\d+))?(?:_(pt[sd][sz]))?", symbol)
    assert match is not None
    return match[1], int(match[2] or 1), match[3] or "-"


def typedef_versions(folder: Path) -> tuple[dict[str, list[int]], dict[tuple[str, int], int], dict[str, str]]:
    """From NVIDIA's own dating of each function pointer type.

    Returns (base → versions of the plain names, ascending;
             (base, plain version) → when its per-thread form appeared;
             base_vVERSION → parameters).
    """
    plain: dict[str, set[int]] = {}
    threaded: dict[str, set[int]] = {}
    parameters: dict[str, str] = {}
    for name in TYPEDEF_HEADERS:
        text = " ".join((folder / name).read_text().split())
        for base, version, per_thread, listed in TYPEDEF.findall(text):
            (threaded if per_thread else plain).setdefault(base, set()).add(int(version))
            parameters.setdefault(f"{base}_v{version}", listed)
    order = {base: sorted(versions) for base, versions in plain.items()}
    late: dict[tuple[str, int], int] = {}
    for base, versions in threaded.items():
        for version in versions:
            before = [known for known in order.get(base, []) if known <= version]
            late[base, max(before, default=version)] = version
    return order, late, parameters


def cuda_symbols(folder: Path) -> list[Symbol]:
    listed: dict[str, str] = {}
    for header in CUDA_HEADERS:
        listed |= prototypes(preprocessed(folder / header, CUDA_FACES))
    order, late, typed = typedef_versions(folder)
    for base, versions in order.items():
        if base.startswith("cuProfiler"):  # their header is in no wheel, their types are
            listed.setdefault(base, typed[f"{base}_v{versions[0]}"])
    listed |= {symbol: listed[like] for symbol, like in INLINE.items()}
    numbers: dict[str, set[int]] = {}
    for symbol in listed:
        base, number, _ = split_symbol(symbol)
        numbers.setdefault(base, set()).add(number)
    symbols = []
    for symbol in sorted(listed.keys() - WINDOWS_ONLY):
        base, number, per_thread = split_symbol(symbol)
        position = sorted(numbers[base]).index(number)
        version = UNDATED.get(symbol) or dated(position, len(numbers[base]), order.get(base, []))
        if per_thread != "-" and symbol not in UNDATED:
            version = max(version, late.get((base, version), 7000))
        symbols.append(Symbol(symbol, base, version, per_thread, listed[symbol]))
    return symbols


def dated(position: int, count: int, versions: list[int]) -> int:
    """The CUDA version in which a name appeared: the n-th name of a base has the n-th date.

    0 where NVIDIA's typedefs do not date it; check_surface.py refuses that.
    """
    if not versions:
        return 0
    if len(versions) == count or position == count - 1:
        return versions[position if len(versions) == count else -1]
    return versions[min(position, len(versions) - 1)]


def nvml_symbols(folder: Path, dated: Mapping[str, Mapping[str, str]]) -> list[Symbol]:
    """NVML's header dates nothing: the date in the table is kept, and what is new is of this toolkit."""
    listed = prototypes(preprocessed(folder / "nvml.h", NVML_FACES)) | UNLISTED_NVML
    toolkit = re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text())
    assert toolkit is not None, f"{folder}/cuda.h does not say which version it is of"
    symbols = []
    for name in sorted(listed):
        base, _, per_thread = split_symbol(name)
        version = int(dated[name]["version"] if name in dated else toolkit[1])
        symbols.append(Symbol(name, base, version, per_thread, listed[name]))
    return symbols


def read_table(path: Path) -> dict[str, dict[str, str]]:
    """symbol → its row; empty where the table does not exist yet."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    names = lines[0].split("\t")
    return {(row := dict(zip(names, line.split("\t"), strict=True)))["symbol"]: row for line in lines[1:]}


def table_text(symbols: list[Symbol], decided: Mapping[str, Mapping[str, str]]) -> str:
    """The table, with what was decided carried over. A symbol that left the header stays away."""
    lines = ["\t".join(COLUMNS)]
    for symbol in symbols:
        old = decided.get(symbol.symbol, {})
        row = (symbol.symbol, symbol.base, str(symbol.version), symbol.per_thread)
        lines.append(
            "\t".join((*row, old.get("class", UNCLASSIFIED), symbol.parameters, old.get("why", "-")))
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    nvml = nvml_symbols(folder, read_table(NVML_TABLE))
    for path, symbols in ((CUDA_TABLE, cuda_symbols(folder)), (NVML_TABLE, nvml)):
        path.write_text(table_text(symbols, read_table(path)))
        print(f"{path.name}: {len(symbols)} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
