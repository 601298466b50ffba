/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of register operations that own what they point to: paths and values are taken over by ops_add() and freed
 * by ops_done(), so that a change can be kept until it was written, and taken back if it has to be. One thread at
 * a time. Knows nothing of what the operations mean.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/mem.h"

void ops_add(struct register_ops_list *l, enum register_op_kind kind, char *path, char *value,
             int64_t version)
{
    if (l->n == l->cap) {
        l->cap = l->cap == 0 ? 16 : 2 * l->cap;
        l->ops = xreallocarray(l->ops, (size_t)l->cap, sizeof *l->ops);
    }
    size_t n = value == NULL ? 0 : strlen(value);
    l->ops[l->n++] =
        (struct register_op){ .kind = kind, .path = path, .value = slice_of(value, n), .version = version };
    l->bytes += n + strlen(path);
}

void ops_done(struct register_ops_list *l)
{
    for (int i = 0; i < l->n; i++) {
        free((char *)(uintptr_t)l->ops[i].path);
        free((uint8_t *)(uintptr_t)l->ops[i].value.p);
    }
    free(l->ops);
    memset(l, 0, sizeof *l);
}

void cluster_writer(struct cluster *c, char ret[64])
{
    snprintf(ret, 64, "%d.%lld.%llu", c->deps.id, (long long)c->broker_epoch,
             (unsigned long long)atomic_fetch_add(&c->writes, 1));
}
