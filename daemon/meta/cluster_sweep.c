/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clears away what somebody who is gone had begun: a topic that was not made to its end, or not deleted to its end, and
 * partitions that were to be added to one. Nobody ever saw them, so nothing but registers is to be deleted. Several brokers may
 * do it at the same time: whoever finds a register gone leaves the rest to the others and looks again. Blocks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

enum { SWEEP_OPS_MAX = 500 }; /* a multi; paths are at most 300 bytes */

static void fence(struct cluster *c, struct register_ops_list *l)
{
    ops_add(l, REGISTER_CHECK, xasprintf("/klog/broker_epoch/%d", c->deps.id), NULL, c->broker_epoch);
}

static int send(struct cluster *c, struct register_ops_list *l)
{
    int rc = registers_multi_wait(c->deps.registers, l->ops, l->n);

    ops_done(l);
    return rc == -ENOENT || rc == -ESTALE || rc == -ENOTEMPTY ? -EAGAIN : rc;
}

static int sweep_partitions(struct cluster *c, const char *name, int32_t from, char *const *numbers, int n)
{
    struct register_ops_list l = { 0 };
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        if (atoi(numbers[i]) < from)
            continue;
        if (l.n == 0)
            fence(c, &l);
        ops_add(&l, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions/%s/state", name, numbers[i]), NULL,
                REGISTER_ANY_VERSION);
        ops_add(&l, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions/%s", name, numbers[i]), NULL,
                REGISTER_ANY_VERSION);
        if (l.n >= SWEEP_OPS_MAX)
            rc = send(c, &l);
    }
    if (rc == 0 && l.n > 0)
        rc = send(c, &l);
    ops_done(&l);
    return rc;
}

/* The last step: the topic goes, or is whole again as it was before. */
static int sweep_topic(struct cluster *c, const char *name, struct topic_load *l)
{
    struct register_ops_list ops = { 0 };
    struct topic_register whole = l->shape;

    fence(c, &ops);
    if (l->shape.unfinished_from > 0) {
        whole.unfinished_from = -1;
        ops_add(&ops, REGISTER_SET, xasprintf("/brokers/topics/%s", name), topic_register_encode(&whole), l->version);
    } else {
        ops_add(&ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s/partitions", name), NULL, REGISTER_ANY_VERSION);
        ops_add(&ops, REGISTER_DELETE, xasprintf("/brokers/topics/%s", name), NULL, l->version);
        ops_add(&ops, REGISTER_DELETE, xasprintf("/config/topics/%s", name), NULL, REGISTER_ANY_VERSION);
    }
    int rc = send(c, &ops);
    l->version++;
    return rc;
}

int topic_sweep(struct cluster *c, const char *name, struct topic_load *l)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s/partitions", name);
    char **numbers = NULL;
    int n = 0;

    int rc = registers_children_wait(c->deps.registers, path, &numbers, &n);
    if (rc == -ENOENT)
        rc = -EAGAIN;
    if (rc == 0)
        rc = sweep_partitions(c, name, l->shape.unfinished_from, numbers, n);
    registers_names_free(numbers, n);
    if (rc == 0)
        rc = sweep_topic(c, name, l);
    if (rc == 0)
        log_warn("topic %s: broker %d did not come to the end of a change of it; what it had begun is cleared away", name,
                 l->shape.writer);
    return rc;
}
