/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of __consumer_offsets, written and read. Both go through the schemas of lib/wire (offset and group keys and
 * values), with the two bytes of version before them that Kafka puts there. Reading trusts nothing: a record gives its parts
 * or a reason why not, and group_log_restore makes a group only of members that could have joined it. Pure.
 */
#include "daemon/group/group_log.h"

#include <string.h>

#include "lib/base/check.h"
#include "lib/base/varint.h"
#include "lib/wire/wire.h"

enum {
    OFFSET_KEY_VERSION = 1,
    GROUP_KEY_VERSION = 2,
    VALUE_VERSION = 3,        /* offset and group values both */
    OFFSET_VALUE_EXPIRES = 1, /* the only version with an expiry time */
};

/* ---- writing ---- */

static struct kstr encode(const struct wire_message *m, int version, const void *msg, struct wire_out *out)
{
    uint8_t *v = bytebuf_extend(&out->b, 2);

    put_be16(v, (uint16_t)version);
    int rc = wire_encode(m, version, msg, out, NULL);
    KCHECK(rc == 0 && out->n_gaps == 0);
    return kstr_bytes(out->b.p, out->b.n);
}

static void add_record(struct batch_builder *b, struct kstr key, struct kstr value, int64_t now_ms)
{
    batch_builder_add(b, now_ms, key, value, NULL, 0);
}

/* Version 3 of the value has no room for the topic's id, and version 4 is not known to all who read this topic: so a
 * header has it, which they pass over. */
static void add_position(struct batch_builder *b, struct kstr key, struct kstr value, const struct uuid *topic_id,
                         int64_t now_ms)
{
    struct record_header h = { kstr_of(GROUP_LOG_TOPIC_ID), kstr_bytes(topic_id->b, sizeof topic_id->b) };

    batch_builder_add(b, now_ms, key, value, &h, uuid_is_zero(topic_id) ? 0 : 1);
}

static struct kstr offset_key(const char *group, const char *topic, int32_t partition, struct wire_out *out)
{
    struct offset_commit_key k = { .group = kstr_of(group), .topic = kstr_of(topic), .partition = partition };

    return encode(&wire_offset_commit_key, OFFSET_KEY_VERSION, &k, out);
}

void group_log_add_offset(struct batch_builder *b, const char *group, const struct committed_offset *o,
                          int64_t now_ms)
{
    struct wire_out key = { 0 }, value = { 0 };
    struct offset_commit_value v;

    wire_defaults(&wire_offset_commit_value, &v);
    v.offset = o->offset;
    v.leader_epoch = o->leader_epoch;
    v.metadata = kstr_bytes(o->metadata_bytes > 0 ? o->metadata : "", (size_t)o->metadata_bytes);
    v.commit_timestamp = o->commit_ms;
    v.expire_timestamp = o->expire_ms;
    int version = o->expire_ms >= 0 ? OFFSET_VALUE_EXPIRES : VALUE_VERSION;
    struct kstr k = offset_key(group, o->topic, o->partition, &key);
    add_position(b, k, encode(&wire_offset_commit_value, version, &v, &value), &o->topic_id, now_ms);
    wire_out_done(&key);
    wire_out_done(&value);
}

void group_log_add_offset_tombstone(struct batch_builder *b, const char *group, const char *topic,
                                    int32_t partition, int64_t now_ms)
{
    struct wire_out key = { 0 };

    add_record(b, offset_key(group, topic, partition, &key), KSTR_NULL, now_ms);
    wire_out_done(&key);
}

static struct kstr group_key(const char *group, struct wire_out *out)
{
    struct group_metadata_key k = { .group = kstr_of(group) };

    return encode(&wire_group_metadata_key, GROUP_KEY_VERSION, &k, out);
}

static void member_to_wire(const struct group *g, const struct group_member *m,
                           struct group_metadata_value_members *w)
{
    const struct group_protocol *p = g->protocol != NULL ? group_member_protocol(m, g->protocol) : NULL;

    w->member_id = kstr_of(m->id);
    w->group_instance_id = kstr_of(m->instance_id);
    w->client_id = kstr_of(m->client_id);
    w->client_host = kstr_of(m->client_host);
    w->rebalance_timeout = m->rebalance_timeout_ms;
    w->session_timeout = m->session_timeout_ms;
    w->subscription = p != NULL ? kstr_bytes(p->metadata, (size_t)p->metadata_bytes) : kstr_of("");
    w->assignment =
        m->assignment != NULL ? kstr_bytes(m->assignment, (size_t)m->assignment_bytes) : kstr_of("");
}

