"""What numba-cuda's test files are about: the rows of the table in docs/softgpu.md."""

from __future__ import annotations

_FILES = {
    "driver, contexts and memory": (
        "cudadrv/ test_constmem test_emm test_pinned test_retrieve_autoconverted_arrays"
    ),
    "linking, caching and dispatch": (
        "test_linker test_linkable_code test_nvjitlink test_nvrtc test_nvvm_driver test_module_callbacks "
        "test_inline_ptx test_caching test_serialize test_dispatcher test_device_func "
        "test_launch_config_sensitive test_cuda_jit_no_types test_compiler test_inspect test_cffi "
        "test_extending test_extending_types test_overload test_inline. "
        "test_make_function_to_jit_function test_numba_interop test_forall"
    ),
    "streams, events, threads, IPC and several GPUs": (
        "test_streams test_events test_stream_api test_ipc test_multigpu test_multiprocessing "
        "test_multithreads test_select_device test_device_array_capture"
    ),
    "atomics": "test_atomics",
    "mathematics and libdevice": (
        "test_libdevice test_math test_intrinsics test_operator test_casting test_complex test_fastmath "
        "test_powi test_minmax test_frexp_ldexp test_idiv test_py2_div_issue test_random test_mandel "
        "test_blackscholes test_montecarlo test_vector_type test_iterators"
    ),
    "bfloat16 and fp8": "test_bfloat16 test_fp8 test_cupy_bfloat16",
    "shared memory, warps, barriers, cooperative groups": (
        "test_sm. test_sm_creation test_warp_ops test_sync test_cooperative_groups test_localmem "
        "test_alignment test_array_alignment test_cache_hints test_reduction test_transpose test_matmul "
        "test_laplace test_nondet"
    ),
    "arrays and records": (
        "test_array test_record_dtype test_slicing test_cuda_array_interface test_cuda_ndarray "
        "test_datetime test_cuda_devicerecord test_freevar test_globals test_const_string"
    ),
    "ufuncs, vectorize and guvectorize": "test_ufuncs test_vectorize test_gufunc",
    "printing, exceptions, debugging": (
        "test_print test_userexc test_exception test_errors test_debug test_lineinfo test_warning "
        "test_tracing"
    ),
    "the compiler's own": (
        "test_analysis test_byteflow test_copy_propagate test_ir test_ssa test_typeinfer test_typeconv "
        "test_optimization test_enums test_flow_control test_lang test_boolean test_recursion core/ "
        "nocuda/ cudasim/"
    ),
    "memory that kernels allocate (NRT)": "nrt/",
    "examples of its documentation": "doc_examples/",
    "its benchmarks": "benchmarks/",
}


def area_of(file: str) -> str:
    """By the longest of the names above that the file's begins with; a folder's name counts for the rest."""
    folder, _, name = file.partition("/")
    best, found = -1, "other"
    for area, words in _FILES.items():
        for word in words.split():
            if word.endswith("/"):
                score = 0 if word == f"{folder}/" else -1
                if score == 0 and folder != "cudadrv":
                    score = 1000  # these folders are an area whatever their files are called
            else:
                score = len(word) if name.startswith(word) else -1
            if score > best:
                best, found = score, area
    return found
