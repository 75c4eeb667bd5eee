#include "overhead.h"

#include "account.h"
#include "surface.h"
#include "total.h"

#define MOST (INT64_C(1) << 30)

static bool look(unsigned device, uint64_t *free, uint64_t *charged)
{
    size_t first = 0, second = 0, all;
    typedef CUresult get_info(size_t *, size_t *);
    get_info *get = REAL(cuMemGetInfo_v2, get_info *);
    uint64_t before = total_bytes(device);
    bool told = get(&first, &all) == CUDA_SUCCESS && get(&second, &all) == CUDA_SUCCESS;
    *charged = total_bytes(device);
    *free = second;
    return told && first == second && before == *charged;
}

void overhead_begin(struct overhead *before)
{
    *before = (struct overhead){0};
    before->quiet = account_place(&before->context, &before->device) == CUDA_SUCCESS &&
                    look(before->device, &before->free, &before->charged);
}

static int64_t within(int64_t bytes)
{
    return bytes > MOST ? MOST : bytes < -MOST ? -MOST : bytes;
}

bool overhead_moved(const struct overhead *before, uint64_t ahead, int64_t *taken)
{
    uint64_t free, charged;
    if (!before->quiet || !look(before->device, &free, &charged))
        return false;
    *taken = within((int64_t)(before->free - free) - (int64_t)(charged - before->charged - ahead));
    return true;
}

uint64_t overhead_end(const struct overhead *before)
{
    int64_t taken;
    return overhead_moved(before, 0, &taken) && taken > 0 ? (uint64_t)taken : 0;
}
