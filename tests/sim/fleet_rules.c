/* SPDX-License-Identifier: Apache-2.0 */
/* What the true registers and disks say, and what may not be said by them; see fleet.h. Reads registers by a reader of its own. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/marks.h"

/* ---- registers ---- */
static json_t *json_at(const struct fleet *f, const char *path, int64_t *ret_version)
{
    struct slice value;
    if (register_tree_get(simregisters_tree(f->registers), path, &value, ret_version) < 0)
        return NULL;
    return json_loadb((const char *)value.p, value.n, 0, NULL);
}

static int64_t number_of(const json_t *j, const char *name)
{
    return json_integer_value(json_object_get(j, name));
}

static int numbers_of(const json_t *j, const char *name, int64_t *ret)
{
    const json_t *a = json_object_get(j, name);
    int n = MIN((int)json_array_size(a), FLEET_REPLICAS);
    for (int i = 0; i < n; i++)
        ret[i] = json_integer_value(json_array_get(a, (size_t)i));
    return n;
}

static int ids_of(const json_t *j, const char *name, int *ret)
{
    int64_t numbers[FLEET_REPLICAS];
    int n = numbers_of(j, name, numbers);
    for (int i = 0; i < n; i++)
        ret[i] = (int)numbers[i];
    return n;
}

static void state_of_json(const json_t *j, int64_t version, struct fleet_state *ret)
{
    int moving[FLEET_REPLICAS];
    *ret = (struct fleet_state){
        .leader = (int)number_of(j, "leader"),
        .leader_be = number_of(j, "leader_be"),
        .leader_epoch = (int)number_of(j, "leader_epoch"),
        .recovery = (int)number_of(j, "recovery"),
        .version = version,
    };
    ret->n_replicas = ids_of(j, "replicas", ret->replicas);
    ret->n_isr = ids_of(j, "isr", ret->isr);
    numbers_of(j, "isr_be", ret->isr_be);
    ret->n_moving = ids_of(j, "adding", moving) + ids_of(j, "removing", moving);
}

bool fleet_state_of(const struct fleet *f, const char *topic, int partition, struct fleet_state *ret)
{
    char path[128];
    int64_t version;
    snprintf(path, sizeof path, "/brokers/topics/%s/partitions/%d/state", topic, partition);
    json_t *j = json_at(f, path, &version);
    if (j == NULL)
        return false;
    state_of_json(j, version, ret);
    json_decref(j);
    return true;
}

/* Of a broker's id: the version of its epoch register is its broker epoch. -1: it was never registered. */
static int64_t broker_epoch(const struct fleet *f, int id, int64_t *ret_base)
{
    char path[64];
    int64_t version;
    snprintf(path, sizeof path, "/klog/broker_epoch/%d", id);
    json_t *j = json_at(f, path, &version);
    *ret_base = number_of(j, "base");
    json_decref(j);
    return j == NULL ? -1 : version;
}

static bool is_registered(const struct fleet *f, int id)
{
    char path[64];
    struct slice value;
    int64_t version;
    snprintf(path, sizeof path, "/brokers/ids/%d", id);
    return register_tree_get(simregisters_tree(f->registers), path, &value, &version) == 0;
}

