/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for a broker, made up field by field from the schemas' tables: names decide what is likely, chance decides when
 * it is something else. What answers tell (ids, epochs, sessions) is remembered and used in later requests, so that they get
 * beyond the first check. No request is aimed at a known weakness; the seed is all there is.
 */
#include "request_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/broker_config.h"
#include "daemon/config/topic_config.h"
#include "lib/base/check.h"
#include "lib/base/kerr.h"
#include "lib/record/build.h"
#include "lib/record/codec.h"
#include "lib/wire/engine.h"

enum {
    ELEMENTS_MAX = 3000, /* of a message */
    STRING_MAX = 32767,  /* the longest that every version can say */
    TOPIC_NAME_MAX = 249,
};

enum remembered { GENERATIONS, SESSIONS, PRODUCERS, EPOCHS };

/* ---- chance ---- */
/* splitmix64 */
uint64_t maker_next(struct request_maker *k)
{
    uint64_t z = k->seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t maker_below(struct request_maker *k, uint32_t n)
{
    return (uint32_t)(maker_next(k) % n);
}

bool maker_once_in(struct request_maker *k, uint32_t n)
{
    return maker_below(k, n) == 0;
}

#define PICK(k, list) ((list)[maker_below((k), ARRAY_LEN(list))])

/* ---- numbers ---- */
static int64_t odd_number(struct request_maker *k)
{
    static const int64_t odd[] = { 0, 1, -1, -2, -3, 2, 127, 128, 255, 256, 32767, -32768, INT32_MAX, INT32_MIN,
                                   INT64_MAX, INT64_MIN, INT64_MAX - 1, 1LL << 32, 1LL << 31, 1000000 };

    if (!maker_once_in(k, 4))
        return PICK(k, odd);
    uint64_t v = maker_next(k) >> maker_below(k, 64);
    return maker_once_in(k, 2) ? (int64_t)v : (int64_t)(0 - v);
}

static int64_t remembered(struct request_maker *k, enum remembered what, int64_t otherwise)
{
    unsigned n = MIN(k->memory.n_numbers[what], (unsigned)REMEMBERED);

    return n == 0 || maker_once_in(k, 6) ? otherwise : k->memory.numbers[what][maker_below(k, n)];
}

/* Likely values of fields by name; a name that ends in '*' is the beginning of one. */
static const struct {
    const char *name;
    int64_t likely[8];
    int n;
} numbers[] = {
    { "partition_max_bytes", { 1 << 20, 1 << 20, 1, 100 }, 4 },
    { "partition*", { 0, 0, 0, 1, 1, 2, 3 }, 7 },
    { "index", { 0, 0, 0, 1, 1, 2, 3 }, 7 },
    { "acks", { -1, -1, 1, 1, 0 }, 5 },
    { "timeout_ms", { 1000, 1000, 100, 1, 0, 30000 }, 6 },
    { "max_wait_ms", { 0, 0, 0, 1, 1, 3 }, 6 },
    { "min_bytes", { 0, 1, 1, 100 }, 4 },
    { "max_bytes", { 1 << 20, 50 << 20, 1000, 1 }, 4 },
    { "isolation_level", { 0, 1 }, 2 },
    { "max_num_offsets", { 1, 2, 100 }, 3 },
    { "num_partitions", { 1, 1, 1, 2, 3, 4, -1 }, 7 },
    { "count", { 1, 2, 3, 4, 4 }, 5 },
    { "replication_factor", { 1, 1, 1, -1 }, 4 },
    { "session_timeout_ms", { 1, 10, 100, 1000, 10000 }, 5 },
    { "rebalance_timeout*", { 1, 1, 10, 10, 100 }, 5 },
    { "session_epoch", { -1, 0, 0, 1, 2, 3 }, 6 },
    { "replica_id", { -1, -1, -1, -1, -2, 1 }, 6 },
    { "broker_ids", { 1, 1, 1, 2 }, 4 },
    { "resource_type", { 2, 2, 2, 4, 4, 8 }, 6 },
    { "config_operation", { 0, 0, 0, 1, 2, 3 }, 6 },
    { "key_type", { 0, 0, 1 }, 3 },
    { "by", { 0, 1 }, 2 },
    { "endpoint_type", { 1, 1, 2 }, 3 },
    { "validate_only", { 0, 0, 0, 0, 1 }, 5 },
    { "allow_auto_topic_creation", { 0, 0, 1 }, 3 },
    { "timestamp", { -1, -2, -3, 0, 1700000000000, 1700000000100 }, 6 },
    { "retention_time_ms", { -1, -1, 0, 1 }, 4 },
    { "log_start_offset", { -1, -1, 0 }, 3 },
    { "known_end_offset", { -1, -1, 0, 3 }, 4 },
    { "producer_epoch", { -1, 0, 0, 0, 1 }, 5 },
    { "transaction_timeout_ms", { 1000, 60000 }, 2 },
};

static bool is_called(const char *name, const char *pattern)
{
    size_t n = strlen(pattern);

    return pattern[n - 1] == '*' ? strncmp(name, pattern, n - 1) == 0 : strcmp(name, pattern) == 0;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

static int64_t likely_number(struct request_maker *k, const char *name)
{
    if (is_called(name, "generation*") || strcmp(name, "member_epoch") == 0)
        return remembered(k, GENERATIONS, -1);
    if (strcmp(name, "session_id") == 0)
        return remembered(k, SESSIONS, 0);
    if (strcmp(name, "producer_id") == 0)
        return remembered(k, PRODUCERS, -1);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (is_called(name, numbers[i].name))
            return numbers[i].likely[maker_below(k, (uint32_t)numbers[i].n)];
    if (ends_in(name, "_epoch"))
        return remembered(k, EPOCHS, -1);
    return maker_below(k, maker_once_in(k, 2) ? 4 : 200); /* offsets, and what is new */
}

static void make_number(struct request_maker *k, const struct wire_field *f, void *ret)
{
    int64_t v = maker_once_in(k, 25) ? odd_number(k) : likely_number(k, f->name);

    wire_put_number(f->type == WIRE_ARRAY ? f->elem : f->type, f->size, v, ret);
}

static void make_uuid(struct request_maker *k, struct uuid *ret)
{
    unsigned n = MIN(k->memory.n_topic_ids, (unsigned)REMEMBERED);

    memset(ret, 0, sizeof *ret);
    if (n > 0 && !maker_once_in(k, 10))
        *ret = k->memory.topic_ids[maker_below(k, n)];
    else if (maker_once_in(k, 2))
        memset(ret, (int)maker_below(k, 256), sizeof *ret);
}

/* ---- strings ---- */
static const char *const topics[] = { "a", "a", "b", "b", "c", "compacted", "d.e_f-g", "t1" };
static const char *const rare_topics[] = { "__consumer_offsets", ".", "..", "a/b", "no such", "d_e_f_g", "A" };
static const char *const groups[] = { "g", "g", "g", "h", "h", "i", "group with spaces", "\xc3\xbc" };
static const char *const protocols[] = { "range", "range", "range", "roundrobin", "cooperative-sticky" };
static const char *const protocol_types[] = { "consumer", "consumer", "consumer", "connect", "" };
static const char *const instances[] = { "static-1", "static-1", "static-2" };
static const char *const states[] = { "Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance",
                                      "nonsense", "consumer", "classic" };
static const char *const values[] = { "-1", "0", "1", "2", "100", "1024", "4096", "100000", "true", "false",
                                      "compact", "delete", "compact,delete", "9223372036854775807", "1e400",
                                      "", " 1", "0x10", "-9223372036854775808", "2147483648" };

static const struct conf_key *any_key(struct request_maker *k)
{
    const struct conf_table *t = maker_once_in(k, 5) ? &broker_config_table : &topic_config_table;

    return k->last_key = &t->keys[maker_below(k, (uint32_t)t->n)];
}

static const char *config_value(struct request_maker *k, struct arena *a)
{
    const struct conf_key *key = k->last_key == NULL || maker_once_in(k, 20) ? any_key(k) : k->last_key;

    if (key->choices != NULL) {
        unsigned n = 0;
        while (key->choices[n] != NULL)
            n++;
        return key->choices[maker_below(k, n)];
    }
    if (maker_once_in(k, 3))
        return key->def;
    if (maker_once_in(k, 3))
        return arena_printf(a, "%u", maker_below(k, 100000));
    return PICK(k, values);
}

static const char *member_id(struct request_maker *k)
{
    unsigned n = MIN(k->memory.n_member_ids, (unsigned)REMEMBERED);

    return n == 0 || maker_once_in(k, 4) ? "" : k->memory.member_ids[maker_below(k, n)];
}

/* Does the struct have such a field? It tells which of the "name"s this is. */
static bool has_field(const struct wire_struct *s, const char *name)
{
    for (int i = 0; i < s->n_plain + s->n_tagged; i++)
        if (strcmp(s->fields[i].name, name) == 0)
            return true;
    return false;
}

static const char *likely_string(struct request_maker *k, const struct wire_struct *s, const char *name,
                                 struct arena *a)
{
    if (strcmp(name, "value") == 0)
        return config_value(k, a);
    if (strcmp(name, "configuration_keys") == 0 || (strcmp(name, "name") == 0 && has_field(s, "value")))
        return any_key(k)->name;
    if ((strcmp(name, "name") == 0 && has_field(s, "metadata")) || strcmp(name, "protocol_name") == 0)
        return PICK(k, protocols);
    if (strcmp(name, "protocol_type") == 0)
        return PICK(k, protocol_types);
    if (strcmp(name, "member_id") == 0)
        return member_id(k);
    if (strcmp(name, "group_instance_id") == 0)
        return PICK(k, instances);
    if (strncmp(name, "group", 5) == 0 || strcmp(name, "key") == 0 || strcmp(name, "coordinator_keys") == 0)
        return PICK(k, groups);
    if (ends_in(name, "_filter"))
        return PICK(k, states);
    if (strcmp(name, "client_software_name") == 0)
        return maker_once_in(k, 4) ? "other" : "klog";
    if (strcmp(name, "resource_name") == 0 && maker_once_in(k, 3))
        return maker_once_in(k, 3) ? "" : "1";
    if (maker_once_in(k, 40))
        return PICK(k, rare_topics);
    return PICK(k, topics);
}

static struct kstr odd_string(struct request_maker *k, struct arena *a)
{
    static const int32_t lengths[] = { 0, 1, 2, 248, TOPIC_NAME_MAX, TOPIC_NAME_MAX + 1, 4096, 4097, STRING_MAX,
                                       STRING_MAX };
    static const char fills[] = { 'x', 'x', '.', ' ', '\0', '\n', '/', '\xff', '\x80', '%' };
    int32_t n = PICK(k, lengths);
    char *p = arena_alloc(a, (size_t)n + 1);

    memset(p, PICK(k, fills), (size_t)n);
    if (n > 0)
        p[n - 1] = 'z';
    return (struct kstr){ p, n };
}

/* Fields that nearly everybody leaves null. */
static bool is_mostly_null(const char *name)
{
    return strcmp(name, "transactional_id") == 0 || strcmp(name, "group_instance_id") == 0 ||
           strcmp(name, "cluster_id") == 0;
}

static struct kstr make_string(struct request_maker *k, const struct wire_struct *s, const struct wire_field *f,
                               bool null_ok, struct arena *a)
{
    if (null_ok && maker_once_in(k, 4) == !is_mostly_null(f->name))
        return KSTR_NULL;
    if (maker_once_in(k, 50))
        return odd_string(k, a);
    return kstr_of(likely_string(k, s, f->name, a));
}

/* ---- bytes ---- */
static struct kstr random_bytes(struct request_maker *k, struct arena *a)
{
    uint32_t n = maker_once_in(k, 40) ? maker_below(k, 100000) : maker_below(k, 40);
    char *p = arena_alloc(a, n + 1);

    for (uint32_t i = 0; i < n; i++)
        p[i] = (char)maker_next(k);
    return kstr_bytes(p, n);
}

static void damage(struct request_maker *k, uint8_t *p, size_t n)
{
    if (n > 0)
        p[maker_next(k) % n] = (uint8_t)maker_next(k);
}

/* What consumers put into JoinGroup and SyncGroup: a version and a message of the schema. */
static struct kstr consumer_bytes(struct request_maker *k, const struct wire_message *m, struct arena *a)
{
    int version = (int)maker_below(k, (uint32_t)m->max_version + 1);
    struct wire_out out = { 0 };
    uint8_t *head = bytebuf_extend(&out.b, 2);

    put_be16(head, (uint16_t)version);
    KCHECK(wire_encode(m, version, maker_body(k, m, version, a), &out, NULL) == 0);
    if (maker_once_in(k, 10))
        damage(k, out.b.p, out.b.n);
    struct kstr ret = kstr_bytes(arena_dup(a, out.b.p, out.b.n), out.b.n);
    wire_out_done(&out);
    return ret;
}

static struct kstr make_bytes(struct request_maker *k, const struct wire_field *f, bool null_ok, struct arena *a)
{
    if (null_ok && maker_once_in(k, 2))
        return KSTR_NULL;
    if (strcmp(f->name, "metadata") == 0 && !maker_once_in(k, 5))
        return consumer_bytes(k, &wire_consumer_protocol_subscription, a);
    if (strcmp(f->name, "assignment") == 0 && !maker_once_in(k, 5))
        return consumer_bytes(k, &wire_consumer_protocol_assignment, a);
    return random_bytes(k, a);
}

static void add_record(struct request_maker *k, struct batch_builder *bb, struct arena *a)
{
    static const char *const keys[] = { "k1", "k2", "k3", "k4", "k5", "" };
    const struct record_header header = { kstr_of("h"), kstr_of("1") };
    struct kstr key = maker_once_in(k, 4) ? KSTR_NULL : kstr_of(PICK(k, keys));
    struct kstr value = maker_once_in(k, 6) ? KSTR_NULL : random_bytes(k, a);
    int64_t timestamp = maker_once_in(k, 30) ? odd_number(k) : 1700000000000 + maker_below(k, 1000);

    batch_builder_add(bb, timestamp, key, value, &header, maker_once_in(k, 5));
}

static void make_batch_bytes(struct request_maker *k, struct bytebuf *ret, struct arena *a)
{
    static const enum codec codecs[] = { CODEC_NONE, CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };
    struct batch_producer producer = { .id = -1, .epoch = -1, .base_sequence = -1 };
    struct batch_builder bb;
    enum codec codec = PICK(k, codecs);
    size_t at = ret->n;

    if (maker_once_in(k, 3))
        producer = (struct batch_producer){ .id = remembered(k, PRODUCERS, 0),
                                            .epoch = (int16_t)maker_below(k, 2),
                                            .base_sequence = (int32_t)maker_below(k, 5),
                                            .transactional = maker_once_in(k, 10) };
    batch_builder_init(&bb);
    for (uint32_t n = 1 + maker_below(k, 4); n > 0; n--)
        add_record(k, &bb, a);
    if (!codec_available(codec))
        codec = CODEC_NONE;
    KCHECK(batch_builder_finish(&bb, codec, 0, &producer, 0, ret) == 0);
    batch_builder_done(&bb);
    if (maker_once_in(k, 10))
        damage(k, ret->p + at, ret->n - at);
    if (maker_once_in(k, 20)) { /* so that the damage is looked at */
        damage(k, ret->p + at + BATCH_ATTRIBUTES, ret->n - at - BATCH_ATTRIBUTES);
        put_be32(ret->p + at + BATCH_CRC, batch_crc(ret->p + at, ret->n - at));
    }
}

static void make_records(struct request_maker *k, bool null_ok, struct arena *a, struct wire_records *ret)
{
    struct bytebuf b = { 0 };

    *ret = (struct wire_records){ .n = -1 };
    if (null_ok && maker_once_in(k, 50))
        return;
    if (!maker_once_in(k, 50))
        make_batch_bytes(k, &b, a);
    if (maker_once_in(k, 50))
        make_batch_bytes(k, &b, a);
    if (maker_once_in(k, 50) && b.n > 0)
        b.n = maker_below(k, (uint32_t)b.n);
    *ret = (struct wire_records){ .p = arena_dup(a, b.p == NULL ? (const uint8_t *)"" : b.p, b.n), .n = (int32_t)b.n };
    bytebuf_done(&b);
}

/* ---- structs ---- */
static void make_struct(struct request_maker *k, const struct wire_struct *s, int version, struct arena *a,
                        void *ret);

/* A value of any type but an array; `type` is that of f or of its elements. */
static void make_value(struct request_maker *k, const struct wire_struct *s, const struct wire_field *f, int type,
                       bool null_ok, int version, struct arena *a, void *ret)
{
    switch (type) {
    case WIRE_STR:
        *(struct kstr *)ret = make_string(k, s, f, null_ok, a);
        break;
    case WIRE_BYTES:
        *(struct kstr *)ret = make_bytes(k, f, null_ok, a);
        break;
    case WIRE_RECORDS:
        make_records(k, null_ok, a, ret);
        break;
    case WIRE_UUID:
        make_uuid(k, ret);
        break;
    case WIRE_STRUCT:
        make_struct(k, f->sub, version, a, ret);
        break;
    case WIRE_F64:
        *(double *)ret = (double)odd_number(k);
        break;
    default:
        make_number(k, f, ret);
    }
}

static int32_t count_of(struct request_maker *k)
{
    if (maker_once_in(k, 150))
        return (int32_t)maker_below(k, 2000);
    return maker_once_in(k, 12) ? 0 : 1 + (int32_t)maker_below(k, 3);
}

static void make_array(struct request_maker *k, const struct wire_struct *s, const struct wire_field *f,
                       bool null_ok, int version, struct arena *a, void *owner)
{
    int32_t wanted = count_of(k);
    int32_t n = null_ok && maker_once_in(k, 6) ? -1 : MIN(wanted, k->elements_left);
    char *p = n <= 0 ? NULL : arena_array(a, (size_t)n, f->size);

    k->elements_left -= MAX(n, 0);
    for (int32_t i = 0; i < n; i++)
        make_value(k, s, f, f->elem, false, version, a, p + (size_t)i * f->size);
    memcpy((char *)owner + f->at, &p, sizeof p);
    memcpy((char *)owner + f->n_at, &n, sizeof n);
}

static void make_struct(struct request_maker *k, const struct wire_struct *s, int version, struct arena *a,
                        void *ret)
{
    memcpy(ret, s->defaults, s->size);
    for (int i = 0; i < s->n_plain + s->n_tagged; i++) {
        const struct wire_field *f = &s->fields[i];
        bool null_ok = version >= f->null_from;

        if (!wire_field_in(f, version) || (f->tag >= 0 && maker_once_in(k, 2)))
            continue;
        if (f->type == WIRE_ARRAY)
            make_array(k, s, f, null_ok, version, a, ret);
        else
            make_value(k, s, f, f->type, null_ok, version, a, (char *)ret + f->at);
    }
}

void *maker_body(struct request_maker *k, const struct wire_message *m, int version, struct arena *a)
{
    void *body = arena_alloc(a, wire_msg_size(m));

    if (m->request)
        k->elements_left = ELEMENTS_MAX;
    make_struct(k, m->body, version, a, body);
    return body;
}

/* ---- answers ---- */
static void remember(struct request_maker *k, enum remembered what, int64_t v)
{
    k->memory.numbers[what][k->memory.n_numbers[what]++ % REMEMBERED] = v;
}

static void remember_member(struct request_maker *k, struct kstr id)
{
    if (id.n > 0 && id.n < MEMBER_ID_MAX)
        snprintf(k->memory.member_ids[k->memory.n_member_ids++ % REMEMBERED], MEMBER_ID_MAX, "%.*s", KSTR_FMT(id));
}

/* The code of an error that Kafka does not have, 0 else. */
static int look_at_number(struct request_maker *k, const struct wire_field *f, const void *p)
{
    if (f->type == WIRE_I16 && ends_in(f->name, "error_code"))
        return strcmp(kerr_name(*(const int16_t *)p), "UNKNOWN_CODE") == 0 ? *(const int16_t *)p : 0;
    if (f->type == WIRE_I32 && strcmp(f->name, "generation_id") == 0)
        remember(k, GENERATIONS, *(const int32_t *)p);
    else if (f->type == WIRE_I32 && strcmp(f->name, "session_id") == 0)
        remember(k, SESSIONS, *(const int32_t *)p);
    else if (f->type == WIRE_I64 && strcmp(f->name, "producer_id") == 0)
        remember(k, PRODUCERS, *(const int64_t *)p);
    else if (f->type == WIRE_I32 && strcmp(f->name, "leader_epoch") == 0)
        remember(k, EPOCHS, *(const int32_t *)p);
    return 0;
}

static int look_at_struct(struct request_maker *k, const struct wire_struct *s, int version, const void *p)
{
    int bad = 0;

    for (int i = 0; i < s->n_plain + s->n_tagged && bad == 0; i++) {
        const struct wire_field *f = &s->fields[i];
        const char *at = (const char *)p + f->at;

        if (!wire_field_in(f, version))
            continue;
        if (f->type == WIRE_STRUCT)
            bad = look_at_struct(k, f->sub, version, at);
        else if (f->type == WIRE_ARRAY && f->elem == WIRE_STRUCT)
            for (int32_t j = 0; j < wire_count(f, p) && bad == 0; j++)
                bad = look_at_struct(k, f->sub, version, (const char *)wire_elems(f, p) + (size_t)j * f->size);
        else if (f->type == WIRE_UUID)
            k->memory.topic_ids[k->memory.n_topic_ids++ % REMEMBERED] = *(const struct uuid *)(const void *)at;
        else if (f->type == WIRE_STR && strcmp(f->name, "member_id") == 0)
            remember_member(k, *(const struct kstr *)(const void *)at);
        else if (f->type != WIRE_ARRAY)
            bad = look_at_number(k, f, at);
    }
    return bad;
}

int maker_look_at(struct request_maker *k, const struct wire_message *m, int version, const void *msg)
{
    return look_at_struct(k, m->body, version, msg);
}
