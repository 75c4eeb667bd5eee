"""However a program comes to the driver, it comes to the governor; and is left as it was."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.native.governor.shares import Built, MakeShare, ShareOnDisk


def test_a_program_that_is_linked_finds_the_governor(share: ShareOnDisk, tmp_path: Path) -> None:
    source = tmp_path / "linked.c"
    source.write_text(
        """
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void **, int); int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, unsigned long);
int main(void) { void *c; unsigned long long p;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c)) return 99;
  return cuMemAlloc_v2(&p, 91ul << 20); }
"""
    )
    program = tmp_path / "linked"
    subprocess.run(
        ["cc", source, "-o", program, f"-L{share.root / 'lib'}", "-l:libcuda.so.1"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [program], env=share.environment(LD_LIBRARY_PATH=str(share.root / "lib")), check=False
    )
    assert done.returncode == 2


STATIC = """
#include <dlfcn.h>
#include <stdio.h>
static const char PTX[] = ".version 7.0\\n.target sm_70\\n.address_size 64\\n"
  ".visible .entry k(.param .u64 p) {\\n"
  ".reg .u64 %rd<2>;\\nld.param.u64 %rd1, [p];\\nst.global.u32 [%rd1], 42;\\nret;\\n}\\n";
#define CALL(name, ...) (((int (*)())dlsym(h, #name))(__VA_ARGS__))
int main(int n, char **a) {
  void *h = dlopen(a[1], RTLD_NOW), *c, *m, *f; unsigned long long p, more, bytes = 0; int v = 0; (void)n;
  void *given[] = {&p};
  if (CALL(cuInit, 0) || CALL(cuDeviceTotalMem_v2, &bytes, 0) || CALL(cuDevicePrimaryCtxRetain, &c, 0) ||
      CALL(cuCtxSetCurrent, c) || CALL(cuMemAlloc_v2, &p, 60ul << 20) || CALL(cuModuleLoadData, &m, PTX) ||
      CALL(cuModuleGetFunction, &f, m, "k") ||
      CALL(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, (void *)0, given, (void *)0) || CALL(cuCtxSynchronize) ||
      CALL(cuMemcpyDtoH_v2, &v, p, 4ul)) return 99;
  printf("[%llu, %d, %d]", bytes >> 20, v, CALL(cuMemAlloc_v2, &more, 60ul << 20));
  return 0; }
"""


def test_a_static_program_finds_the_governor_and_computes(card_share: ShareOnDisk, tmp_path: Path) -> None:
    """Its loader is not the libraries' loader: neither we nor the software GPU ask that for anything."""
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text(STATIC)
    if subprocess.run(["cc", "-static", source, "-o", program], capture_output=True).returncode != 0:
        pytest.skip("no static libc here")
    run = [program, card_share.cuda]
    done = subprocess.run(run, env=card_share.environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[100, 42, 2]", "")
    assert card_share.ledger().devices[0].denied == 1


def test_a_program_spawned_without_fork_s_handlers_has_an_account_of_its_own(share: ShareOnDisk) -> None:
    """posix_spawn runs no handler of ours in the child, and the parent's account is the parent's."""
    seen = share.run(
        """
import subprocess, sys
begin(); check(alloc(20 * MIB)[0])
child = "\\n".join([
    "import ctypes, os", "cuda = ctypes.CDLL(os.environ['SHARE'] + '/lib/libcuda.so.1')",
    "c, p = ctypes.c_void_p(), ctypes.c_ulonglong()",
    "r = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0) or cuda.cuCtxSetCurrent(c)",
    "print(r, [cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(n << 20)) for n in (61, 60)])"])
read, write = os.pipe()
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", child], os.environ,
                     file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
os.waitpid(pid, 0)
say([os.read(read, 99).decode().strip(), used() // MIB, alloc(70 * MIB)[0]])
"""
    )
    assert seen == ["0 [2, 0]", 30, 0]


def test_a_plug_in_that_looks_in_itself_first_finds_the_governor(share: ShareOnDisk, tmp_path: Path) -> None:
    source = tmp_path / "plugin.c"
    source.write_text(
        "int cuMemAlloc_v2(unsigned long long *, unsigned long);\n"
        "int plugin(void) { unsigned long long p; return cuMemAlloc_v2(&p, 91ul << 20); }\n"
    )
    plugin = tmp_path / "plugin.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", source, "-o", plugin, f"-L{share.root / 'lib'}", "-l:libcuda.so.1"],
        check=True,
    )
    deepbind = os.RTLD_NOW | os.RTLD_DEEPBIND
    seen = share.run(
        f"begin()\nsay(ctypes.CDLL({str(plugin)!r}, mode={deepbind}).plugin())",
        LD_LIBRARY_PATH=str(share.root / "lib"),
    )
    assert seen == 2


STARTS = """
#include <dlfcn.h>
#include <stdlib.h>
int answer = 255;
static void start(void) {
  void *h = dlopen(getenv("CUDA"), RTLD_NOW), *c; unsigned long long p;
  int (*init)(unsigned) = dlsym(h, "cuInit");
  int (*retain)(void **, int) = dlsym(h, "cuDevicePrimaryCtxRetain");
  int (*current)(void *) = dlsym(h, "cuCtxSetCurrent");
  int (*alloc)(unsigned long long *, unsigned long) = dlsym(h, "cuMemAlloc_v2");
  answer = init(0) || retain(&c, 0) || current(c) ? 99 : alloc(&p, 91ul << 20);
}
"""


