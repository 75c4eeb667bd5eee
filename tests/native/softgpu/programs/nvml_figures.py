"""What NVIDIA's own Python binding reads of a card's figures, models and absences: one JSON object, each
answer under its function's name, or the number of the error."""

import json
import sys

import pynvml as n

n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(0)
other = n.nvmlDeviceGetHandleByIndex(n.nvmlDeviceGetCount() - 1)


def plain(value):
    if isinstance(value, n.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, n.Array):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def ask(name, *arguments):
    try:
        if name == "nvmlDeviceGetPciInfoExt":  # the binding fills a struct of the caller's
            info = n.nvmlPciInfoExt_v1_t(version=n.nvmlPciInfoExt_v1)
            n.nvmlDeviceGetPciInfoExt(handle, n.byref(info))
            return plain(info)
        return plain(getattr(n, name)(*arguments))
    except n.NVMLError as error:
        return {"error": error.value}


def fields(*numbers):
    seen = {}
    for number, value in zip(numbers, n.nvmlDeviceGetFieldValues(handle, list(numbers)), strict=True):
        wide = value.valueType == n.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        answer = value.value.ullVal if wide else value.value.uiVal
        seen[str(number)] = {"error": value.nvmlReturn} if value.nvmlReturn else answer
    return seen


seen = {}
for question in json.loads(sys.argv[1]):
    name, *arguments = question if isinstance(question, list) else [question]
    if name == "fields":
        seen[name] = fields(*arguments)
    elif name.startswith("nvmlSystem") or name in ("nvmlUnitGetCount", "nvmlDeviceGetHandleBySerial"):
        seen[name] = ask(name, *arguments)
    elif arguments[:1] == ["other"]:
        seen[name] = ask(name, handle, other, *arguments[1:])
    else:
        seen[" ".join(map(str, [name, *arguments]))] = ask(name, handle, *arguments)
print(json.dumps(seen))
