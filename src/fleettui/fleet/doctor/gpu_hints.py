"""What to do about what is wrong with GPUs, on Linux and on Windows."""

from __future__ import annotations

from collections.abc import Mapping

LINUX_HINTS: Mapping[str, str] = {
    "no_tool": "install the NVIDIA driver, or link nvidia-smi into /usr/local/bin",
    "cannot_run": "reinstall the driver's user space, it does not fit this system",
    "hung": "look at dmesg for Xid errors; a call in state D ends only with a reboot",
    "timed_out": "look at dmesg for Xid errors; it may only be slow: turn persistence mode on",
    "killed": "was the machine out of memory? see dmesg",
    "usage_error": "the driver is very old or another program has this name",
    "unreadable": "run nvidia-smi there and see what it says",
    "no_devices": "is the card seated and powered? see lspci and dmesg",
    "version_mismatch": "reboot, or reload the nvidia modules: the driver was updated since they were loaded",
    "driver_not_running": "is the module built for this kernel and loaded? see dkms status, modprobe nvidia",
    "library_missing": "reinstall the driver's user space (libnvidia-ml.so)",
    "no_permission": "add {user} to the group of /dev/nvidia* (video or render; counts from the next login)",
    "nvml_failed": "see dmesg for NVRM lines; a reboot often helps",
    "late": "may only be slow: turn persistence mode on (nvidia-smi -pm 1); if it never answers, see dmesg",
    "slow": "turn persistence mode on (nvidia-smi -pm 1, or nvidia-persistenced)",
    "fault": "see dmesg for Xid errors; reboot, reseat the card if it comes again",
    "missing": "is a card lost (dmesg, lspci), or the file out of date?",
}
"""By problem code, and by what a check found."""

WINDOWS_HINTS: Mapping[str, str] = {
    "no_tool": "install the NVIDIA driver for Windows; it puts nvidia-smi.exe into System32",
    "cannot_run": "reinstall the NVIDIA driver",
    "hung": "restart Windows if that call never ends",
    "timed_out": "run nvidia-smi.exe there; restart Windows if it never answers",
    "killed": "was the machine out of memory? see its event log",
    "usage_error": "the driver is very old or another program has this name",
    "unreadable": "run nvidia-smi.exe there and see what it says",
    "no_devices": "is the card seated and powered, is it enabled? see the device manager",
    "version_mismatch": "restart Windows: the driver was updated since it was loaded",
    "driver_not_running": "is the card enabled in the device manager? restart Windows, reinstall the driver",
    "library_missing": "reinstall the NVIDIA driver (nvml.dll)",
    "no_permission": "let {user} be one of the machine's administrators",
    "nvml_failed": "see the event log for nvlddmkm; restarting Windows often helps",
    "late": "run nvidia-smi.exe there; restart Windows if it never answers",
    "slow": "a busy or ailing driver: see the event log for nvlddmkm",
    "fault": "see the event log for nvlddmkm; restart Windows, reseat the card if it comes again",
    "missing": "is a card lost (device manager), or the file out of date?",
}
"""The same for Windows, which has neither dmesg nor modules."""
