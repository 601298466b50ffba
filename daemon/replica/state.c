/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a partition's register; see state.h. Pure. */
#include "daemon/replica/state.h"

#include "daemon/replica/bug.h"
#include "lib/base/check.h"

static int32_t id_index(const int32_t *ids, int32_t n, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

int32_t state_replica_index(const struct partition_state *s, int32_t id)
{
    return id_index(s->replicas, s->n_replicas, id);
}

int32_t state_isr_index(const struct partition_state *s, int32_t id)
{
    return id_index(s->isr, s->n_isr, id);
}

static bool are_different(const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (id_index(ids, i, ids[i]) >= 0)
            return false;
    return true;
}

bool state_is_sound(const struct partition_state *s)
{
    if (s->n_replicas < 1 || s->n_replicas > REPLICA_MAX || s->n_isr < 0 || s->n_isr > s->n_replicas)
        return false;
    for (int32_t i = 0; i < s->n_isr; i++)
        if (s->isr_be[i] < 0 || state_replica_index(s, s->isr[i]) < 0)
            return false;
    return are_different(s->replicas, s->n_replicas) && are_different(s->isr, s->n_isr) &&
           (s->leader == -1 || state_replica_index(s, s->leader) >= 0) && s->leader_be >= 0 && s->leader_epoch >= 0 &&
           s->leader_epoch < INT32_MAX && s->recovery >= 0 && s->version >= 0;
}

int32_t state_isr_floor(const struct partition_state *s, int32_t min_isr)
{
    if (KLOG_BUG("R8"))
        return 1;
    return min_isr < s->n_replicas ? min_isr : s->n_replicas;
}

const struct live_broker *live_find(const struct live_broker *live, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (live[i].id == id)
            return &live[i];
    return NULL;
}

bool state_is_led(const struct partition_state *s, const struct live_broker *live, size_t n)
{
    const struct live_broker *b = s->leader < 0 ? NULL : live_find(live, n, s->leader);
    return b != NULL && b->be == s->leader_be;
}

bool state_may_lead(const struct partition_state *s, const struct live_broker *live, size_t n, int32_t id)
{
    const struct live_broker *b = live_find(live, n, id);
    int32_t i = state_isr_index(s, id);
    if (b == NULL || i < 0)
        return false;
    return (s->isr_be[i] > 0 && s->isr_be[i] >= b->base) || KLOG_BUG("R11");
}

const struct live_broker *state_successor(const struct partition_state *s, const struct live_broker *live, size_t n,
                                          int32_t not)
{
    for (int32_t i = 0; i < s->n_replicas; i++)
        if (s->replicas[i] != not && state_may_lead(s, live, n, s->replicas[i]))
            return live_find(live, n, s->replicas[i]);
    return NULL;
}

/* 0: a member; 1: not in sync; 2: it says that it is damaged. */
static int loss_rank(const struct partition_state *s, int32_t id)
{
    int32_t at = state_isr_index(s, id);
    return at < 0 ? 1 : s->isr_be[at] == 0 ? 2 : 0;
}

const struct live_broker *state_least_loss(const struct partition_state *s, const struct live_broker *live, size_t n)
{
    for (int rank = 0; rank <= 2; rank++)
        for (int32_t i = 0; i < s->n_replicas; i++)
            if (loss_rank(s, s->replicas[i]) == rank && live_find(live, n, s->replicas[i]) != NULL)
                return live_find(live, n, s->replicas[i]);
    return NULL;
}

void state_change_begin(struct state_change *ret, const struct partition_state *s, int32_t me, int64_t be)
{
    ret->to = *s;
    ret->n_checks = 0;
    if (!KLOG_BUG("R2"))
        state_change_check(ret, me, be);
}

void state_change_check(struct state_change *c, int32_t id, int64_t be)
{
    KCHECK(c->n_checks < REPLICA_MAX);
    c->check[c->n_checks].id = id;
    c->check[c->n_checks].be = be;
    c->n_checks++;
}

bool state_change_next_epoch(struct state_change *c)
{
    if (c->to.leader_epoch >= INT32_MAX - 1)
        return false;
    c->to.leader_epoch++;
    return true;
}

bool state_change_leader(struct state_change *c, const struct live_broker *b)
{
    if (!state_change_next_epoch(c))
        return false;
    c->to.leader = b == NULL ? -1 : b->id;
    c->to.leader_be = b == NULL ? 0 : b->be;
    return true;
}
