/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the registers as JSON, both ways: topics with their partitions, configurations, brokers, and a partition's
 * leader and in-sync replicas. What is read may be of any version or damaged, so every field is judged before it is used;
 * unknown ones are passed over, so that a newer broker may add some. Pure.
 */
#include "daemon/meta/register_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/hostport.h"
#include "lib/base/mem.h"

/* A later version that adds fields raises these numbers; what may not be written by an earlier one raises CLUSTER_LEVEL. */
enum { PARTITION_VERSION = 2, TOPIC_VERSION = 3, CONFIG_VERSION = 1 };
enum { HOST_MAX = 1024 /* bytes; it goes into answers */, ENDPOINTS_MAX = 64 };

static void json_freep(json_t **j)
{
    json_decref(*j);
}

static json_t *parse(struct slice v)
{
    json_error_t err;
    json_t *j = json_loadb((const char *)v.p, v.n, JSON_REJECT_DUPLICATES, &err);

    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

/* Takes the reference. */
static char *print(json_t *j)
{
    KCHECK(j != NULL);
    char *text = json_dumps(j, JSON_COMPACT);
    KCHECK(text != NULL);
    json_decref(j);
    return text;
}

static bool get_i64(const json_t *j, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    const json_t *v = json_object_get(j, name);
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < min || n > max)
        return false;
    *ret = n;
    return true;
}

static bool get_i32(const json_t *j, const char *name, int32_t min, int32_t *ret)
{
    int64_t v;

    if (!get_i64(j, name, min, INT32_MAX, &v))
        return false;
    *ret = (int32_t)v;
    return true;
}

/* ---- partitions ---- */

static json_t *ids_json(const int32_t *ids, int32_t n)
{
    json_t *a = json_array();

    for (int32_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(ids[i]));
    return a;
}

static json_t *epochs_json(const int64_t *epochs, int32_t n)
{
    json_t *a = json_array();

    for (int32_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(epochs[i]));
    return a;
}

static bool get_list(const json_t *j, const char *name, int64_t ret[REPLICA_MAX], int32_t *ret_n)
{
    const json_t *a = json_object_get(j, name), *v;
    size_t i;

    if (!json_is_array(a) || json_array_size(a) > REPLICA_MAX)
        return false;
    json_array_foreach(a, i, v)
    {
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return false;
        ret[i] = json_integer_value(v);
    }
    *ret_n = (int32_t)json_array_size(a);
    return true;
}

static bool get_ids(const json_t *j, const char *name, int32_t ret[REPLICA_MAX], int32_t *ret_n)
{
    int64_t ids[REPLICA_MAX];

    if (!get_list(j, name, ids, ret_n))
        return false;
    for (int32_t i = 0; i < *ret_n; i++) {
        if (ids[i] > INT32_MAX)
            return false;
        ret[i] = (int32_t)ids[i];
    }
    return true;
}

/* What is left of j without the fields that are known, as text; NULL: nothing. The number of a later version stays with what
 * that has added. */
static char *take_extra(json_t *j, const char *const *known, size_t n, int version)
{
    bool is_newer = json_integer_value(json_object_get(j, "version")) > version;

    for (size_t i = 0; i < n; i++)
        if (!is_newer || strcmp(known[i], "version") != 0)
            json_object_del(j, known[i]);
    return json_object_size(j) == 0 ? NULL : print(json_incref(j));
}

static void give_extra(json_t *j, const char *extra)
{
    CLEANUP(json_freep) json_t *more = extra == NULL ? NULL : parse(slice_of(extra, strlen(extra)));

    if (more == NULL)
        return;
    json_object_update_missing(j, more);
    if (json_is_integer(json_object_get(more, "version")))
        json_object_set(j, "version", json_object_get(more, "version"));
}

static const char *const partition_fields[] = { "version", "leader",   "leader_be", "leader_epoch", "isr", "isr_be",
                                                "replicas", "adding", "removing",  "recovery",     "w", "claims" };

