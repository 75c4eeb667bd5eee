/* Libraries that the driver brings with it.
 *
 * The driver is opened at the first call, but some programs decide by what is loaded before any:
 * numba-cuda looks at import for a libnvJitLink by soname, and without one loads a wheel's, which
 * makes machine code that the software GPU does not run. Linked to the software GPU it finds the
 * empty one that comes with it; in a share it must find the same, so it is opened when we are.
 *
 * In a constructor, although the driver itself is not (surface.c): these have no code that could
 * run under the loader's lock. NVIDIA's driver folder has none of them, and then nothing happens.
 */
#include <dlfcn.h>

#include "share.h"

static const char *const companions[] = { "driver/libnvJitLink.so.13", "driver/libnvJitLink.so.12" };

__attribute__((constructor)) static void open_companions(void)
{
    if (!share_find_folder())
        return; /* said at the first call */
    for (unsigned n = 0; n < sizeof companions / sizeof *companions; n++) {
        char path[PATH_MAX + 64];
        if (share_join(path, sizeof path, share.folder, companions[n]))
            dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
}
