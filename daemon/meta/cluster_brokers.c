/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live brokers and what is set on them while they run: the same round as a topic's slot (write, read again,
 * publish), in one place for all. Meta loop, but for the job that reads. A topic's slot reads its
 * configuration anew when the defaults under it have changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/meta/change.h"
#include "daemon/meta/config_ops.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"

void cluster_broker_copy(struct cluster_broker *dst, const struct cluster_broker *src)
{
    *dst = *src;
    dst->rack = src->rack == NULL ? NULL : xstrdup(src->rack);
    dst->endpoints = xcalloc(src->n_endpoints + 1, sizeof *dst->endpoints);
    for (size_t i = 0; i < src->n_endpoints; i++)
        dst->endpoints[i] = (struct cluster_endpoint){ xstrdup(src->endpoints[i].listener),
                                                       xstrdup(src->endpoints[i].host), src->endpoints[i].port };
}

void cluster_broker_done(struct cluster_broker *b)
{
    for (size_t i = 0; i < b->n_endpoints; i++) {
        free(b->endpoints[i].listener);
        free(b->endpoints[i].host);
    }
    free(b->endpoints);
    free(b->rack);
}

const struct cluster_endpoint *cluster_broker_endpoint(const struct cluster_broker *b, const char *listener)
{
    for (size_t i = 0; i < b->n_endpoints; i++)
        if (strcasecmp(b->endpoints[i].listener, listener) == 0)
            return &b->endpoints[i];
    return NULL;
}

static void set_busy(struct cluster *c, bool busy)
{
    c->brokers.busy = busy;
    cluster_note_idle(c, busy ? +1 : -1);
}

/* ---- reading ---- */

static void load_run(struct job *j)
{
    struct cluster *c = container_of(j, struct cluster, brokers.job);

    brokers_load(c, &c->brokers.load);
}

static void topics_follow(struct cluster *c)
{
    struct topic_slot *s, *next;

    HASH_ITER (hh, c->slots, s, next)
        slot_mark_dirty(s, TOPIC_CONFIG);
}

/* Whoever was at a topic may have gone. */
static void unfinished_follow(struct cluster *c)
{
    struct topic_slot *s, *next;

    HASH_ITER (hh, c->slots, s, next)
        if (s->unfinished)
            slot_mark_dirty(s, TOPIC_SHAPE);
}

/* Somebody has taken its registration away, or changed its epoch, while its session lives. */
static void look_for_me(struct cluster *c, const struct brokers_load *l)
{
    if (c->deps.alone || l->rc < 0)
        return;
    for (size_t i = 0; i < l->n_brokers; i++)
        if (l->brokers[i].id == c->deps.id && l->brokers[i].epoch == c->brokers.registered)
            return;
    cluster_registration_is_gone(c, c->brokers.registered);
}

static void load_done(struct job *j)
{
    struct cluster *c = container_of(j, struct cluster, brokers.job);
    struct brokers_load *l = &c->brokers.load;
    bool news = false;

    set_busy(c, false);
    if (l->rc == 0 && l->n_brokers > 0) {
        news = l->defaults->version != c->image->defaults->version;
        cluster_publish_brokers(c, l->defaults, l->brokers, l->n_brokers);
        unfinished_follow(c);
        lead_brokers_changed(c);
        c->deps.settings(c->deps.arg, &l->defaults->config);
    } else if (l->rc < 0 && l->rc != -EAGAIN && l->rc != -EREMOTEIO) {
        log_error("brokers: cannot read their registers: %s", strerror(-l->rc));
    }
    look_for_me(c, l);
    brokers_load_done(l);
    if (news && !c->stopping)
        topics_follow(c);
    brokers_step(c);
}

static void load_begin(struct cluster *c)
{
    c->brokers.dirty = false;
    c->brokers.registered = cluster_registered(c);
    set_busy(c, true);
    c->brokers.job = (struct job){ .run = load_run, .done = load_done, .loop = c->deps.loop };
    workers_submit(c->deps.workers, &c->brokers.job);
}

/* ---- changing ---- */

/* Only what is asked for now: an earlier klogd may have let keys be set that no longer can. */
static int judge_ops(const struct cluster_change *ch, char *err, size_t err_size)
{
    for (int32_t i = 0; i < ch->n_ops; i++) {
        if (ch->ops[i].kind == CONFIG_OP_DELETE || !broker_config_find(ch->ops[i].key)->read_only)
            continue;
        snprintf(err, err_size, "%s cannot change while klogd runs: set it in the configuration file and restart",
                 ch->ops[i].key);
        return -EINVAL;
    }
    return 0;
}

