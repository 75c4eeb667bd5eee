"""Every reason Aliquot refuses or fails for, as data.

``docs/reasons/CODE.md`` is generated from this table (``make generate``), and a test
fails when one lacks its page. The exit code belongs to the reason, so that no command
chooses its own.
"""

from enum import Enum


class Reason(Enum):
    """(code, exit code, title, meaning, what to do)."""

    FAILED = (
        "failed",
        1,
        "Something went wrong",
        "A step that should have worked did not; the message names it.",
        "Read the message's last line; `aliquot doctor` checks the machine.",
    )
    BAD_SPEC = (
        "bad-spec",
        2,
        "The size cannot be read",
        "SPEC is `[COUNT x] [MODEL[!] :] AMOUNT [@ COMPUTE]`; the caret shows where reading stopped.",
        "Write a size such as `10GiB`, `1/4`, `25%`, `10GiB@30%`, `H100:20GiB` or `2xH100`.",
    )
    BAD_USAGE = (
        "bad-usage",
        2,
        "The command line cannot be read",
        "An option or argument is missing, unknown, or contradicts another.",
        "`aliquot COMMAND --help` shows examples.",
    )
    BAD_FILE = (
        "bad-file",
        2,
        "The file cannot be read",
        "It is not the YAML of a kind and version that this release knows.",
        "`aliquot plan SPEC -o yaml` prints a file that can be read back.",
    )
    NOT_FOUND = (
        "not-found",
        3,
        "No such thing",
        "Nothing here has that id, name or UUID.",
        "`aliquot leases` and `aliquot gpus` list what there is.",
    )
    AMBIGUOUS = (
        "ambiguous",
        3,
        "More than one thing matches",
        "The prefix or name fits several; Aliquot never guesses which.",
        "Type more of it; the message lists the candidates.",
    )
    NO_ROOM = (
        "no-room",
        4,
        "No room now",
        "A GPU here is large enough, but other leases or other programs hold too much of it.",
        "Ask for less, release a lease, or wait; `aliquot why SPEC` says who holds what.",
    )
    NEVER_FITS = (
        "never-fits",
        5,
        "Would not fit were every GPU here empty",
        "No GPU of this machine is that large, or there are not that many of them.",
        "Ask for less; `aliquot gpus` shows what there is.",
    )
    NO_GPU = (
        "no-gpu",
        5,
        "No GPU here",
        "No GPU was found whose memory can be leased.",
        "`aliquot doctor` says what is missing; `aliquot softgpu create T4` makes a software GPU.",
    )
    NO_SUCH_MODEL = (
        "no-such-model",
        5,
        "No GPU of that model here",
        "The ask names a model, and no GPU of this machine has that name.",
        "`aliquot gpus` shows the names; leave the model out to take any.",
    )
    BELOW_CONTEXT = (
        "below-context",
        5,
        "Smaller than what one CUDA context takes by itself",
        "The driver takes memory for each process's context before the program allocates a byte; "
        "a share below that could never start a program.",
        "Ask for more than the context cost that the message names.",
    )
    NOT_ENFORCEABLE = (
        "not-enforceable",
        5,
        "The isolation asked for cannot be had",
        "Aliquot refuses rather than hand out a share that is held less strongly than asked.",
        "Run it in a container, or as another user with `sudo aliquot run --user NAME`, for `soft`; or ask "
        "for less with `--isolation`.",
    )
    ALL_UNHEALTHY = (
        "all-unhealthy",
        5,
        "No healthy, open GPU would fit",
        "Each GPU that is large enough is cordoned, unhealthy, lost or in MIG mode.",
        "`aliquot gpus -o wide` says what is wrong with each.",
    )
    NAME_TAKEN = (
        "name-taken",
        2,
        "A live lease has that name",
        "Names of live leases are unique.",
        "Choose another name or release the lease that has it.",
    )
    LEASE_ENDED = (
        "lease-ended",
        3,
        "The lease has ended",
        "Its share was given back; its files are gone.",
        "Take a new one with `aliquot lease --gpu SPEC`.",
    )
    LEASE_BUSY = (
        "lease-busy",
        1,
        "Processes still use the lease",
        "A lease ends only when its holder is gone and no process holds memory under it.",
        "End the processes that the message names, then release again.",
    )
    BOOK_LOCKED = (
        "book-locked",
        1,
        "Another process holds the book",
        "The book was locked by another process for longer than Aliquot waits.",
        "See who with `fuser` on the file that the message names, then try again.",
    )
    BOOK_CORRUPT = (
        "book-corrupt",
        1,
        "The book cannot be read",
        "SQLite says that the file is not a sound database. Nothing was changed.",
        "Copy the file away for safety, then follow the message's command.",
    )
    BOOK_NEWER = (
        "book-newer",
        1,
        "The book was written by a newer Aliquot",
        "Its schema is newer than this release knows. Nothing was changed.",
        "Upgrade this Aliquot to at least the release that wrote it.",
    )
    BOOK_UNWRITABLE = (
        "book-unwritable",
        1,
        "The book cannot be written",
        "The disk is full or read-only, or permission is missing. Nothing was changed.",
        "Free space or mend the permission of the path that the message names.",
    )
    FILES_UNWRITABLE = (
        "files-unwritable",
        1,
        "A share's files cannot be written",
        "The folder of shares is full, read-only, or not ours.",
        "Free space or mend the permission of the path that the message names.",
    )
    DRIVER_BROKEN = (
        "driver-broken",
        1,
        "The GPU's driver does not answer",
        "The driver's library is there but fails; the message gives its own words.",
        "`aliquot doctor` names the fix.",
    )
    GOVERNOR_MISSING = (
        "governor-missing",
        1,
        "The governor's library is not where it should be",
        "Without it a share would not be held, so nothing was started.",
        "Install Aliquot again.",
    )
    ENGINE_MISSING = (
        "engine-missing",
        1,
        "The container engine does not answer",
        "Its client is not on PATH, or its service does not run.",
        "Start it; `aliquot doctor` says what it found.",
    )
    ENGINE_REMOTE = (
        "engine-remote",
        5,
        "The container engine runs on another machine",
        "A share of this machine's GPU cannot be mounted there.",
        "Run Aliquot on that machine, or unset DOCKER_HOST / the context.",
    )
    GIVES_EVERY_GPU = (
        "gives-every-gpu",
        5,
        "The container would get every GPU",
        "An option, an image's variable or the engine's default runtime hands all cards to the "
        "container, past its share.",
        "Remove what the message names.",
    )
    COMMAND_NOT_UNDERSTOOD = (
        "command-not-understood",
        2,
        "The container command cannot be read",
        "Aliquot puts its flags after `run` or `create` and before the image, and did not find them.",
        "Write `aliquot run --gpu SPEC -- podman run [OPTIONS] IMAGE …`.",
    )
    NO_CDI = (
        "no-cdi",
        1,
        "A CDI specification cannot be written",
        "No runtime CDI folder is writable.",
        "Make the folder that the message names, or use `--inject flags`.",
    )
    SOFTGPU_BUSY = (
        "softgpu-busy",
        1,
        "Processes still use the software GPU",
        "Removing it would pull the memory from under them.",
        "End them first; `aliquot show GPU` names them.",
    )
    BAD_PROFILE = (
        "bad-profile",
        2,
        "No such profile of a software GPU",
        "A profile names a card whose figures the software GPU takes.",
        "`aliquot softgpu create --help` lists the profiles.",
    )
    MISSING_EXTRA = (
        "missing-extra",
        1,
        "An optional part is not installed",
        "This command needs a package that the plain installation leaves out.",
        "Run the pip command that the message gives.",
    )
    CHECK_FAILED = (
        "check-failed",
        7,
        "A check failed",
        "At least one of the checks found a fault.",
        "Each failed line carries its fix.",
    )

    def __init__(self, code: str, exit_code: int, title: str, meaning: str, fix: str) -> None:
        self.code = code
        self.exit_code = exit_code
        self.title = title
        self.meaning = meaning
        self.fix = fix