static int index_in(const int *ids, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

/* In sync, and its disk provably kept what it had then: under async since its base, else always. */
static bool counts(const struct fleet *f, const struct fleet_state *s, int id)
{
    int64_t base;
    int i = index_in(s->isr, s->n_isr, id);
    return i >= 0 && broker_epoch(f, id, &base) >= 0 && s->isr_be[i] > 0 && (!f->swarm.async || s->isr_be[i] >= base);
}

int fleet_leads(const struct fleet *f, int topic, int partition, int broker)
{
    struct fleet_state s;
    int64_t base;
    if (!fleet_state_of(f, f->truth.topics[topic].name, partition, &s) || s.leader != broker + 1 ||
        !is_registered(f, s.leader) || broker_epoch(f, s.leader, &base) != s.leader_be)
        return -1;
    return s.leader_epoch;
}

/* ---- disks ---- */
static bool end_is(void *arg, const uint8_t *p, const struct sim_batch_head *h)
{
    int64_t *end = arg;
    (void)p;
    *end = h->base_offset + h->last_offset_delta + 1;
    return true;
}

/* How far the log on that broker's disk goes. */
static int64_t log_end(const struct fleet *f, int id, const char *topic, int partition)
{
    struct simdisk *d = f->b[id - 1].disk;
    char dir[128];
    int64_t end = 0, at;
    if (diskread_find(d, 1, topic, partition, !f->swarm.async, dir, sizeof dir))
        diskread_log(d, dir, !f->swarm.async, true, 0, end_is, &end, &at);
    return end;
}

static bool has_batch(struct fleet *f, int id, const struct truth_batch *b, int64_t base)
{
    struct fleet_broker *fb = &f->b[id - 1];
    struct sim_batch_head h;
    struct sim_records it;
    struct sim_record r;
    char dir[128];
    CLEANUP(bytebuf_done) struct bytebuf bytes = { 0 };
    if (!diskread_find(fb->disk, 1, f->truth.topics[b->topic].name, b->partition, true, dir, sizeof dir) ||
        !diskread_batch(fb->disk, dir, base, &fb->hints[b->topic][b->partition], &bytes) ||
        sim_batch_head(bytes.p, bytes.n, &h) != NULL)
        return false;
    sim_records_start(&it, bytes.p, &h);
    return sim_records_next(&it, &r) == 1 && r.client == b->spec.client && r.batch == b->spec.batch && h.count == b->spec.count;
}

/* R5, R7: a broker writes that this batch is committed (acks=all), or on its own disk (acks=1). */
void fleet_rules_acked(struct fleet *f, int broker, const struct truth_batch *b, int64_t base)
{
    const struct truth_topic *t = &f->truth.topics[b->topic];
    struct fleet_state s;
    if (t->delete_asked || f->swarm.async)
        return;
    if (b->acks == 1) {
        MARK("fleet: acks=1 was acknowledged");
        if (!has_batch(f, broker + 1, b, base))
            sim_fail(f->sim, "S4", "%s-%d: broker %d acknowledges the batch at %" PRId64 " (%d.%d), which is not on its disk", t->name,
                     b->partition, broker + 1, base, b->spec.client, b->spec.batch);
        return;
    }
    if (!fleet_state_of(f, t->name, b->partition, &s))
        return;
    MARK_IF(s.leader != broker + 1, "fleet: one who leads no more acknowledges what was committed");
    for (int i = 0; i < s.n_isr; i++)
        if (counts(f, &s, s.isr[i]) && !has_batch(f, s.isr[i], b, base))
            sim_fail(f->sim, "R5", "%s-%d: broker %d acknowledges the batch at %" PRId64 " (%d.%d), but in-sync broker %d does not have it",
                     t->name, b->partition, broker + 1, base, b->spec.client, b->spec.batch, s.isr[i]);
}

/* ---- changes of a partition's state ---- */
struct judged {
    struct fleet *f;
    int who;
    const struct register_op *ops;
    int n_ops;
    char topic[64];
    int partition;
    struct fleet_state before, after;
};

static bool checks_broker(const struct judged *j, int id, int64_t be)
{
    char path[64];
    snprintf(path, sizeof path, "/klog/broker_epoch/%d", id);
    for (int i = 0; i < j->n_ops; i++)
        if (strcmp(j->ops[i].path, path) == 0 && j->ops[i].version != REGISTER_ANY_VERSION && (be < 0 || j->ops[i].version == be))
            return true;
    return false;
}

static int floor_of(const struct judged *j)
{
    int min_isr = j->topic[0] == 't' ? j->f->swarm.min_isr[j->topic[1] - '0'] : 1;
    return MIN(min_isr, j->after.n_replicas);
}

static void judge_epoch(const struct judged *j)
{
    const struct fleet_state *a = &j->before, *b = &j->after;
    bool same_replicas = a->n_replicas == b->n_replicas;
    for (int i = 0; i < b->n_replicas && same_replicas; i++)
        same_replicas = index_in(a->replicas, a->n_replicas, b->replicas[i]) >= 0;
    bool grows = a->leader != b->leader || a->leader_be != b->leader_be || !same_replicas;
    if (b->leader_epoch != a->leader_epoch + 1 && (grows || b->leader_epoch != a->leader_epoch))
        sim_fail(j->f->sim, "R1", "%s-%d: leader %d (epoch %d) becomes %d (epoch %d)", j->topic, j->partition, a->leader,
                 a->leader_epoch, b->leader, b->leader_epoch);
    MARK_IF(!same_replicas, "fleet: the replicas are others");
}

static void judge_leader(const struct judged *j)
{
    const struct fleet_state *a = &j->before, *b = &j->after;
    int64_t base;
    if (b->leader < 0 || (a->leader == b->leader && a->leader_be == b->leader_be))
        return;
    MARK_IF(b->leader == a->leader, "fleet: a leader leads again after its restart");
    MARK_IF(b->leader != a->leader && j->who == a->leader, "fleet: a leader hands over");
    MARK_IF(b->leader != a->leader && j->who == b->leader, "fleet: a member takes what nobody leads");
    if (b->recovery == b->leader_epoch) {
        MARK("fleet: elected though it may have lost something");
        return;
    }
    if (!counts(j->f, a, b->leader))
        sim_fail(j->f->sim, "R11", "%s-%d: broker %d is elected (epoch %d) and may have lost something", j->topic, j->partition,
                 b->leader, b->leader_epoch);
    if (broker_epoch(j->f, b->leader, &base) != b->leader_be || !checks_broker(j, b->leader, b->leader_be))
        sim_fail(j->f->sim, "R11", "%s-%d: broker %d is elected (epoch %d) in an incarnation that is over", j->topic, j->partition,
                 b->leader, b->leader_epoch);
}

static int64_t committed(const struct judged *j)
{
    int t = truth_topic_live(&j->f->truth, j->topic);
    return t < 0 || j->f->truth.topics[t].delete_asked ? 0 : j->f->truth.topics[t].parts[j->partition].committed;
}

static void judge_joiner(const struct judged *j, int i)
{
    int id = j->after.isr[i], was = index_in(j->before.isr, j->before.n_isr, id);
    int64_t base;
    if (was >= 0 && j->after.isr_be[i] <= j->before.isr_be[was])
        return;
    MARK_IF(was < 0, "fleet: the in-sync set grows");
    MARK_IF(was >= 0 && id != j->after.leader, "fleet: a member is believed again");
    if (broker_epoch(j->f, id, &base) != j->after.isr_be[i] || !checks_broker(j, id, j->after.isr_be[i]))
        sim_fail(j->f->sim, "R10", "%s-%d: broker %d joins in an incarnation that was not checked", j->topic, j->partition, id);
    int64_t end = log_end(j->f, id, j->topic, j->partition);
    if (end < committed(j))
        sim_fail(j->f->sim, "R9", "%s-%d: broker %d joins with a log up to %" PRId64 ", but all below %" PRId64 " is committed", j->topic,
                 j->partition, id, end, committed(j));
}

/* Who is in the one in-sync set and not in the other. */
static int differs_by(const struct fleet_state *a, const struct fleet_state *b)
{
    const struct fleet_state *more = a->n_isr > b->n_isr ? a : b, *less = more == a ? b : a;
    for (int i = 0; i < more->n_isr; i++)
        if (index_in(less->isr, less->n_isr, more->isr[i]) < 0)
            return more->isr[i];
    return -1;
}

static void judge(const struct judged *j)
{
    const struct fleet_state *a = &j->before, *b = &j->after;
    if (j->who >= 0 && !checks_broker(j, j->who, -1))
        sim_fail(j->f->sim, "R2", "%s-%d: broker %d changes its state whatever became of itself", j->topic, j->partition, j->who);
    judge_epoch(j);
    judge_leader(j);
    if (b->leader >= 0 && (a->leader != b->leader || a->leader_be != b->leader_be))
        fleet_happens(j->f, FLEET_ELECTED, b->leader, a->leader);
    else if (b->n_isr != a->n_isr)
        fleet_happens(j->f, b->n_isr > a->n_isr ? FLEET_ISR_GROWS : FLEET_ISR_SHRINKS, b->leader, differs_by(a, b));
    if (b->recovery == b->leader_epoch && b->recovery != a->recovery)
        return;
    MARK_IF(b->n_isr < a->n_isr, "fleet: the in-sync set shrinks");
    if (b->n_isr < a->n_isr && b->n_isr < floor_of(j))
        sim_fail(j->f->sim, "R8", "%s-%d: the in-sync set shrinks from %d to %d, below the floor of %d", j->topic, j->partition,
                 a->n_isr, b->n_isr, floor_of(j));
    for (int i = 0; i < b->n_isr; i++)
        judge_joiner(j, i);
}

bool fleet_has_topic(const struct fleet *f, const char *name, const struct uuid *id)
{
    char path[64];
    int64_t version;
    struct uuid found;
    snprintf(path, sizeof path, "/brokers/topics/%s", name);
    json_t *j = json_at(f, path, &version);
    const char *text = json_string_value(json_object_get(j, "topic_id"));
    bool has = text != NULL && uuid_parse(text, &found) && uuid_eq(&found, id);
    json_decref(j);
    return has;
}

/* A topic leaves the registers: somebody has asked for that, or its creation is taken back (M4), which nobody may have been told of. */
static void judge_deletion(struct fleet *f, const char *path)
{
    char name[64];
    int used = 0;
    if (sscanf(path, "/brokers/topics/%63[^/]%n", name, &used) != 1 || path[used] != '\0')
        return;
    int topic = truth_topic_live(&f->truth, name);
    if (topic < 0 || f->truth.topics[topic].delete_asked || !fleet_has_topic(f, name, &f->truth.topics[topic].id))
        return;
    int64_t n_acked = 0;
    for (int i = 0; i < TRUTH_PARTITIONS; i++)
        n_acked += f->truth.topics[topic].parts[i].n_acked;
    if (f->is_made[topic] || n_acked > 0)
        sim_fail(f->sim, "T1", "topic %s leaves the registers, and nobody has asked for its deletion", name);
    f->truth.topics[topic].delete_asked = true;
    truth_topic_deleted(&f->truth, topic);
}

static void on_write(void *arg, int who, const struct register_op *ops, int n)
{
    struct fleet *f = arg;
    for (int i = 0; i < n; i++) {
        struct judged j = { .f = f, .who = who, .ops = ops, .n_ops = n };
        int used = 0;
        sim_note(f->sim, "register written", who, ops[i].kind, (int64_t)ops[i].value.n);
        sim_say(f->sim, "%d writes %s %.*s", who, ops[i].path, (int)ops[i].value.n, (const char *)ops[i].value.p);
        if (ops[i].kind == REGISTER_DELETE)
            judge_deletion(f, ops[i].path);
        if (ops[i].kind != REGISTER_SET ||
            sscanf(ops[i].path, "/brokers/topics/%63[^/]/partitions/%d/state%n", j.topic, &j.partition, &used) != 2 || used == 0 ||
            !fleet_state_of(f, j.topic, j.partition, &j.before))
            continue;
        json_t *to = json_loadb((const char *)ops[i].value.p, ops[i].value.n, 0, NULL);
        state_of_json(to, j.before.version + 1, &j.after);
        json_decref(to);
        judge(&j);
    }
}

void fleet_rules_begin(struct fleet *f)
{
    simregisters_on_write(f->registers, on_write, f);
}

/* ---- in the end ---- */
static bool is_there(const struct fleet *f, int id)
{
    return id - 1 != f->swarm.gone && id >= 1 && id <= f->swarm.n_brokers;
}

static bool can_be_led(const struct fleet *f, const struct fleet_state *s)
{
    if (f->swarm.gone < 0)
        return true;
    for (int i = 0; i < s->n_isr; i++)
        if (is_there(f, s->isr[i]) && counts(f, s, s->isr[i]))
            return true;
    return false;
}

bool fleet_is_servable(const struct fleet *f, const char *topic, int partition)
{
    struct fleet_state s;
    int n = 0;
    if (!fleet_state_of(f, topic, partition, &s) || !can_be_led(f, &s))
        return false;
    for (int i = 0; i < s.n_replicas; i++)
        n += is_there(f, s.replicas[i]);
    return n >= (topic[0] == 't' ? f->swarm.min_isr[topic[1] - '0'] : 1);
}

static const char *unsettled_partition(struct fleet *f, const char *topic, int partition)
{
    static char text[160];
    struct fleet_state s;
    if (!fleet_state_of(f, topic, partition, &s) || !can_be_led(f, &s))
        return NULL;
    int64_t base;
    if (s.leader < 0 || !is_there(f, s.leader) || !is_registered(f, s.leader) || broker_epoch(f, s.leader, &base) != s.leader_be) {
        snprintf(text, sizeof text, "nobody leads %s-%d (leader %d, epoch %d, version %" PRId64 ")", topic, partition, s.leader,
                 s.leader_epoch, s.version);
        return text;
    }
    for (int i = 0; i < s.n_replicas; i++)
        if (is_there(f, s.replicas[i]) && !counts(f, &s, s.replicas[i])) {
            snprintf(text, sizeof text, "broker %d is not in sync in %s-%d (leader %d, epoch %d, version %" PRId64 ")", s.replicas[i],
                     topic, partition, s.leader, s.leader_epoch, s.version);
            return text;
        }
    return NULL;
}

const char *fleet_unsettled(struct fleet *f)
{
    static char text[64];
    const char **topics, *wrong = NULL;
    int n = 0;
    for (int i = 0; i < f->swarm.n_brokers; i++)
        if (i != f->swarm.gone && (f->b[i].broker == NULL || !is_registered(f, i + 1))) {
            snprintf(text, sizeof text, "broker %d is not registered", i + 1);
            return text;
        }
    if (register_tree_children(simregisters_tree(f->registers), "/brokers/topics", &topics, &n) < 0)
        return NULL;
    for (int i = 0; i < n && wrong == NULL; i++)
        for (int p = 0; p < TRUTH_PARTITIONS && wrong == NULL; p++)
            wrong = unsettled_partition(f, topics[i], p);
    free(topics);
    return wrong;
}

/* With nothing left to write every member of the in-sync set comes to have the same. */
static const char *uncopied_partition(struct fleet *f, const struct truth_topic *t, int partition)
{
    static char text[160];
    struct fleet_state s;
    int64_t end = -1;
    if (!fleet_is_servable(f, t->name, partition) || !fleet_state_of(f, t->name, partition, &s))
        return NULL;
    for (int i = 0; i < s.n_isr; i++) {
        if (!is_there(f, s.isr[i]) || !counts(f, &s, s.isr[i]))
            continue;
        int64_t other = log_end(f, s.isr[i], t->name, partition);
        if (end >= 0 && other != end) {
            snprintf(text, sizeof text, "the log of %s-%d ends at %" PRId64 " on the disk of broker %d, and at %" PRId64 " on another's",
                     t->name, partition, other, s.isr[i], end);
            return text;
        }
        end = other;
    }
    return NULL;
}

const char *fleet_uncopied(struct fleet *f)
{
    const char *wrong = NULL;
    for (int i = 0; i < f->truth.n_topics; i++) {
        const struct truth_topic *t = &f->truth.topics[i];
        for (int p = 0; p < t->n_partitions && t->is_known && !t->internal && !t->delete_asked && wrong == NULL; p++)
            wrong = uncopied_partition(f, t, p);
    }
    return wrong;
}

/* ---- what is on the disks ---- */
struct reading {
    struct fleet *f;
    int topic, partition, id;
    int64_t next;
    int32_t epoch;
    struct bytebuf all;
};

static bool take_batch(void *arg, const uint8_t *p, const struct sim_batch_head *h)
{
    struct reading *r = arg;
    const char *name = r->f->truth.topics[r->topic].name;
    if (h->base_offset != r->next)
        sim_fail(r->f->sim, "C1", "%s-%d: offsets %" PRId64 " to %" PRId64 " are not on the disk of broker %d", name, r->partition,
                 r->next, h->base_offset - 1, r->id);
    if (h->leader_epoch < r->epoch)
        sim_fail(r->f->sim, "R12", "%s-%d: on the disk of broker %d epoch %d stands behind epoch %d, at %" PRId64, name, r->partition,
                 r->id, h->leader_epoch, r->epoch, h->base_offset);
    r->epoch = h->leader_epoch;
    r->next = h->base_offset + h->last_offset_delta + 1;
    bytebuf_add(&r->all, p, (size_t)h->size);
    return true;
}

static void read_log(struct reading *r)
{
    struct simdisk *d = r->f->b[r->id - 1].disk;
    const struct truth_topic *t = &r->f->truth.topics[r->topic];
    char dir[128];
    int64_t at = 0;
    const char *wrong = NULL; /* where nothing was written there need be no log yet */
    if (diskread_find(d, 1, t->name, r->partition, false, dir, sizeof dir))
        wrong = diskread_log(d, dir, false, false, 0, take_batch, r, &at);
    if (wrong != NULL)
        sim_fail(r->f->sim, "C1", "the log of %s-%d on the disk of broker %d, behind offset %" PRId64 ": %s", t->name, r->partition,
                 r->id, r->next, wrong);
    if (r->next < t->parts[r->partition].committed)
        sim_fail(r->f->sim, "C1", "%s-%d ends at %" PRId64 " on the disk of in-sync broker %d, but all below %" PRId64 " was committed",
                 t->name, r->partition, r->next, r->id, t->parts[r->partition].committed);
}

static void first_difference(const struct reading *a, const struct reading *b)
{
    size_t at = 0;
    struct sim_batch_head h = { 0 };
    while (at < a->all.n && at < b->all.n) {
        sim_batch_head(a->all.p + at, a->all.n - at, &h);
        size_t size = (size_t)h.size;
        if (at + size > b->all.n || memcmp(a->all.p + at, b->all.p + at, size) != 0)
            break;
        at += size;
    }
    int64_t from = at >= a->all.n ? a->next : at >= b->all.n ? b->next : h.base_offset;
    if (from >= a->f->truth.topics[a->topic].parts[a->partition].committed)
        return; /* sent with acks=0, and it came as all were about to stop */
    sim_fail(a->f->sim, "R14", "%s-%d: brokers %d and %d have other logs from offset %" PRId64 " on (they end at %" PRId64 " and %" PRId64 ")",
             a->f->truth.topics[a->topic].name, a->partition, a->id, b->id, from, a->next, b->next);
}

/* All that stands in it: was it sent, once, in its order? */
static void tell_truth(struct reading *r)
{
    for (size_t at = 0; at < r->all.n;) {
        struct sim_batch_head h;
        sim_batch_head(r->all.p + at, r->all.n - at, &h);
        truth_read(&r->f->truth, r->topic, r->partition, r->all.p + at, r->all.n - at, -1, 0);
        at += (size_t)h.size;
    }
}

static void check_partition(struct fleet *f, int topic, int partition)
{
    const struct truth_topic *t = &f->truth.topics[topic];
    struct reading first = { .id = 0 };
    struct fleet_state s;
    if (!fleet_state_of(f, t->name, partition, &s))
        sim_fail(f->sim, "T1", "%s-%d is in no register, and nobody has asked for its deletion", t->name, partition);
    if (!fleet_is_servable(f, t->name, partition))
        return;
    for (int i = 0; i < s.n_isr; i++) {
        struct reading r = { .f = f, .topic = topic, .partition = partition, .id = s.isr[i] };
        if (!is_there(f, s.isr[i]) || !counts(f, &s, s.isr[i]))
            continue;
        read_log(&r);
        if (first.id == 0) {
            first = r;
            continue;
        }
        if (first.all.n != r.all.n || (r.all.n > 0 && memcmp(first.all.p, r.all.p, r.all.n) != 0))
            first_difference(&first, &r);
        MARK_IF(r.all.n > 0, "fleet: replicas were compared");
        bytebuf_done(&r.all);
    }
    if (first.id != 0)
        tell_truth(&first);
    bytebuf_done(&first.all);
}

void fleet_check_disks(struct fleet *f)
{
    for (int i = 0; i < f->truth.n_topics; i++) {
        const struct truth_topic *t = &f->truth.topics[i];
        for (int p = 0; p < t->n_partitions && t->is_known && !t->internal && !t->delete_asked; p++)
            check_partition(f, i, p);
    }
}
