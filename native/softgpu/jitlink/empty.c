/* A library with nothing in it but its name, libnvJitLink.so.13 or .12.
 *
 * numba links with nvJitLink where it finds one, and nvJitLink makes machine code, which a software GPU
 * cannot run. cuda-pathfinder takes a library of that name that is loaded already before it looks for
 * NVIDIA's; our libcuda needs this one, so it is always loaded first. numba then finds no functions in
 * it and links through the driver's cuLink calls instead, whose result is PTX. */
typedef int sg_not_an_empty_translation_unit;
