"""The commands by name: what ``aliquot --help`` says of each without loading its file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    group: str
    summary: str
    """One line; also the first line of the command's own help."""


COMMANDS: dict[str, Entry] = {
    "gpus": Entry("look", "List the GPUs of this machine and what is free on each."),
    "leases": Entry("look", "List the leases: who holds what."),
    "show": Entry("look", "Show one lease or GPU, with its story."),
    "usage": Entry("look", "Sum what was leased and used."),
    "run": Entry("use", "Run a command or container in a share of a GPU."),
    "lease": Entry("use", "Take a share and keep it until released."),
    "resize": Entry("use", "Change a lease's size or policy while it runs."),
    "pause": Entry("use", "Make a lease's launches wait."),
    "resume": Entry("use", "Let a paused lease's launches go on."),
    "extend": Entry("use", "Change when a lease ends by itself."),
    "release": Entry("use", "Give leases back."),
    "plan": Entry("ask", "Say what a size means and where it would go."),
    "why": Entry("ask", "Say why a size fits or not, and who holds what."),
    "verify": Entry("ask", "Try to break a share, and say whether it holds."),
    "doctor": Entry("ask", "Check the machine, each fault with its fix."),
    "softgpu": Entry("operate", "Create, list and remove software GPUs."),
    "keeper": Entry("operate", "Keep a share whose keeper was killed, until its lease ends."),
    "demo": Entry("operate", "Show the main job on this machine, in one go."),
    "completion": Entry("self", "Print the completion script of a shell."),
    "version": Entry("self", "Print the version."),
}
