/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers -> structs. Blocks; on a worker or on the thread that starts the broker. Touches nothing of the
 * cluster but its register store. What is read in pieces may change in between: -EAGAIN, and the watch
 * has made the slot dirty again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/cluster_int.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#define CONFIG_VALUE_MAX 1024

/* ---- configurations ---- */

struct topic_config *topic_config_lenient(const char *what, const struct broker_config *defaults,
                                          const struct topic_config_entry *entries, size_t n)
{
    char err[512];
    struct topic_config *cfg = topic_config_new(defaults, entries, n, err, sizeof err);
    if (cfg != NULL)
        return cfg;

    struct topic_config_entry *good = xcalloc(n + 1, sizeof *good);
    size_t n_good = 0;
    for (size_t i = 0; i < n; i++) {
        good[n_good] = entries[i];
        struct topic_config *tried = topic_config_new(defaults, good, n_good + 1, err, sizeof err);
        if (tried == NULL) {
            log_warn("%s: %s; the setting is passed over", what, err);
            continue;
        }
        topic_config_unref(cfg);
        cfg = tried;
        n_good++;
    }
    free(good);
    return cfg != NULL ? cfg : topic_config_new(defaults, NULL, 0, err, sizeof err);
}

/* An earlier version, or the default of its broker, let the topic of the groups' positions be deleted from: it is not, whatever
 * its register says. */
static struct topic_config *keep_positions(struct topic_config *cfg, const char *what, const struct broker_config *defaults,
                                           const struct topic_config_entry *entries, size_t n)
{
    if (cfg->compact && !cfg->delete_)
        return cfg;
    log_warn("%s: its cleanup.policy is %s, by which the positions of groups would expire: it is treated as compact; "
             "klog config set topic " OFFSETS_TOPIC " cleanup.policy=compact makes it so",
             what, cfg->compact ? "compact,delete" : "delete");
    topic_config_unref(cfg);

    struct topic_config_entry *settled = xcalloc(n + 1, sizeof *settled);
    size_t n_settled = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(entries[i].key, "cleanup.policy") != 0)
            settled[n_settled++] = entries[i];
    settled[n_settled++] = (struct topic_config_entry){ (char *)"cleanup.policy", (char *)"compact" };
    cfg = topic_config_lenient(what, defaults, settled, n_settled);
    free(settled);
    return cfg;
}

static struct topic_config_entry entry_of(const struct conf_key *k, const void *obj)
{
    char text[CONFIG_VALUE_MAX];

    conf_get(k, obj, text, sizeof text);
    return (struct topic_config_entry){ xstrdup(k->name), xstrdup(text) };
}

struct topic_config_entry *topic_config_entries(const struct topic_config *c, size_t *ret_n)
{
    const struct conf_table *t = &topic_config_table;
    struct topic_config_entry *entries = xcalloc(t->n + 1, sizeof *entries);

    *ret_n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (topic_config_is_set(c, &t->keys[i]))
            entries[(*ret_n)++] = entry_of(&t->keys[i], c);
    return entries;
}

struct topic_config_entry *defaults_entries(const struct cluster_defaults *d, size_t *ret_n)
{
    const struct conf_table *t = &broker_config_table;
    struct topic_config_entry *entries = xcalloc(t->n + 1, sizeof *entries);

    *ret_n = 0;
    for (size_t i = 0; i < t->n; i++)
        if ((d->dynamic[i / 64] >> (i % 64) & 1) != 0)
            entries[(*ret_n)++] = entry_of(&t->keys[i], &d->config);
    return entries;
}

/* ---- topics ---- */

static struct slice bytes_of(const struct bytebuf *b)
{
    return slice_of(b->p, b->n);
}

/* What vanished between two reads is no damage. */
static int vanished(int rc)
{
    return rc == -ENOENT ? -EAGAIN : rc;
}

static int partition_load(struct cluster *c, const char *topic, int32_t id, struct bytebuf *b,
                          struct partition_register *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s/partitions/%d/state", topic, id);
    int64_t version;

    int rc = registers_get_wait(c->deps.registers, path, b, &version);
    if (rc < 0)
        return vanished(rc);
    rc = partition_register_decode(bytes_of(b), version, ret);
    if (rc < 0)
        log_error("register %s is malformed: %.200s", path, bytebuf_cstr(b));
    return rc;
}

/* They are numbered 0 .. n-1; a register of another name, or a number left out, is damage. */
static bool are_numbered(char *const *names, int n)
{
    CLEANUP(freep) bool *seen = xcalloc((size_t)n + 1, sizeof *seen);

    for (int i = 0; i < n; i++) {
        char text[16];
        int number = atoi(names[i]);
        if (number < 0 || number >= n || seen[number])
            return false;
        snprintf(text, sizeof text, "%d", number);
        if (strcmp(text, names[i]) != 0)
            return false;
        seen[number] = true;
    }
    return n > 0 && n <= CLUSTER_PARTITIONS_MAX;
}

static int partitions_load(struct cluster *c, const char *topic, struct bytebuf *b, struct topic_load *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s/partitions", topic);
    char **names;
    int n;

    int rc = registers_children_wait(c->deps.registers, path, &names, &n);
    if (rc < 0)
        return vanished(rc);
    bool numbered = are_numbered(names, n);
    registers_names_free(names, n);
    if (!numbered) {
        log_error("register %s: its partitions are not numbered from 0 on, or are more than %d", path,
                  CLUSTER_PARTITIONS_MAX);
        return -EBADMSG;
    }

    ret->partitions = xcalloc((size_t)n + 1, sizeof *ret->partitions);
    ret->n_partitions = n;
    for (int32_t i = 0; i < n && rc == 0; i++)
        rc = partition_load(c, topic, i, b, &ret->partitions[i]);
    return rc;
}

