/* Occupancy, by the rules of the CUDA occupancy calculator: warps, blocks, shared memory, registers. */
#include "launch.h"

unsigned sg_resident_blocks(const sg_facts *facts, const sg_kernel_info *info, unsigned threads,
                            size_t dynamic_shared) {
    unsigned warps = (threads + 31) / 32;
    if (warps == 0 || threads > info->maximum_threads)
        return 0;
    unsigned blocks = (unsigned)facts->threads_per_multiprocessor / 32 / warps;
    if (blocks > (unsigned)facts->blocks_per_multiprocessor)
        blocks = (unsigned)facts->blocks_per_multiprocessor;
    size_t shared = info->static_shared_bytes + dynamic_shared;
    if (shared > 0 && (size_t)facts->shared_per_multiprocessor_bytes / shared < blocks)
        blocks = (unsigned)((size_t)facts->shared_per_multiprocessor_bytes / shared);
    /* A warp takes registers in units of 256. */
    unsigned registers = (info->registers * 32 + 255) / 256 * 256 * warps;
    if (registers > 0 && (unsigned)facts->registers_per_block / registers < blocks)
        blocks = (unsigned)facts->registers_per_block / registers;
    return blocks;
}

static CUresult active_blocks(int *blocks, CUfunction given, int block_size, size_t shared, unsigned flags) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (blocks == NULL || block_size <= 0 || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)sg_resident_blocks(&function->module->context->gpu->device->facts, &function->info,
                                      (unsigned)block_size, shared);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_size,
                                                               size_t shared) {
    return active_blocks(blocks, function, block_size, shared, 0);
}

SG_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                        int block_size, size_t shared,
                                                                        unsigned flags) {
    return active_blocks(blocks, function, block_size, shared, flags);
}

SG_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction given,
                                                             CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                             unsigned flags) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (grid == NULL || block == NULL || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    const sg_facts *facts = &function->module->context->gpu->device->facts;
    int largest = (int)function->info.maximum_threads, best = 0;
    if (limit > 0 && limit < largest)
        largest = limit;
    for (int threads = largest; threads > 0; threads = (threads - 1) / 32 * 32) {
        unsigned blocks = sg_resident_blocks(facts, &function->info, (unsigned)threads,
                                             shared_of != NULL ? shared_of(threads) : shared);
        if ((int)blocks * threads > best) {
            best = (int)blocks * threads;
            *block = threads;
            *grid = (int)blocks * facts->multiprocessors;
        }
    }
    return best > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                    CUoccupancyB2DSize shared_of, size_t shared, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

SG_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *shared, CUfunction given, int blocks,
                                                           int block_size) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (shared == NULL || blocks <= 0 || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const sg_facts *facts = &function->module->context->gpu->device->facts;
    size_t each = (size_t)facts->shared_per_multiprocessor_bytes / (size_t)blocks;
    size_t most = (size_t)facts->shared_per_block_optin_bytes, fixed = function->info.static_shared_bytes;
    if (each > most)
        each = most;
    *shared = each > fixed ? each - fixed : 0;
    return CUDA_SUCCESS;
}
