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
#include "lib/base/mem.h"

enum { HOST_MAX = 1024 }; /* bytes; it goes into answers */

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

static const char *const partition_fields[] = { "version", "leader",   "leader_be", "leader_epoch", "isr", "isr_be",
                                                "replicas", "adding", "removing",  "recovery",     "w" };

/* What is left of j without the fields above, as text; NULL: nothing. */
static char *take_extra(json_t *j)
{
    for (size_t i = 0; i < ARRAY_LEN(partition_fields); i++)
        json_object_del(j, partition_fields[i]);
    return json_object_size(j) == 0 ? NULL : print(json_incref(j));
}

char *partition_register_encode(const struct partition_register *p, const char *writer)
{
    const struct partition_state *st = &p->st;
    CLEANUP(json_freep) json_t *extra =
        p->extra == NULL ? NULL : parse(slice_of(p->extra, strlen(p->extra)));
    json_t *j =
        json_pack("{s:i, s:i, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:s}", /* in the order of the rules */
                  "version", 2, "leader", (int)st->leader, "leader_be", (json_int_t)st->leader_be,
                  "leader_epoch", (int)st->leader_epoch, "isr", ids_json(st->isr, st->n_isr), "isr_be",
                  epochs_json(st->isr_be, st->n_isr), "replicas", ids_json(st->replicas, st->n_replicas),
                  "adding", ids_json(p->adding, p->n_adding), "removing",
                  ids_json(p->removing, p->n_removing), "recovery", (int)st->recovery, "w", writer);
    if (extra != NULL)
        json_object_update_missing(j, extra);
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

    bool good = j != NULL && get_i32(j, "version", 2, &format) && get_i32(j, "leader", -1, &p.st.leader) &&
                get_i64(j, "leader_be", 0, INT64_MAX, &p.st.leader_be) &&
                get_i32(j, "leader_epoch", 0, &p.st.leader_epoch) &&
                get_ids(j, "isr", p.st.isr, &p.st.n_isr) && get_list(j, "isr_be", p.st.isr_be, &n_be) &&
                n_be == p.st.n_isr && get_ids(j, "replicas", p.st.replicas, &p.st.n_replicas) &&
                get_ids(j, "adding", p.adding, &p.n_adding) &&
                get_ids(j, "removing", p.removing, &p.n_removing) && get_i32(j, "recovery", 0, &p.st.recovery) &&
                is_consistent(&p);
    if (!good)
        return -EBADMSG;
    p.extra = take_extra(j);
    *ret = p;
    return 0;
}

/* ---- topics ---- */

char *topic_register_encode(const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(id, text);
    return print(json_pack("{s:i, s:s}", "version", 3, "topic_id", text));
}

int topic_register_decode(struct slice v, struct uuid *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *text = json_string_value(json_object_get(j, "topic_id"));

    struct uuid id;

    if (text == NULL || !uuid_parse(text, &id) || uuid_is_zero(&id))
        return -EBADMSG;
    *ret = id;
    return 0;
}

/* ---- configurations ---- */

char *config_register_encode(const struct topic_config_entry *entries, size_t n)
{
    json_t *config = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(config, entries[i].key, json_string(entries[i].value));
    return print(json_pack("{s:i, s:o}", "version", 1, "config", config));
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

static json_t *endpoints_json(const struct broker_config *c)
{
    struct broker_listener *ls;
    size_t n;
    char err[256];
    json_t *a = json_array();

    if (broker_config_listeners(c, &ls, &n, err, sizeof err) < 0)
        return a;
    for (size_t i = 0; i < n; i++) {
        const char *host = ls[i].advertised_host != NULL ? ls[i].advertised_host : ls[i].host;
        CLEANUP(freep) char *text = xasprintf("%s://%s:%d", ls[i].name, host, ls[i].advertised_port);
        json_array_append_new(a, json_string(text));
    }
    broker_listeners_free(ls, n);
    return a;
}

char *broker_register_encode(const struct cluster_broker *b, const struct broker_config *c)
{
    return print(json_pack("{s:i, s:o, s:s, s:i, s:s?}", "version", 5, "endpoints", endpoints_json(c), "host",
                           b->host, "port", (int)b->port, "rack", b->rack));
}

int broker_register_decode(struct slice v, int32_t id, struct cluster_broker *ret)
{
    CLEANUP(json_freep) json_t *j = parse(v);
    const char *host = json_string_value(json_object_get(j, "host"));
    const char *rack = json_string_value(json_object_get(j, "rack"));
    int32_t port;

    if (host == NULL || strlen(host) > HOST_MAX || (rack != NULL && strlen(rack) > HOST_MAX) ||
        !get_i32(j, "port", 0, &port) || port > 65535)
        return -EBADMSG;
    *ret = (struct cluster_broker){ id, xstrdup(host), port, rack == NULL ? NULL : xstrdup(rack) };
    return 0;
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
