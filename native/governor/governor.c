#include "governor.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>

#include "ledger.h"
#include "refusal.h"
#include "share.h"
#include "surface.h"

#ifdef GOVERNOR_NVML
#define SONAME "libnvidia-ml.so.1"
#define PROBE nvmlInit_v2
#define WRITES_LEDGER false
int nvmlInit_v2(void);
#else
#define SONAME "libcuda.so.1"
#define PROBE cuInit
#define WRITES_LEDGER true
int cuInit(unsigned flags);
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

enum { NEW, READY, CLOSED };

static atomic_int state = NEW;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
/* The thread that is in start_slowly: a driver whose constructor calls back into us must get an
 * answer, not a deadlock. */
static atomic_ulong starter;

static bool refuse_driver(const char *what)
{
    refusal_set("Aliquot: the driver at ", share.driver_path, " ", what,
                ", so this program has no share of a GPU; see `aliquot doctor`", NULL);
    return false;
}

/* A driver that is a governor would open its own driver, which is itself, without end. */
static bool is_own_file(void)
{
    Dl_info own;
    struct stat mine, theirs;
    return dladdr(&share, &own) != 0 && stat(own.dli_fname, &mine) == 0 &&
           stat(share.driver_path, &theirs) == 0 && mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

static bool open_driver(void)
{
    if (is_own_file())
        return refuse_driver("is Aliquot's governor itself");
    void *driver = dlopen(share.driver_path, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL) {
        const char *why = dlerror();
        refusal_set("Aliquot: the driver cannot be loaded (", why != NULL ? why : share.driver_path,
                    "), so this program has no share of a GPU; see `aliquot doctor`", NULL);
        return false;
    }
    void *probe = dlsym(driver, TEXT(PROBE));
    if (probe == NULL)
        return refuse_driver("is not a " SONAME);
    if (probe == (void *)PROBE)
        return refuse_driver("is Aliquot's governor itself");
    surface_fill(driver);
    return true;
}

static void in_child(void)
{
    /* Another thread may have been starting; in the child nobody is. */
    pthread_mutex_init(&starting, NULL);
    atomic_store(&starter, 0);
}

static bool start_slowly(void)
{
    static bool watching_forks;
    if (atomic_load(&starter) == (unsigned long)pthread_self())
        return false;
    pthread_mutex_lock(&starting);
    if (atomic_load(&state) == NEW) {
        atomic_store(&starter, (unsigned long)pthread_self());
        if (!watching_forks) {
            watching_forks = true;
            pthread_atfork(NULL, NULL, in_child);
        }
        bool ready = share_open(SONAME, WRITES_LEDGER) && ledger_open(WRITES_LEDGER) && open_driver();
        if (!ready)
            surface_close();
        atomic_store_explicit(&state, ready ? READY : CLOSED, memory_order_release);
        atomic_store(&starter, 0);
    }
    pthread_mutex_unlock(&starting);
    return atomic_load(&state) == READY;
}

bool governor_start(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    return __builtin_expect(now == READY, 1) || (now == NEW && start_slowly());
}

void governor_close(void)
{
    surface_close();
    atomic_store(&state, CLOSED);
}
