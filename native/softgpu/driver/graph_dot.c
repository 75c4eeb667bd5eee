/* A graph as text for Graphviz. */
#include <stdio.h>
#include <stdlib.h>

#include "graphs.h"

enum { VERBOSE = 1, KERNEL = 1 << 2, COPY = 1 << 3, FILL = 1 << 4, HANDLES = 1 << 10 };

static const char *name_of(CUgraphNodeType type) {
    static const char *const names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "EVENT_WAIT",
                                        "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC",
                                        "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};
    return (size_t)type < sizeof names / sizeof *names ? names[type] : "UNKNOWN";
}

static void print_label(FILE *file, CUgraphNode node, unsigned flags) {
    const sg_operation *o = &node->operation;
    fprintf(file, "%u\\n%s", node->id, name_of(node->type));
    if (o->kind == SG_OPERATION_KERNEL) {
        const sg_geometry *g = &o->kernel.shape;
        fprintf(file, "\\n%s", o->kernel.function->info.name);
        if (flags & (KERNEL | VERBOSE))
            fprintf(file, "\\n<<<(%u,%u,%u), (%u,%u,%u), %u>>>", g->grid[0], g->grid[1], g->grid[2], g->block[0],
                    g->block[1], g->block[2], g->shared_bytes);
    }
    if (o->kind == SG_OPERATION_COPY && (flags & (COPY | VERBOSE)))
        fprintf(file, "\\n%zu x %zu x %zu", o->copy.box.WidthInBytes, o->copy.box.Height, o->copy.box.Depth);
    if (o->kind == SG_OPERATION_FILL && (flags & (FILL | VERBOSE)))
        fprintf(file, "\\n0x%llx = %u, %zu x %zu", o->fill.to, o->fill.value, o->fill.width, o->fill.height);
    if (flags & (HANDLES | VERBOSE))
        fprintf(file, "\\n%p", (const void *)node);
}

static void print_graph(FILE *file, CUgraph graph, unsigned flags) {
    fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", graph->id, graph->id);
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        fprintf(file, "\"graph_%u_node_%u\" [shape=\"%s\" label=\"", graph->id, node->id,
                node->type == CU_GRAPH_NODE_TYPE_KERNEL ? "octagon" : "rectangle");
        print_label(file, node, flags);
        fprintf(file, "\"];\n");
    }
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        for (size_t i = 0; i < node->in_count; i++)
            fprintf(file, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\";\n", graph->id, node->in[i].node->id,
                    graph->id, node->id);
    fprintf(file, "}\n");
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->child != NULL)
            print_graph(file, node->child, flags);
}

SG_EXPORT CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is_graph(graph) || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(file, "digraph dot {\n");
    print_graph(file, graph, flags);
    fprintf(file, "}\n");
    bool failed = ferror(file) != 0;
    return fclose(file) != 0 || failed ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