static json_t *claims_json(const struct partition_register *p)
{
    json_t *a = json_array();

    for (int32_t i = 0; i < p->n_claims; i++) {
        const struct election_claim *c = &p->claims[i];
        json_array_append_new(a, json_pack("{s:i, s:I, s:i, s:I}", "id", (int)c->id, "be", (json_int_t)c->be, "last_epoch",
                                           (int)c->last_epoch, "leo", (json_int_t)c->leo));
    }
    return a;
}

/* There may be none. */
static bool get_claims(const json_t *j, struct partition_register *ret)
{
    const json_t *a = json_object_get(j, "claims"), *v;
    size_t i;

    if (a == NULL)
        return true;
    if (!json_is_array(a) || json_array_size(a) > REPLICA_MAX)
        return false;
    json_array_foreach(a, i, v)
    {
        struct election_claim *c = &ret->claims[i];
        if (!get_i32(v, "id", 0, &c->id) || !get_i64(v, "be", 0, INT64_MAX, &c->be) ||
            !get_i32(v, "last_epoch", -1, &c->last_epoch) || !get_i64(v, "leo", 0, INT64_MAX, &c->leo))
            return false;
    }
    ret->n_claims = (int32_t)json_array_size(a);
    return true;
}

char *partition_register_encode(const struct partition_register *p, const char *writer)
{
    const struct partition_state *st = &p->st;
    json_t *j =
        json_pack("{s:i, s:i, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:s}", /* in the order of the rules */
                  "version", PARTITION_VERSION, "leader", (int)st->leader, "leader_be", (json_int_t)st->leader_be,
                  "leader_epoch", (int)st->leader_epoch, "isr", ids_json(st->isr, st->n_isr), "isr_be",
                  epochs_json(st->isr_be, st->n_isr), "replicas", ids_json(st->replicas, st->n_replicas),
                  "adding", ids_json(p->adding, p->n_adding), "removing",
                  ids_json(p->removing, p->n_removing), "recovery", (int)st->recovery, "w", writer);
    if (p->n_claims > 0)
        json_object_set_new(j, "claims", claims_json(p));
    give_extra(j, p->extra);
    return print(j);
}

static bool are_different(const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < i; k++)
            if (ids[k] == ids[i])
                return false;
    return true;
}

static bool is_consistent(const struct partition_register *p)
{
    return state_is_sound(&p->st) && are_different(p->adding, p->n_adding) && are_different(p->removing, p->n_removing);
}

int partition_register_decode(struct slice v, int64_t version, struct partition_register *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    struct partition_register p = { .st.version = version };
    int32_t format, n_be;

    bool good = j != NULL && get_i32(j, "version", PARTITION_VERSION, &format) && get_i32(j, "leader", -1, &p.st.leader) &&
                get_i64(j, "leader_be", 0, INT64_MAX, &p.st.leader_be) &&
                get_i32(j, "leader_epoch", 0, &p.st.leader_epoch) &&
                get_ids(j, "isr", p.st.isr, &p.st.n_isr) && get_list(j, "isr_be", p.st.isr_be, &n_be) &&
                n_be == p.st.n_isr && get_ids(j, "replicas", p.st.replicas, &p.st.n_replicas) &&
                get_ids(j, "adding", p.adding, &p.n_adding) &&
                get_ids(j, "removing", p.removing, &p.n_removing) && get_i32(j, "recovery", 0, &p.st.recovery) &&
                get_claims(j, &p) && is_consistent(&p);
    if (!good)
        return -EBADMSG;
    p.extra = take_extra(j, partition_fields, ARRAY_LEN(partition_fields), PARTITION_VERSION);
    *ret = p;
    return 0;
}

/* ---- topics ---- */

static const char *const topic_fields[] = { "version", "topic_id", "unfinished" };