void group_log_add_group(struct batch_builder *b, const struct group *g, int64_t now_ms)
{
    struct wire_out key = { 0 }, value = { 0 };
    struct group_metadata_value v;
    struct arena a;
    int32_t i = 0;

    arena_init(&a);
    wire_defaults(&wire_group_metadata_value, &v);
    v.protocol_type = kstr_of(g->protocol_type != NULL ? g->protocol_type : "");
    v.generation = g->generation;
    v.protocol = kstr_of(g->protocol);
    v.leader = kstr_of(g->members != NULL ? g->leader : NULL);
    v.current_state_timestamp = g->state_since_ms;
    v.n_members = group_n_members(g);
    v.members = arena_array(&a, (size_t)v.n_members, sizeof *v.members);
    for (const struct group_member *m = g->members; m != NULL; m = m->hh.next)
        member_to_wire(g, m, &v.members[i++]);
    struct kstr k = group_key(g->id, &key);
    add_record(b, k, encode(&wire_group_metadata_value, VALUE_VERSION, &v, &value), now_ms);
    wire_out_done(&key);
    wire_out_done(&value);
    arena_done(&a);
}

void group_log_add_group_tombstone(struct batch_builder *b, const char *group, int64_t now_ms)
{
    struct wire_out key = { 0 };

    add_record(b, group_key(group, &key), KSTR_NULL, now_ms);
    wire_out_done(&key);
}

/* ---- reading ---- */

#define BAD_FORM "it is not of the form that its version says, or of a later version"

static char *arena_cstr(struct arena *a, struct kstr s)
{
    return s.n < 0 ? NULL : arena_printf(a, "%.*s", KSTR_FMT(s));
}

/* Names become C strings here: "a" and "a\0b" would be the same group. */
static bool is_text(struct kstr s)
{
    return s.n <= 0 || memchr(s.p, '\0', (size_t)s.n) == NULL;
}

/* Cuts the version off the front; -1 when there is none. */
static int cut_version(struct kstr s, struct slice *ret_rest)
{
    if (s.n < 2)
        return -1;
    *ret_rest = slice_of(s.p + 2, (size_t)s.n - 2);
    return (int16_t)get_be16(s.p);
}

static bool version_known(const struct wire_message *m, int version)
{
    return version >= m->min_version && version <= m->max_version;
}

/* Zero when no header says it, or not as it should. */
static struct uuid header_topic_id(const struct record *rec)
{
    struct uuid id = { { 0 } };
    struct slice rest = rec->headers;
    struct kstr key, value;

    while (record_header_next(&rest, &key, &value) == 1)
        if (kstr_eqz(key, GROUP_LOG_TOPIC_ID) && value.n == sizeof id.b)
            memcpy(id.b, value.p, sizeof id.b);
    return id;
}

static const char *read_offset_value(const struct record *rec, struct arena *a, struct committed_offset *o)
{
    struct offset_commit_value v;
    struct slice rest = { NULL, 0 };
    int version = cut_version(rec->value, &rest);

    if (!version_known(&wire_offset_commit_value, version) ||
        wire_decode(&wire_offset_commit_value, version, rest, a, &v) != 0)
        return BAD_FORM;
    o->topic_id = uuid_is_zero(&v.topic_id) ? header_topic_id(rec) : v.topic_id;
    o->offset = v.offset;
    o->leader_epoch = MAX(v.leader_epoch, -1);
    o->metadata = arena_dup(a, v.metadata.p, (size_t)MAX(v.metadata.n, 0));
    o->metadata_bytes = MAX(v.metadata.n, 0);
    o->commit_ms = MAX(v.commit_timestamp, -1);
    o->expire_ms = MAX(v.expire_timestamp, -1);
    return NULL;
}

static const char *read_offset(const struct record *rec, int version, struct slice key, struct arena *a,
                               struct group_log_record *ret)
{
    struct offset_commit_key k;

    if (wire_decode(&wire_offset_commit_key, version, key, a, &k) != 0)
        return BAD_FORM;
    if (!is_text(k.group) || !is_text(k.topic))
        return "a name in it has a NUL";
    if (k.partition < 0)
        return "it is of a partition below 0";
    ret->kind = GROUP_LOG_OFFSET;
    ret->group = arena_cstr(a, k.group);
    ret->offset = (struct committed_offset){ .topic = arena_cstr(a, k.topic),
                                             .partition = k.partition,
                                             .record_offset = rec->offset };
    return ret->tombstone ? NULL : read_offset_value(rec, a, &ret->offset);
}

