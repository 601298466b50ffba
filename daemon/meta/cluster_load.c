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
    return (struct topic_config_entry){ xstrdup(k->name), conf_text(k, obj) };
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

/* Says what stands there as far as it is text. */
static int malformed(struct topic_load *ret, const char *path, struct slice value)
{
    int n = snprintf(ret->why, sizeof ret->why, "register %.200s is malformed: ", path);

    for (size_t i = 0; i < value.n && n < (int)sizeof ret->why - 1; i++)
        ret->why[n++] = value.p[i] >= ' ' && value.p[i] < 0x7f ? (char)value.p[i] : '?';
    ret->why[n] = '\0';
    return -EBADMSG;
}

const char *topic_load_why(const struct topic_load *l)
{
    return l->rc == -EBADMSG ? l->why : strerror(-l->rc);
}

static int partition_decode(const char *path, const struct register_got *g, struct topic_load *l, int32_t id)
{
    struct partition_register r;

    if (g->rc < 0)
        return vanished(g->rc);
    if (partition_register_decode(bytes_of(&g->value), g->version, &r) < 0)
        return malformed(l, path, bytes_of(&g->value));
    l->partitions[id] = cluster_partition_new(&r);
    free(r.extra);
    return 0;
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

static int count_load(struct cluster *c, const char *topic, struct topic_load *ret)
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
        snprintf(ret->why, sizeof ret->why, "register %s: its partitions are not numbered from 0 on, or are more than %d", path,
                 CLUSTER_PARTITIONS_MAX);
        return -EBADMSG;
    }
    ret->n_partitions = n;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The numbers of the partitions to read, of the first n_known that are known and of those that are new. */
static void choose_partitions(const struct topic_wants *w, int32_t n_known, struct topic_load *ret)
{
    int32_t n = 0, *ids = xcalloc((size_t)ret->n_partitions + (size_t)w->n_ids + 1, sizeof *ids);
    int32_t from = (w->what & TOPIC_PARTITIONS) != 0 ? 0 : n_known;

    for (int32_t i = 0; i < w->n_ids; i++)
        if (w->ids[i] < MIN(from, ret->n_partitions))
            ids[n++] = w->ids[i];
    qsort(ids, (size_t)n, sizeof *ids, compare_numbers);
    ret->read = ids;
    for (int32_t i = 0; i < n; i++)
        if (i == 0 || ids[i] != ids[i - 1])
            ids[ret->n_read++] = ids[i];
    for (int32_t id = from; id < ret->n_partitions; id++)
        ids[ret->n_read++] = id;
}

enum { READ_AT_ONCE = 256 }; /* registers */

/* One of the first n_known whose register is malformed by now stays as it was. */
static int some_load(struct cluster *c, const char *topic, int32_t n_known, const int32_t *ids, int n,
                     struct topic_load *ret)
{
    struct register_got got[READ_AT_ONCE];
    char *paths[READ_AT_ONCE] = { NULL };
    int rc = 0;

    for (int i = 0; i < n; i++)
        paths[i] = xasprintf("/brokers/topics/%s/partitions/%d/state", topic, ids[i]);
    registers_get_many_wait(c->deps.registers, paths, n, got);
    for (int i = 0; i < n; i++) {
        int one = partition_decode(paths[i], &got[i], ret, ids[i]);
        bool known = ids[i] < n_known;
        if (one == -EBADMSG && known)
            log_error("%s; the partition stays as it was", ret->why);
        else if (rc == 0 && !(one == -EAGAIN && known)) /* its topic goes; else somebody took it away, and it stays, too */
            rc = one;
        bytebuf_done(&got[i].value);
        free(paths[i]);
    }
    return rc;
}

static int partitions_load(struct cluster *c, const char *topic, int32_t n_known, struct topic_load *ret)
{
    int rc = 0;

    ret->partitions = xcalloc((size_t)ret->n_partitions + 1, sizeof(*ret->partitions));
    for (int32_t i = 0; i < ret->n_read && rc == 0; i += READ_AT_ONCE)
        rc = some_load(c, topic, n_known, ret->read + i, MIN(ret->n_read - i, READ_AT_ONCE), ret);
    return rc;
}

static bool is_topic_key(const char *key)
{
    return conf_find(&topic_config_table, key) != NULL;
}

