"""What NVML shows of the first device."""

from calls import Nvml, answer

nvml = Nvml()
answer(
    used=nvml.used(),
    processes={str(pid): used for pid, used in nvml.processes().items()},
    utilisation=nvml.utilisation(),
)