char *topic_register_encode(const struct topic_register *t)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(&t->id, text);
    json_t *j = json_pack("{s:i, s:s}", "version", TOPIC_VERSION, "topic_id", text);
    if (t->unfinished_from >= 0)
        json_object_set_new(j, "unfinished",
                            json_pack("{s:i, s:i, s:I}", "from", (int)t->unfinished_from, "by", (int)t->writer, "be",
                                      (json_int_t)t->writer_be));
    give_extra(j, t->extra);
    return print(j);
}

int topic_register_decode(struct slice v, struct topic_register *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *text = json_string_value(json_object_get(j, "topic_id"));
    const json_t *u = json_object_get(j, "unfinished");
    struct topic_register t = { .unfinished_from = -1 };

    if (text == NULL || !uuid_parse(text, &t.id) || uuid_is_zero(&t.id))
        return -EBADMSG;
    if (u != NULL && (!get_i32(u, "from", 0, &t.unfinished_from) || t.unfinished_from > CLUSTER_PARTITIONS_MAX ||
                      !get_i32(u, "by", 0, &t.writer) ||
                      !get_i64(u, "be", 0, INT64_MAX, &t.writer_be)))
        return -EBADMSG;
    t.extra = take_extra(j, topic_fields, ARRAY_LEN(topic_fields), TOPIC_VERSION);
    *ret = t;
    return 0;
}

/* ---- configurations ---- */

char *config_register_encode(const struct topic_config_entry *entries, size_t n, const char *extra)
{
    CLEANUP(json_freep) json_t *more = extra == NULL ? NULL : parse(slice_of(extra, strlen(extra)));
    json_t *config = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(config, entries[i].key, json_string(entries[i].value));
    if (json_is_object(json_object_get(more, "config")))
        json_object_update_missing(config, json_object_get(more, "config"));
    json_t *j = json_pack("{s:i, s:o}", "version", CONFIG_VERSION, "config", config);
    give_extra(j, extra);
    return print(j);
}

char *config_register_extra(struct slice v, bool (*is_known)(const char *key))
{
    static const char *const known[] = { "version" };
    CLEANUP(json_freep) json_t *j = parse(v);
    json_t *config = json_object_get(j, "config");
    const char *key;
    void *next;
    json_t *value;

    json_object_foreach_safe(config, next, key, value)
        if (is_known(key))
            json_object_del(config, key);
    if (json_object_size(config) == 0)
        json_object_del(j, "config");
    return j == NULL ? NULL : take_extra(j, known, ARRAY_LEN(known), CONFIG_VERSION);
}

int config_register_decode(struct slice v, struct topic_config_entry **ret, size_t *ret_n)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    json_t *config = json_object_get(j, "config"), *value;
    const char *key;

    if (!json_is_object(config))
        return -EBADMSG;
    struct topic_config_entry *entries = xcalloc(json_object_size(config) + 1, sizeof *entries);
    size_t n = 0;
    json_object_foreach(config, key, value)
    {
        if (!json_is_string(value)) {
            config_entries_free(entries, n);
            return -EBADMSG;
        }
        entries[n++] = (struct topic_config_entry){ xstrdup(key), xstrdup(json_string_value(value)) };
    }
    *ret = entries;
    *ret_n = n;
    return 0;
}

void config_entries_free(struct topic_config_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(entries[i].key);
        free(entries[i].value);
    }
    free(entries);
}

/* ---- brokers ---- */

/* "NAME://host:port", an IPv6 address in brackets. */
static json_t *endpoint_json(const struct cluster_endpoint *e)
{
    bool v6 = strchr(e->host, ':') != NULL;
    CLEANUP(freep) char *text =
        xasprintf("%s://%s%s%s:%d", e->listener, v6 ? "[" : "", e->host, v6 ? "]" : "", e->port);

    return json_string(text);
}

