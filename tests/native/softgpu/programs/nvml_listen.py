"""Listen to the events of every device: `nvml_listen.py COUNT MILLISECONDS`. Says when it listens, then each
event as [index of the device, type, data], at most COUNT of them."""

import sys

import pynvml as n
from calls import answer

n.nvmlInit()
events = n.nvmlEventSetCreate()
for index in range(n.nvmlDeviceGetCount()):
    handle = n.nvmlDeviceGetHandleByIndex(index)
    n.nvmlDeviceRegisterEvents(handle, n.nvmlDeviceGetSupportedEventTypes(handle), events)
answer(listening=True)
heard = []
try:
    while len(heard) < int(sys.argv[1]):
        event = n.nvmlEventSetWait(events, int(sys.argv[2]))
        heard.append([n.nvmlDeviceGetIndex(event.device), event.eventType, event.eventData])
except n.NVMLError_Timeout:
    pass
n.nvmlEventSetFree(events)
answer(heard=heard)