/* As Kafka: so that a slip of the hand does not take the broker down. */
static int judge_threads(const char *key, int32_t now, int32_t then, char *err, size_t err_size)
{
    if (then >= now / 2 && then <= now * 2)
        return 0;
    snprintf(err, err_size, "%s=%d: it is %d now, and at once it can become %d at least and %d at most", key, then, now,
             MAX(now / 2, 1), now * 2);
    return -EINVAL;
}

static int judge_all_threads(struct cluster *c, const struct broker_config *then, char *err, size_t err_size)
{
    const struct broker_config *now = &c->image->defaults->config;
    const struct machine *m = c->deps.world->machine;
    int rc = judge_threads("num.io.threads", now->num_io_threads, then->num_io_threads, err, err_size);

    return rc < 0 ? rc
                  : judge_threads("num.network.threads", broker_config_network_threads(now, m),
                                  broker_config_network_threads(then, m), err, err_size);
}

static enum kerr judge_settings(struct cluster *c, struct change *ch, const struct config_settings *s)
{
    struct broker_config cfg;
    char err[320];
    int rc = 0;

    broker_config_copy(&cfg, c->deps.config);
    for (size_t i = 0; i < s->n && rc == 0; i++)
        rc = broker_config_set(&cfg, s->entries[i].key, s->entries[i].value, err, sizeof err);
    if (rc == 0)
        rc = judge_ops(&ch->pub, err, sizeof err);
    if (rc == 0)
        rc = broker_config_check(&cfg, err, sizeof err);
    if (rc == 0)
        rc = judge_all_threads(c, &cfg, err, sizeof err);
    broker_config_done(&cfg);
    return rc == 0 ? KERR_NONE : change_refuse(ch, KERR_INVALID_REQUEST, "%s", err);
}

static enum kerr prepare(struct cluster *c, struct change *ch)
{
    char me[16], err[320];
    struct config_settings s = { 0 };
    const struct cluster_defaults *d = c->image->defaults;

    snprintf(me, sizeof me, "%d", c->deps.id);
    if (strcmp(ch->pub.topic, me) != 0)
        return change_refuse(ch, KERR_INVALID_REQUEST, "this is broker %s: ask broker \"%s\" itself", me,
                             ch->pub.topic);

    if (!ch->pub.replace)
        s.entries = defaults_entries(d, &s.n);
    enum kerr kerr = KERR_NONE;
    if (config_settings_apply(&s, &broker_config_table, &d->config, ch->pub.ops, ch->pub.n_ops, err,
                              sizeof err) < 0)
        kerr = change_refuse(ch, KERR_INVALID_REQUEST, "%s", err);
    else
        kerr = judge_settings(c, ch, &s);
    if (kerr == KERR_NONE)
        ops_add(&ch->ops, REGISTER_SET, xasprintf("/config/brokers/%s", me),
                config_register_encode(s.entries, s.n, d->extra), d->version);
    config_settings_done(&s);
    return kerr;
}

void cluster_registered_anew(struct cluster *c)
{
    log_info("registered anew, broker epoch=%lld", (long long)c->broker_epoch);
    c->brokers.dirty = true;
    brokers_step(c);
}

static void end_first(struct cluster *c, enum kerr err, const char *text)
{
    struct change *ch = TAILQ_FIRST(&c->brokers.changes);

    TAILQ_REMOVE(&c->brokers.changes, ch, link);
    if (text != NULL)
        change_end(ch, err, "%s", text);
    else
        change_end(ch, err, NULL);
}

static void written(void *arg, int rc)
{
    struct cluster *c = arg;

    set_busy(c, false);
    if (rc < 0)
        end_first(c, change_kerr_of(rc), strerror(-rc));
    c->brokers.dirty = true;
    brokers_step(c);
}

static void begin(struct cluster *c, struct change *ch)
{
    enum kerr err = prepare(c, ch);

    if (err != KERR_NONE || ch->pub.validate_only) {
        end_first(c, err, NULL);
        return;
    }
    ch->begun = true;
    set_busy(c, true);
    registers_multi(c->deps.registers, ch->ops.ops, ch->ops.n, written, c);
}

void brokers_step(struct cluster *c)
{
    while (!c->brokers.busy) {
        struct change *ch = TAILQ_FIRST(&c->brokers.changes);
        if (c->stopping && ch != NULL)
            end_first(c, KERR_BROKER_NOT_AVAILABLE, "the broker is stopping");
        else if (c->stopping)
            return;
        else if (c->brokers.dirty)
            load_begin(c);
        else if (ch == NULL)
            return;
        else if (ch->begun)
            end_first(c, KERR_NONE, NULL);
        else
            begin(c, ch);
    }
}