def test_a_constructor_and_threads_that_start_at_once_hang_nobody(share: ShareOnDisk, tmp_path: Path) -> None:
    """A plug-in that starts CUDA while the loader holds its lock, and eight threads that do at once."""
    plugin = tmp_path / "plugin.c"
    plugin.write_text(STARTS + "__attribute__((constructor)) static void early(void) { start(); }\n")
    library = tmp_path / "plugin.so"
    subprocess.run(["cc", "-shared", "-fPIC", plugin, "-o", library, "-ldl"], check=True)
    seen = share.run(
        f"say(ctypes.c_int.in_dll(ctypes.CDLL({str(library)!r}), 'answer').value)", CUDA=str(share.cuda)
    )
    assert seen == 2

    threads = tmp_path / "threads.c"
    threads.write_text(
        STARTS
        + """
#include <pthread.h>
static void *one(void *unused) { start(); return unused; }
int main(void) { pthread_t t[8]; int i;
  for (i = 0; i < 8; i++) pthread_create(&t[i], NULL, one, NULL);
  for (i = 0; i < 8; i++) pthread_join(t[i], NULL);
  return answer; }
"""
    )
    program = tmp_path / "threads"
    subprocess.run(["cc", threads, "-o", program, "-ldl", "-lpthread"], check=True)
    done = subprocess.run([program], env=share.environment(CUDA=str(share.cuda)), check=False, timeout=20)
    assert done.returncode == 2


def test_another_interposer_before_us_changes_nothing(share: ShareOnDisk, tmp_path: Path) -> None:
    """As profilers do: a preloaded library with the driver's names, which calls on with RTLD_NEXT."""
    tool, linked = tmp_path / "tool.c", tmp_path / "linked.c"
    tool.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\nint seen;\n"
        "int cuMemAlloc_v2(unsigned long long *p, unsigned long n) { seen++;\n"
        '  int (*next)(unsigned long long *, unsigned long) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");\n'
        "  return next(p, n); }\n"
    )
    linked.write_text(
        "int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void **, int); int cuCtxSetCurrent(void *);\n"
        "int cuMemAlloc_v2(unsigned long long *, unsigned long); extern int seen;\n"
        "int main(void) { void *c; unsigned long long p;\n"
        "  if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c)) return 99;\n"
        "  int r = cuMemAlloc_v2(&p, 90ul << 20) == 0 && cuMemAlloc_v2(&p, 1) == 2;\n"
        "  return r ? seen : 98; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", tool, "-o", tmp_path / "libtool.so", "-ldl"], check=True)
    links = [f"-L{tmp_path}", "-ltool", f"-L{share.root / 'lib'}", "-l:libcuda.so.1"]
    subprocess.run(["cc", linked, "-o", tmp_path / "linked", *links], check=True)
    where = f"{tmp_path}:{share.root / 'lib'}"
    done = subprocess.run([tmp_path / "linked"], env=share.environment(LD_LIBRARY_PATH=where), check=False)
    assert done.returncode == 2, "both calls went through the tool, and through us"


def test_a_library_loaded_by_a_relative_name_finds_its_share(share: ShareOnDisk) -> None:
    seen = share.run(
        """
os.chdir(os.environ["SHARE"])
cuda = ctypes.CDLL("lib/../lib/libcuda.so.1")
begin()
say(info()[1] // MIB)
"""
    )
    assert seen == 100


def test_loading_it_twice_and_unloading_it_keeps_the_account(share: ShareOnDisk) -> None:
    seen = share.run(
        """
import _ctypes
begin(); r, p = alloc(10 * MIB)
again = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
for _ in range(3):
    _ctypes.dlclose(cuda._handle)
cuda = ctypes.CDLL(os.environ["SHARE"] + "/lib/libcuda.so.1")
a = used() // MIB
check(free(p))
say([a, used() // MIB])
"""
    )
    assert seen == [20, 10]


def test_the_program_s_own_state_is_left_alone(share: ShareOnDisk) -> None:
    """No umask, no signal handler, no working folder, no output, no variable is touched."""
    assert share.run(
        """
import signal
def state():
    mask = os.umask(0); os.umask(mask)
    return [mask, os.getcwd(), [str(signal.getsignal(n)) for n in range(1, 32)],
            ctypes.CDLL(None).getenv(b"CUDA_VISIBLE_DEVICES"),
            open("/proc/self/status").read().split("SigCgt:")[1][:18]]
os.umask(0o123)
before = state()
begin(); alloc(MIB); info(); retain()
say(before == state())
"""
    )


def test_replacing_the_library_under_a_running_program_by_rename_is_survived(
    make_share: MakeShare, built: Built, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(built.governor, folder)
    share = make_share(build=Built(folder, built.driver, built.programs))
    process = share.start("begin()\nsay(1)\ninput()\nsay([alloc(80 * MIB)[0], alloc(80 * MIB)[0]])")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    shutil.copy(folder / "libcuda.so.1", folder / "new")
    (folder / "new").rename(folder / "libcuda.so.1")
    out, _ = process.communicate("\n", timeout=20)
    assert (process.returncode, out) == (0, "[0, 2]\n")