static bool is_broker_key(const char *key)
{
    return broker_config_find(key) != NULL;
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
    if (rc < 0)
        return malformed(ret, path, bytes_of(b));
    ret->config = topic_config_lenient(what, defaults, entries, n);
    if (strcmp(topic, OFFSETS_TOPIC) == 0)
        ret->config = keep_positions(ret->config, what, defaults, entries, n);
    ret->config->extra = config_register_extra(bytes_of(b), is_topic_key);
    config_entries_free(entries, n);
    return 0;
}

static int register_load(struct cluster *c, const char *name, struct bytebuf *b, struct topic_load *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s", name);
    const char *why;

    int rc = registers_get_wait(c->deps.registers, path, b, &ret->version);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    if (topic_name_check(kstr_of(name), &why) != KERR_NONE) {
        snprintf(ret->why, sizeof ret->why, "register %s: no topic can have this name: %s", path, why);
        return -EBADMSG;
    }
    if (topic_register_decode(bytes_of(b), &ret->shape) < 0)
        return malformed(ret, path, bytes_of(b));
    ret->found = true;
    return 0;
}

/* While somebody makes, grows or deletes the topic, the partitions from there on are none. */
static int unfinished_load(struct cluster *c, const char *name, const struct cluster_image *img, struct topic_load *ret)
{
    const struct topic_register *t = &ret->shape;
    const struct cluster_broker *writer = cluster_image_broker(img, t->writer);
    int rc = 0;

    ret->unfinished = writer != NULL && writer->epoch == t->writer_be && !(t->writer == c->deps.id && !ret->busy);
    if (!ret->unfinished)
        rc = topic_sweep(c, name, ret);
    ret->n_partitions = t->unfinished_from;
    ret->found = t->unfinished_from > 0;
    return rc;
}

static bool is_hosted(struct cluster *c, const struct cluster_topic *t)
{
    for (int32_t i = 0; i < t->n_partitions; i++) {
        const struct cluster_partition *p = cluster_topic_partition(t, i);
        if (cluster_has_id(p->replicas, p->n_replicas, c->deps.id))
            return true;
    }
    return false;
}

/* M6: without a note nobody has deleted the topic that this broker has logs of; somebody has broken its registers. */
static int check_note(struct cluster *c, const struct cluster_topic *known, struct bytebuf *b, struct topic_load *ret)
{
    char id[UUID_TEXT_LEN + 1];
    int64_t version;

    if (c->deps.alone || known == NULL || ret->same || !is_hosted(c, known))
        return 0;
    uuid_text(&known->id, id);
    CLEANUP(freep) char *path = xasprintf("/admin/delete_topics/%s", id);
    int rc = registers_get_wait(c->deps.registers, path, b, &version);
    if (rc != -ENOENT)
        return rc;
    snprintf(ret->why, sizeof ret->why, "register /brokers/topics/%s is %s, and no deletion of the topic is noted", known->name,
             ret->found ? "another topic's" : "gone");
    return -EBADMSG;
}

static int shape_load(struct cluster *c, const char *name, const struct cluster_image *img,
                      const struct cluster_topic *known, struct bytebuf *b, struct topic_load *ret)
{
    int rc = register_load(c, name, b, ret);

    ret->same = rc == 0 && ret->found && known != NULL && uuid_eq(&ret->shape.id, &known->id);
    if (rc == 0)
        rc = check_note(c, known, b, ret);
    if (rc < 0 || !ret->found)
        return rc;
    return ret->shape.unfinished_from >= 0 ? unfinished_load(c, name, img, ret) : count_load(c, name, ret);
}

static void shape_of_known(const struct cluster_topic *known, struct topic_load *ret)
{
    ret->found = ret->same = true;
    ret->version = known->version;
    ret->shape = (struct topic_register){ .id = known->id,
                                          .unfinished_from = -1,
                                          .extra = known->extra == NULL ? NULL : xstrdup(known->extra) };
    ret->n_partitions = known->n_partitions;
}

/* What was read of its partitions is this topic's: another one may have got its name meanwhile, and the watch's call for that is on
 * its way. Read behind them. */