char *broker_register_encode(const struct cluster_broker *b)
{
    json_t *endpoints = json_array();

    for (size_t i = 0; i < b->n_endpoints; i++)
        json_array_append_new(endpoints, endpoint_json(&b->endpoints[i]));
    return print(json_pack("{s:i, s:o, s:s, s:i, s:s?, s:i}", "version", 5, "endpoints", endpoints, "host",
                           b->endpoints[0].host, "port", (int)b->endpoints[0].port, "rack", b->rack, "level", CLUSTER_LEVEL));
}

static bool endpoint_parse(const char *text, struct cluster_endpoint *ret)
{
    const char *sep = text == NULL ? NULL : strstr(text, "://");
    struct hostport hp;

    if (sep == NULL || sep == text || strlen(text) > HOST_MAX || !hostport_parse(sep + 3, strlen(sep + 3), &hp) ||
        hp.port < 0)
        return false;
    *ret = (struct cluster_endpoint){ xstrndup(text, (size_t)(sep - text)),
                                      xstrndup(hp.host.p, (size_t)hp.host.n), hp.port };
    return true;
}

static bool endpoints_parse(const json_t *a, struct cluster_broker *b)
{
    const json_t *v;
    size_t i;

    if (!json_is_array(a) || json_array_size(a) == 0 || json_array_size(a) > ENDPOINTS_MAX)
        return false;
    b->endpoints = xcalloc(json_array_size(a), sizeof *b->endpoints);
    json_array_foreach(a, i, v)
    {
        if (!endpoint_parse(json_string_value(v), &b->endpoints[i]))
            return false;
        b->n_endpoints++;
    }
    return true;
}

int broker_register_decode(struct slice v, int32_t id, struct cluster_broker *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *rack = json_string_value(json_object_get(j, "rack"));
    struct cluster_broker b = { .id = id };

    if (!endpoints_parse(json_object_get(j, "endpoints"), &b) || (rack != NULL && strlen(rack) > HOST_MAX)) {
        cluster_broker_done(&b);
        return -EBADMSG;
    }
    b.rack = rack == NULL ? NULL : xstrdup(rack);
    *ret = b;
    return 0;
}

char *epoch_register_encode(const struct epoch_register *e)
{
    return print(json_pack("{s:I, s:s*}", "base", (json_int_t)e->base, "w", e->mark[0] == '\0' ? NULL : e->mark));
}

int epoch_register_decode(struct slice v, struct epoch_register *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *mark = json_string_value(json_object_get(j, "w"));
    struct epoch_register e = { 0 };

    if (!get_i64(j, "base", 0, INT64_MAX, &e.base) || (mark != NULL && strlen(mark) >= sizeof e.mark))
        return -EBADMSG;
    snprintf(e.mark, sizeof e.mark, "%s", mark == NULL ? "" : mark);
    *ret = e;
    return 0;
}

/* ---- the level of the cluster ---- */

char *level_register_encode(int32_t level)
{
    return print(json_pack("{s:i, s:i}", "version", 1, "level", (int)level));
}

int level_register_decode(struct slice v, int32_t *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);

    return get_i32(j, "level", 1, ret) ? 0 : -EBADMSG;
}

/* ---- producer ids: Kafka writes the numbers as text ---- */

char *id_block_encode(int32_t broker_id, int64_t first, int64_t last)
{
    char from[24], to[24];

    snprintf(from, sizeof from, "%lld", (long long)first);
    snprintf(to, sizeof to, "%lld", (long long)last);
    return print(json_pack("{s:i, s:i, s:s, s:s}", "version", 1, "broker", (int)broker_id, "block_start",
                           from, "block_end", to));
}

int id_block_decode(struct slice v, int64_t *ret_last)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *text = json_string_value(json_object_get(j, "block_end"));
    char *end;

    if (text == NULL)
        return -EBADMSG;
    errno = 0;
    long long last = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || last < 0)
        return -EBADMSG;
    *ret_last = last;
    return 0;
}
