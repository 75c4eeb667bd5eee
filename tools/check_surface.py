"""Refuse a header whose functions are not all classified in native/cuda.

    tools/check_surface.py INCLUDE_FOLDER     all of its CUDA and NVML headers (`make check-surface HEADER=…`)
    tools/check_surface.py HEADER             one of them, such as a cuda.h of tomorrow, by its names alone

Prints one line for each symbol that the headers have and the table lacks or leaves
unclassified, that the table refuses without a reason, or whose version is not known. Exit 1
when there is one: a function that nobody looked at might hand out memory past a share.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from generate_surface import (
    CUDA_FACES,
    CUDA_TABLE,
    NVML_FACES,
    NVML_TABLE,
    Symbol,
    cuda_symbols,
    nvml_symbols,
    preprocessed,
    prototypes,
    read_table,
)

CLASSES = {"pass", "account", "limit", "virtualise", "refuse"}


def faults(symbols: list[Symbol], table: Mapping[str, Mapping[str, str]]) -> list[str]:
    found = []
    for symbol in symbols:
        row = table.get(symbol.symbol)
        if row is None:
            found.append(f"{symbol.symbol}: in the header, not in the table")
        elif row["class"] not in CLASSES:
            found.append(f"{symbol.symbol}: class {row['class']!r}, expected one of {sorted(CLASSES)}")
        elif row["class"] != "pass" and row["why"] == "-":
            found.append(f"{symbol.symbol}: class {row['class']} without a reason")
        elif ";" in row["why"]:
            found.append(f"{symbol.symbol}: a semicolon in the reason would end CMake's reading of the row")
        elif row["parameters"] != symbol.parameters:
            found.append(f"{symbol.symbol}: parameters changed to ({symbol.parameters})")
        if symbol.version == 0:
            found.append(f"{symbol.symbol}: no version known; name it in generate_surface.UNDATED")
    return found


def header_faults(header: Path) -> list[str]:
    """By names and parameters: when each appeared is in other headers."""
    nvml = header.name.startswith("nvml")
    table = read_table(NVML_TABLE if nvml else CUDA_TABLE)
    named = prototypes(preprocessed(header, NVML_FACES if nvml else CUDA_FACES))
    if not named:
        return [f"{header}: not a header of CUDA or NVML, no function is declared in it"]
    return faults(
        [Symbol(name, name, 1, "-", parameters) for name, parameters in sorted(named.items())], table
    )


def folder_faults(folder: Path) -> list[str]:
    found = faults(cuda_symbols(folder), read_table(CUDA_TABLE))
    table = read_table(NVML_TABLE)
    return found + faults(nvml_symbols(folder, table), table)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(sys.argv[1])
    if not path.exists():
        print(f"{path}: no such header or folder of headers", file=sys.stderr)
        return 2
    found = folder_faults(path) if path.is_dir() else header_faults(path)
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} to decide on: write class and why into native/cuda/*.tsv", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