static int config_load(struct cluster *c, const char *topic, const struct broker_config *defaults,
                       struct bytebuf *b, struct topic_load *ret)
{
    CLEANUP(freep) char *path = xasprintf("/config/topics/%s", topic);
    CLEANUP(freep) char *what = xasprintf("topic %s", topic);
    struct topic_config_entry *entries;
    size_t n;

    int rc = registers_get_wait(c->deps.registers, path, b, &ret->config_version);
    if (rc < 0)
        return vanished(rc);
    rc = config_register_decode(bytes_of(b), &entries, &n);
    if (rc < 0) {
        log_error("register %s is malformed: %.200s", path, bytebuf_cstr(b));
        return rc;
    }
    ret->config = topic_config_lenient(what, defaults, entries, n);
    if (strcmp(topic, OFFSETS_TOPIC) == 0)
        ret->config = keep_positions(ret->config, what, defaults, entries, n);
    config_entries_free(entries, n);
    return 0;
}

void topic_load(struct cluster *c, const char *name, const struct broker_config *defaults,
                struct topic_load *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s", name);
    struct bytebuf b = { 0 };
    int64_t version;
    const char *why;

    memset(ret, 0, sizeof *ret);
    ret->rc = registers_get_wait(c->deps.registers, path, &b, &version);
    if (ret->rc == -ENOENT) {
        ret->rc = 0;
    } else if (ret->rc == 0 && topic_name_check(kstr_of(name), &why) != KERR_NONE) {
        log_error("register %s: no topic can have this name: %s", path, why);
        ret->rc = -EBADMSG;
    } else if (ret->rc == 0) {
        ret->found = true;
        ret->rc = topic_register_decode(bytes_of(&b), &ret->id);
        if (ret->rc < 0)
            log_error("register %s is malformed: %.200s", path, bytebuf_cstr(&b));
        if (ret->rc == 0)
            ret->rc = partitions_load(c, name, &b, ret);
        if (ret->rc == 0)
            ret->rc = config_load(c, name, defaults, &b, ret);
    }
    bytebuf_done(&b);
}

void topic_load_done(struct topic_load *l)
{
    topic_config_unref(l->config);
    for (int32_t i = 0; i < l->n_partitions; i++)
        free(l->partitions[i].extra);
    free(l->partitions);
    memset(l, 0, sizeof *l);
}

/* ---- brokers ---- */

static int broker_load(struct cluster *c, const char *name, struct bytebuf *b, struct cluster_broker *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/ids/%s", name);
    int64_t version;

    int rc = registers_get_wait(c->deps.registers, path, b, &version);
    return rc < 0 ? vanished(rc) : broker_register_decode(bytes_of(b), atoi(name), ret);
}

static int compare_brokers(const void *a, const void *b)
{
    const struct cluster_broker *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int ids_load(struct cluster *c, struct bytebuf *b, struct brokers_load *ret)
{
    char **names;
    int n;

    int rc = registers_children_wait(c->deps.registers, "/brokers/ids", &names, &n);
    if (rc < 0)
        return rc;
    ret->brokers = xcalloc((size_t)n + 1, sizeof *ret->brokers);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = broker_load(c, names[i], b, &ret->brokers[ret->n_brokers]);
        ret->n_brokers += rc == 0;
    }
    registers_names_free(names, n);
    qsort(ret->brokers, ret->n_brokers, sizeof *ret->brokers, compare_brokers);
    return rc;
}

/* Lays the register's settings over the start configuration. */
static void overlay(struct cluster_defaults *d, const struct topic_config_entry *entries, size_t n)
{
    char err[512];

    for (size_t i = 0; i < n; i++) {
        const struct conf_key *k = broker_config_find(entries[i].key);
        if (k == NULL || k->read_only ||
            broker_config_set(&d->config, entries[i].key, entries[i].value, err, sizeof err) < 0) {
            log_warn("broker: the stored setting %s=%s does not fit this version; it is passed over",
                     entries[i].key, entries[i].value);
            continue;
        }
        size_t bit = (size_t)(k - broker_config_table.keys);
        d->dynamic[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
}

static int defaults_load(struct cluster *c, struct bytebuf *b, struct brokers_load *ret)
{
    CLEANUP(freep) char *path = xasprintf("/config/brokers/%d", c->deps.id);
    struct topic_config_entry *entries = NULL;
    size_t n = 0;

    struct cluster_defaults *d = xcalloc(1, sizeof *d);
    atomic_init(&d->refs, 1);
    broker_config_copy(&d->config, c->deps.config);
    ret->defaults = d;

    int rc = registers_get_wait(c->deps.registers, path, b, &d->version);
    if (rc < 0)
        return vanished(rc);
    rc = config_register_decode(bytes_of(b), &entries, &n);
    if (rc == 0)
        overlay(d, entries, n);
    config_entries_free(entries, n);
    return rc;
}

void brokers_load(struct cluster *c, struct brokers_load *ret)
{
    struct bytebuf b = { 0 };

    memset(ret, 0, sizeof *ret);
    ret->rc = ids_load(c, &b, ret);
    if (ret->rc == 0)
        ret->rc = defaults_load(c, &b, ret);
    if (ret->rc == -EBADMSG)
        log_error("a register below /brokers/ids or /config/brokers is malformed: %.200s", bytebuf_cstr(&b));
    bytebuf_done(&b);
}

void brokers_load_done(struct brokers_load *l)
{
    for (size_t i = 0; i < l->n_brokers; i++) {
        free(l->brokers[i].host);
        free(l->brokers[i].rack);
    }
    free(l->brokers);
    cluster_defaults_unref(l->defaults);
    memset(l, 0, sizeof *l);
}