static const char *read_group(const struct record *rec, struct slice key, struct arena *a,
                              struct group_log_record *ret)
{
    struct group_metadata_key k;
    struct slice rest = { NULL, 0 };

    if (wire_decode(&wire_group_metadata_key, GROUP_KEY_VERSION, key, a, &k) != 0)
        return BAD_FORM;
    if (!is_text(k.group))
        return "a name in it has a NUL";
    ret->kind = GROUP_LOG_GROUP;
    ret->group = arena_cstr(a, k.group);
    if (ret->tombstone)
        return NULL;
    struct group_metadata_value *v = arena_alloc(a, sizeof *v);
    int version = cut_version(rec->value, &rest);
    if (!version_known(&wire_group_metadata_value, version) ||
        wire_decode(&wire_group_metadata_value, version, rest, a, v) != 0)
        return BAD_FORM;
    ret->value = v;
    return NULL;
}

const char *group_log_read(const struct record *rec, struct arena *a, struct group_log_record *ret)
{
    struct slice key = { NULL, 0 };
    int version = cut_version(rec->key, &key);

    *ret = (struct group_log_record){ .kind = GROUP_LOG_OTHER, .tombstone = kstr_is_null(rec->value) };
    if (version < 0)
        return "its key has no version";
    if (version <= OFFSET_KEY_VERSION)
        return read_offset(rec, version, key, a, ret);
    if (version == GROUP_KEY_VERSION)
        return read_group(rec, key, a, ret);
    return NULL;
}

/* ---- restoring ---- */

/* A member that could not be told from another, or not be found again, is left out. */
static const char *member_fault(const struct group *g, const struct group_metadata_value_members *m,
                                struct arena *a)
{
    if (m->member_id.n <= 0 || !is_text(m->member_id))
        return "a member of the group has no id";
    if (group_member_find(g, arena_cstr(a, m->member_id)) != NULL)
        return "two members of the group have one id";
    if (m->group_instance_id.n >= 0 && !is_text(m->group_instance_id))
        return "an instance id in it has a NUL";
    if (m->group_instance_id.n >= 0 && group_instance_find(g, arena_cstr(a, m->group_instance_id)) != NULL)
        return "two members of the group have one instance id";
    return NULL;
}

static void restore_member(struct group *g, const struct group_metadata_value *v,
                           const struct group_metadata_value_members *m, struct arena *a, int64_t now_mono_ms)
{
    struct kstr name = kstr_is_null(v->protocol) ? kstr_of("") : v->protocol;
    struct kstr metadata = m->subscription;
    int32_t session_ms = MAX(m->session_timeout, 1);
    struct group_join as = {
        .member_id = arena_cstr(a, m->member_id),
        .instance_id = arena_cstr(a, m->group_instance_id),
        .client_id = arena_cstr(a, m->client_id),
        .client_host = arena_cstr(a, m->client_host),
        .session_timeout_ms = session_ms,
        .rebalance_timeout_ms = m->rebalance_timeout > 0 ? m->rebalance_timeout : session_ms,
        .protocol_type = arena_cstr(a, v->protocol_type),
        .names = &name,
        .metadata = &metadata,
        .n_protocols = 1,
    };

    group_restore_member(g, &as, m->assignment.p, m->assignment.n, now_mono_ms);
}

const char *group_log_restore(struct group *g, const struct group_metadata_value *v, struct arena *a,
                              int64_t now_mono_ms)
{
    char *type = v->protocol_type.n > 0 ? arena_cstr(a, v->protocol_type) : NULL;
    /* A group with members has a protocol, even if that has no name. */
    const char *protocol = v->n_members > 0 && kstr_is_null(v->protocol) ? "" : arena_cstr(a, v->protocol);
    int32_t generation = MIN(MAX(v->generation, 0), GROUP_RESTORED_GENERATION_MAX);
    const char *why = generation != v->generation ? "the group's generation is none" : NULL;

    group_restore(g, generation, type, protocol, arena_cstr(a, v->leader), MAX(v->current_state_timestamp, -1));
    for (int32_t i = 0; i < v->n_members; i++) {
        const char *fault = member_fault(g, &v->members[i], a);
        if (fault == NULL)
            restore_member(g, v, &v->members[i], a, now_mono_ms);
        else if (why == NULL)
            why = fault;
    }
    group_restored(g, now_mono_ms);
    return why;
}