static int check_same(struct cluster *c, const char *name, const struct cluster_topic *known, struct bytebuf *b,
                      struct topic_load *l)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s", name);
    struct topic_register t;
    int64_t version;

    if (c->deps.alone)
        return 0;
    int rc = registers_get_wait(c->deps.registers, path, b, &version);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0 && topic_register_decode(bytes_of(b), &t) < 0)
        return 0; /* malformed by now: as it was */
    if (rc == 0 && uuid_eq(&t.id, &known->id)) {
        free(t.extra);
        return 0;
    }
    if (rc == 0)
        free(t.extra);
    l->same = false;
    rc = check_note(c, known, b, l);
    l->same = true;
    return rc == -EBADMSG ? 0 : rc == 0 ? -EAGAIN : rc; /* without a note it is as it was, too */
}

void topic_load(struct cluster *c, const char *name, const struct cluster_image *img, const struct topic_wants *wants,
                bool busy, struct topic_load *ret)
{
    const struct broker_config *defaults = &img->defaults->config;
    const struct cluster_topic *known = cluster_image_topic(img, kstr_of(name));
    struct bytebuf b = { 0 };

    memset(ret, 0, sizeof *ret);
    ret->busy = busy;
    if (known == NULL || (wants->what & TOPIC_SHAPE) != 0)
        ret->rc = shape_load(c, name, img, known, &b, ret);
    if (known != NULL && ((wants->what & TOPIC_SHAPE) == 0 || ret->rc == -EBADMSG)) {
        if (ret->rc == -EBADMSG)
            log_error("%s; the topic stays as it was", ret->why);
        topic_load_done(ret);
        ret->busy = busy;
        shape_of_known(known, ret);
    }
    if (ret->rc == 0 && ret->found) {
        int32_t n_known = ret->same ? known->n_partitions : 0;
        choose_partitions(wants, n_known, ret);
        ret->rc = partitions_load(c, name, n_known, ret);
        if (ret->rc == 0 && ret->n_read > 0 && (wants->what & TOPIC_SHAPE) == 0 && known != NULL)
            ret->rc = check_same(c, name, known, &b, ret);
    }
    if (ret->rc == 0 && ret->found && (!ret->same || (wants->what & TOPIC_CONFIG) != 0)) {
        ret->rc = config_load(c, name, defaults, &b, ret);
        if (ret->rc == -EBADMSG && ret->same) {
            log_error("%s; the topic's settings stay as they were", ret->why);
            ret->rc = 0;
        }
    }
    bytebuf_done(&b);
}

void topic_load_done(struct topic_load *l)
{
    topic_config_unref(l->config);
    for (int32_t i = 0; l->partitions != NULL && i < l->n_partitions; i++)
        cluster_partition_unref(l->partitions[i]);
    free(l->partitions);
    free(l->read);
    free(l->shape.extra);
    memset(l, 0, sizeof *l);
}

void topic_wants_add(struct topic_wants *w, int32_t id)
{
    if (w->n_ids >= CLUSTER_PARTITIONS_MAX) {
        w->what |= TOPIC_PARTITIONS;
        return;
    }
    if (w->n_ids == w->cap_ids) {
        w->cap_ids = w->cap_ids == 0 ? 8 : 2 * w->cap_ids;
        w->ids = xreallocarray(w->ids, (size_t)w->cap_ids, sizeof *w->ids);
    }
    w->ids[w->n_ids++] = id;
}

bool topic_wants_any(const struct topic_wants *w)
{
    return w->what != 0 || w->n_ids > 0;
}

/* Ascending, each once. */
static void wants_settle(struct topic_wants *w)
{
    int32_t n = 0;

    if (w->n_ids > 0)
        qsort(w->ids, (size_t)w->n_ids, sizeof *w->ids, compare_numbers);
    for (int32_t i = 0; i < w->n_ids; i++)
        if (i == 0 || w->ids[i] != w->ids[i - 1])
            w->ids[n++] = w->ids[i];
    w->n_ids = n;
}

void topic_wants_take(struct topic_wants *w, int32_t max, struct topic_wants *ret)
{
    *ret = *w;
    memset(w, 0, sizeof *w);
    if (ret->what != 0 || ret->n_ids <= max)
        return;
    wants_settle(ret);
    for (int32_t i = max; i < ret->n_ids; i++)
        topic_wants_add(w, ret->ids[i]);
    ret->n_ids = MIN(ret->n_ids, max);
}

void topic_wants_done(struct topic_wants *w)
{
    free(w->ids);
    memset(w, 0, sizeof *w);
}

/* ---- brokers ---- */

