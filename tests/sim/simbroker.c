/* SPDX-License-Identifier: Apache-2.0 */
/* See simbroker.h. On the "main" fiber of its process. */
#include "tests/sim/simbroker.h"

#include <stdio.h>

#include "daemon/broker.h"
#include "daemon/config/topic_config.h"
#include "lib/base/attr.h"
#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "tests/sim/marks.h"
#include "tests/sim/play.h"

struct play_broker {
    struct broker b;
    bool stop;
    struct fiber *main;
};

static void set(struct broker_config *cfg, const char *key, const char *value)
{
    char err[256];
    if (broker_config_set(cfg, key, value, err, sizeof err) < 0) {
        printf("%s=%s: %s\n", key, value, err);
        KCHECK(false);
    }
}

static void set_number(struct broker_config *cfg, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    set(cfg, key, text);
}

/* What somebody has changed before this start. */
static void change(struct broker_config *cfg, const struct swarm *sw, uint64_t seed, int life)
{
    static const char *const policies[] = { "commit", "interval", "async" };
    struct rnd r = rnd_of(seed, RND_LIFE, (uint64_t)life);
    set_number(cfg, "num.network.threads", rnd_range(&r, 1, 3));
    set_number(cfg, "num.io.threads", rnd_range(&r, 1, 4));
    set_number(cfg, "log.segment.bytes", rnd_log(&r, 1024, 64 * 1024));
    set_number(cfg, "offsets.topic.segment.bytes", rnd_log(&r, 1024, 64 * 1024));
    if (sw->changes_policy)
        set(cfg, "flush.policy", policies[rnd_below(&r, ARRAY_LEN(policies))]);
    set_number(cfg, "log.retention.check.interval.ms", rnd_log(&r, 50, 5000));
    MARK("a life with other settings");
    MARK_IF(life == sw->last_dir_from, "a life with one more log directory");
}

static void configure(struct broker_config *cfg, const struct swarm *sw, uint64_t seed, int life)
{
    char dirs[64] = "/data0";
    int n_dirs = sw->changes_settings && life < sw->last_dir_from ? sw->n_dirs - 1 : sw->n_dirs;
    for (int i = 1, n = 6; i < n_dirs; i++)
        n += snprintf(dirs + n, sizeof dirs - (size_t)n, ",/data%d", i);
    broker_config_init(cfg);
    set(cfg, "log.dirs", dirs);
    set(cfg, "listeners", "PLAINTEXT://10.0.0.1:9092");
    set(cfg, "log.level", "debug");
    set_number(cfg, "num.network.threads", sw->n_loops);
    set_number(cfg, "num.io.threads", sw->n_workers);
    set(cfg, "auto.create.topics.enable", "false");
    set(cfg, "offsets.topic.num.partitions", "2");
    set(cfg, "offsets.topic.replication.factor", "1");
    set_number(cfg, "offsets.topic.segment.bytes", sw->segment_bytes);
    set(cfg, "group.initial.rebalance.delay.ms", "100");
    set(cfg, "log.retention.check.interval.ms", "2000");
    set(cfg, "log.cleaner.backoff.ms", "2000");
    set(cfg, "log.cleaner.dedupe.buffer.size", "1048576");
    set(cfg, "socket.request.max.bytes", "1048576");
    if (sw->changes_settings)
        change(cfg, sw, seed, life);
}

void simbroker_main(struct simhost *h)
{
    struct play *p = h->user;
    struct play_broker *pb = xcalloc(1, sizeof *pb);
    char err[512] = "";
    pb->main = fiber_now();
    pb->b.world = &h->world;
    pb->b.registers_compact_min = p->swarm.registers_compact_min;
    configure(&pb->b.config, &p->swarm, sim_seed(p->sim), h->process.life);
    p->was_lazy |= pb->b.config.flush_policy != FLUSH_COMMIT;
    int rc = broker_start(&pb->b, err, sizeof err);
    if (rc < 0) {
        sim_note(p->sim, "start failed", rc, 0, 0);
        sim_say(p->sim, "start failed: %s", err);
        play_start_failed(p, rc, err);
        return;
    }
    p->broker = pb;
    play_serving(p);
    while (!pb->stop)
        fiber_wait(INT64_MAX, "the order to stop");
    sim_note(p->sim, "stopping", 0, 0, 0);
    bool clean = broker_stop(&pb->b);
    broker_config_done(&pb->b.config);
    free(pb);
    play_stopped(p, clean);
}

void simbroker_ask_stop(struct play *p)
{
    struct play_broker *pb = p->broker;
    if (pb == NULL || pb->stop)
        return;
    pb->stop = true;
    fiber_wake(pb->main);
}
