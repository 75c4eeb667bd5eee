/* Attributes of streams. All of them tune or describe; none changes what a stream computes. */
#include <string.h>

#include "queues.h"

/* The attributes that streams have, of those that streams, nodes and launches share. */
static bool has(int attribute) {
    return attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
           attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

/* The default streams have the attributes that they have, and cannot be given others. */
static CUresult own_stream(CUstream given, CUstream *stream) {
    CUcontext context;
    CUresult result = sg_stream_resolve(given, &context, stream);
    return result == CUDA_SUCCESS && *stream == NULL ? CUDA_ERROR_INVALID_VALUE : result;
}

SG_EXPORT CUresult cuStreamGetAttribute(CUstream given, int attribute, CUlaunchAttributeValue *value) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || !has(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    if (stream == NULL) {
        value->number = attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->number = stream->priority;
    else
        *value = stream->attributes[attribute];
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamSetAttribute(CUstream given, int attribute, const CUlaunchAttributeValue *value) {
    CUstream stream;
    CUresult result = own_stream(given, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || !has(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY && (value->number < 1 || value->number > 4))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        stream->priority = sg_stream_priority(value->number);
    else
        stream->attributes[attribute] = *value;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    CUstream target, source;
    CUresult result = own_stream(to, &target);
    if (result == CUDA_SUCCESS)
        result = own_stream(from, &source);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(target->attributes, source->attributes, sizeof target->attributes);
    target->priority = source->priority;
    return CUDA_SUCCESS;
}
SG_PTSZ(cuStreamCopyAttributes); /* the default streams cannot take part */