static int epoch_load(struct cluster *c, const char *name, struct bytebuf *b, struct cluster_broker *ret)
{
    CLEANUP(freep) char *path = xasprintf("/klog/broker_epoch/%s", name);

    struct epoch_register r;

    int rc = registers_get_wait(c->deps.registers, path, b, &ret->epoch);
    if (rc == -ENOENT) /* it is there before any registration, and stays */
        rc = -EBADMSG;
    if (rc == 0)
        rc = epoch_register_decode(bytes_of(b), &r);
    if (rc == 0)
        ret->base = r.base;
    return rc;
}

/* The epoch is read first: one that is older than the registration names a life that has ended, and gives that broker no
 * right; the registration sets off the watch, which has both read again. */
static int broker_load(struct cluster *c, const char *name, struct bytebuf *b, struct cluster_broker *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/ids/%s", name);
    struct cluster_broker epoch = { 0 };
    int64_t version;

    int rc = epoch_load(c, name, b, &epoch);
    if (rc == 0)
        rc = vanished(registers_get_wait(c->deps.registers, path, b, &version));
    if (rc == 0)
        rc = broker_register_decode(bytes_of(b), atoi(name), ret);
    if (rc == 0) {
        ret->epoch = epoch.epoch;
        ret->base = epoch.base;
    }
    return rc;
}

static int compare_brokers(const void *a, const void *b)
{
    const struct cluster_broker *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* The number as a broker writes it. */
static bool is_broker_name(const char *name)
{
    char text[16];

    snprintf(text, sizeof text, "%d", atoi(name));
    return atoi(name) >= 0 && strcmp(text, name) == 0;
}

/* What somebody else put there, or broke, is taken for no broker, and keeps nobody from seeing those that are there. */
static int broker_load_if_sound(struct cluster *c, const char *name, struct bytebuf *b, struct brokers_load *ret)
{
    int rc = is_broker_name(name) ? broker_load(c, name, b, &ret->brokers[ret->n_brokers]) : -EBADMSG;

    if (rc == -EBADMSG) {
        log_error("/brokers/ids/%s is not the registration of a broker, or /klog/broker_epoch/%s is malformed: it is passed over",
                  name, name);
        return 0;
    }
    ret->n_brokers += rc == 0;
    return rc;
}

static int ids_load(struct cluster *c, struct bytebuf *b, struct brokers_load *ret)
{
    char **names;
    int n;

    int rc = registers_children_wait(c->deps.registers, "/brokers/ids", &names, &n);
    if (rc < 0)
        return rc;
    ret->brokers = xcalloc((size_t)n + 1, sizeof *ret->brokers);
    for (int i = 0; i < n && rc == 0; i++)
        rc = broker_load_if_sound(c, names[i], b, ret);
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

static int config_remake(struct cluster *c, const char *path, int64_t *ret_version)
{
    struct register_ops_list l = { 0 };

    ops_add(&l, REGISTER_CREATE, xstrdup(path), config_register_encode(NULL, 0, NULL), 0);
    int rc = registers_multi_wait(c->deps.registers, l.ops, l.n);
    *ret_version = l.ops[0].new_version;
    ops_done(&l);
    if (rc == 0)
        log_warn("register %s was missing, and is made anew: what was set by klog config set broker is lost", path);
    return rc == -EEXIST || rc == -ENOENT ? -EAGAIN : rc;
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
    if (rc == -ENOENT && !c->deps.alone) /* somebody took it away */
        rc = config_remake(c, path, &d->version);
    else if (rc == 0 && (rc = config_register_decode(bytes_of(b), &entries, &n)) == 0)
        overlay(d, entries, n);
    if (rc == 0)
        d->extra = config_register_extra(bytes_of(b), is_broker_key);
    config_entries_free(entries, n);
    if (rc == -EBADMSG && !c->deps.alone) {
        if (d->version != c->brokers.malformed) /* said once */
            log_error("register %s is malformed: %.200s; the settings of the configuration file count until klog config set broker "
                  "writes it anew",
                  path, bytebuf_cstr(b));
        c->brokers.malformed = d->version;
        return 0;
    }
    return vanished(rc);
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
    for (size_t i = 0; i < l->n_brokers; i++)
        cluster_broker_done(&l->brokers[i]);
    free(l->brokers);
    cluster_defaults_unref(l->defaults);
    memset(l, 0, sizeof *l);
}
