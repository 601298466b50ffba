/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the image has of a partition: one piece of memory, as large as its lists are, shared by reference. A register is at
 * most some hundred bytes, of which there may be ten thousands. Any thread; pure.
 */
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"

/* Copies n values to *at, which moves behind them. */
static const int32_t *put_ids(int32_t **at, const int32_t *from, int32_t n)
{
    int32_t *to = *at;

    memcpy(to, from, (size_t)n * sizeof *to);
    *at += n;
    return to;
}

struct cluster_partition *cluster_partition_new(const struct partition_register *r)
{
    const struct partition_state *st = &r->st;
    size_t n_be = (size_t)st->n_isr, n_claims = (size_t)r->n_claims;
    size_t n_ids = (size_t)(st->n_replicas + st->n_isr + r->n_adding + r->n_removing);
    struct cluster_partition *p =
        xcalloc(1, sizeof *p + n_be * sizeof(int64_t) + n_claims * sizeof(struct election_claim) + n_ids * sizeof(int32_t));
    int64_t *be = (int64_t *)(p + 1);
    struct election_claim *claims = (struct election_claim *)(be + n_be);
    int32_t *ids = (int32_t *)(claims + n_claims);

    memcpy(be, st->isr_be, n_be * sizeof *be);
    memcpy(claims, r->claims, n_claims * sizeof *claims);
    p->version = st->version;
    p->leader = st->leader;
    p->leader_epoch = st->leader_epoch;
    p->leader_be = st->leader_be;
    p->recovery = st->recovery;
    p->n_replicas = st->n_replicas;
    p->n_isr = st->n_isr;
    p->n_adding = r->n_adding;
    p->n_removing = r->n_removing;
    p->isr_be = be;
    p->claims = claims;
    p->n_claims = r->n_claims;
    p->replicas = put_ids(&ids, st->replicas, st->n_replicas);
    p->isr = put_ids(&ids, st->isr, st->n_isr);
    p->adding = put_ids(&ids, r->adding, r->n_adding);
    p->removing = put_ids(&ids, r->removing, r->n_removing);
    p->extra = r->extra == NULL ? NULL : xstrdup(r->extra);
    atomic_init(&p->refs, 1);
    return p;
}

struct cluster_partition *cluster_partition_ref(struct cluster_partition *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void cluster_partition_unref(struct cluster_partition *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
        return;
    free(p->extra);
    free(p);
}

void cluster_partition_register(const struct cluster_partition *p, struct partition_register *ret)
{
    *ret = (struct partition_register){
        .st = { .leader = p->leader,
                .leader_be = p->leader_be,
                .leader_epoch = p->leader_epoch,
                .recovery = p->recovery,
                .n_replicas = p->n_replicas,
                .n_isr = p->n_isr,
                .version = p->version },
        .n_adding = p->n_adding,
        .n_removing = p->n_removing,
        .n_claims = p->n_claims,
        .extra = p->extra,
    };
    memcpy(ret->st.replicas, p->replicas, (size_t)p->n_replicas * sizeof p->replicas[0]);
    memcpy(ret->st.isr, p->isr, (size_t)p->n_isr * sizeof p->isr[0]);
    memcpy(ret->st.isr_be, p->isr_be, (size_t)p->n_isr * sizeof p->isr_be[0]);
    memcpy(ret->claims, p->claims, (size_t)p->n_claims * sizeof p->claims[0]);
    memcpy(ret->adding, p->adding, (size_t)p->n_adding * sizeof p->adding[0]);
    memcpy(ret->removing, p->removing, (size_t)p->n_removing * sizeof p->removing[0]);
}

bool cluster_has_id(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

int32_t cluster_topic_brokers(const struct cluster_topic *t, int32_t **ret)
{
    int32_t *ids = NULL, n = 0;

    for (int32_t i = 0; i < t->n_partitions; i++) {
        const struct cluster_partition *p = cluster_topic_partition(t, i);
        for (int32_t k = 0; k < p->n_replicas; k++) {
            if (cluster_has_id(ids, n, p->replicas[k]))
                continue;
            ids = xreallocarray(ids, (size_t)n + 1, sizeof *ids);
            ids[n++] = p->replicas[k];
        }
    }
    *ret = ids;
    return n;
}

const struct cluster_partition *cluster_topic_partition(const struct cluster_topic *t, int32_t id)
{
    KCHECK(id >= 0 && id < t->n_partitions);
    return atomic_load_explicit(&t->partitions[id], memory_order_acquire);
}
