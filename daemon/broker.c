/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and stop, in the order that broker.h gives. Main thread, but for what the parts tell, which
 * says where it runs.
 */
#include "daemon/broker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/api/api.h"
#include "daemon/api/group_api.h"
#include "daemon/follow/follow.h"
#include "daemon/group/coordinator.h"
#include "daemon/meta/cluster.h"
#include "daemon/meta/registers.h"
#include "daemon/meta/zookeeper.h"
#include "daemon/replica/partition.h"
#include "daemon/server/server.h"
#include "daemon/storage/flusher.h"
#include "daemon/storage/logdirs.h"
#include "daemon/upkeep/cleaner.h"
#include "daemon/upkeep/scrubber.h"
#include "daemon/upkeep/upkeep.h"
#include "daemon/watch/watch.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/thread.h"
#include "lib/store/register_files.h"

enum { HAND_OVER_MS = 5000 }; /* a stop waits so long for others to lead what this broker has led */

/* ---- what the parts tell ---- */
/* S8: its partitions go offline; with the last one the process ends at once, without clean markers. Any thread. */
static void dir_failed(void *arg, int dir, bool all)
{
    struct broker *b = arg;
    if (all) {
        log_error("no log directory is left; stopping without a clean marker");
        b->world->machine->die(b->world->machine, BROKER_EXIT_STORAGE);
        return;
    }
    partitions_dir_failed(b->partitions, dir);
}

/* The registers are in the first directory, so that one has failed (S8). Runs on the registers' own thread. */
static void registers_failed(void *arg, int eno)
{
    struct broker *b = arg;
    logdirs_fail(b->dirs, 0, eno);
}

/* On a worker. */
static bool topic_was_deleted(void *arg, const struct uuid *topic_id)
{
    const struct broker *b = arg;
    return cluster_topic_was_deleted(b->registers, topic_id);
}

/* Any thread. */
static enum kerr partition_elsewhere(void *arg, struct kstr topic, const struct uuid *topic_id, int32_t id)
{
    const struct broker *b = arg;
    return cluster_elsewhere(b->cluster, topic, topic_id, id);
}

static int64_t broker_epoch(void *arg)
{
    const struct broker *b = arg;
    return cluster_broker_epoch(b->cluster);
}

/* On loops[0]. */
static void follow_leader(void *arg, struct partition *pt, int32_t leader, const char *host, int32_t port)
{
    const struct broker *b = arg;
    if (host != NULL)
        follow_partition(b->follow, pt, &(struct follow_leader){ .id = leader, .host = host, .port = port });
    else
        follow_stop_partition(b->follow, pt);
}

/* On loops[0]. */
static void topic_deleted(void *arg, const char *topic, const struct uuid *topic_id)
{
    const struct broker *b = arg;
    coordinator_topic_deleted(b->coordinator, topic, topic_id);
}

/* On loops[0]. */
static void replaced(void *arg)
{
    struct broker *b = arg;
    b->has_twin = true;
    if (b->stop != NULL)
        b->stop();
}

static int start_loop(struct broker *b);

/* There are never fewer loops: one that gets no connections does what else it has, or sleeps. */
static void use_loops(struct broker *b, int n)
{
    int rc = 0;
    while (b->n_loops < n && rc == 0)
        rc = start_loop(b);
    if (rc < 0)
        log_warn("num.network.threads=%d: the system gives no more than %d: %s", n, b->n_loops, strerror(-rc));
    server_use_loops(b->server, MIN(n, b->n_loops));
}

/* Puts into effect what may change while klogd runs and is no topic's default. On loops[0], or before it runs anything
 * else. */
static void apply_settings(void *arg, const struct broker_config *now)
{
    struct broker *b = arg;
    log_set_level((enum log_level)now->log_level);
    server_limit_connections(b->server, now->max_connections);
    use_loops(b, broker_config_network_threads(now, b->world->machine));
    int n = workers_resize(b->workers, now->num_io_threads);
    if (n < now->num_io_threads)
        log_warn("num.io.threads=%d: the system gives no more than %d", now->num_io_threads, n);
    cleaner_configure(b->cleaner, now);
    throttle_set_rate(&b->throttle_leader, now->leader_replication_throttled_rate);
    throttle_set_rate(&b->throttle_follower, now->follower_replication_throttled_rate);
}

/* ---- threads ---- */
static void loop_main(void *arg)
{
    plog_thread_may_not_wait();
    loop_run(arg);
}

static int start_loop(struct broker *b)
{
    struct loop *lp = loop_new(b->world);
    if (lp == NULL)
        return -errno;
    struct thread *t = thread_start(b->world->exec, loop_main, lp, "klogd-net");
    if (t == NULL) {
        loop_free(lp);
        return -EAGAIN;
    }
    b->loop_threads[b->n_loops] = t;
    b->loops[b->n_loops++] = lp;
    return 0;
}

static int start_loops(struct broker *b, char *err, size_t err_size)
{
    int n = broker_config_network_threads(&b->config, b->world->machine), rc = 0;
    b->loops = xcalloc(NETWORK_THREADS_MAX, sizeof(struct loop *));
    b->loop_threads = xcalloc(NETWORK_THREADS_MAX, sizeof(struct thread *));
    while (b->n_loops < n && rc == 0)
        rc = start_loop(b);
    if (rc < 0)
        snprintf(err, err_size, "cannot make an event loop: %s", strerror(-rc));
    return rc;
}

static void join_loops(struct broker *b)
{
    for (int i = 0; i < b->n_loops; i++) {
        loop_stop(b->loops[i]);
        thread_join(b->world->exec, b->loop_threads[i]);
        loop_clear_timers(b->loops[i]);
    }
}

static void free_loops(struct broker *b)
{
    for (int i = 0; i < b->n_loops; i++)
        loop_free(b->loops[i]);
    free(b->loops);
    free(b->loop_threads);
}

/* ---- storage ---- */
/* They are in the directory that is named first, and in no other. New ones are made only where there is nothing yet
 * (S14): without them nobody knows what topics there are. */
static int open_registers(struct broker *b, char *err, size_t err_size)
{
    struct datadir *first = logdirs_at(b->dirs, 0);
    bool may_create = true;
    for (int i = 0; i < logdirs_count(b->dirs); i++) {
        struct datadir *dd = logdirs_at(b->dirs, i);
        int holds_data = datadir_holds_data(dd);
        if (i > 0 && datadir_has_file(dd, REGISTERS_JOURNAL)) {
            snprintf(err, err_size,
                     "registers.journal is in %s, but the registers belong in %s, which log.dirs names first: name the "
                     "directories in the order they had, or move it away if %s has the right one",
                     datadir_path(dd), datadir_path(first), datadir_path(first));
            return -EEXIST;
        }
        may_create &= holds_data == 0 && !datadir_was_clean(dd);
    }
    return registers_open_embedded(first, may_create, b->registers_compact_min, b->loops[0], registers_failed, b,
                                   &b->registers, err, err_size);
}

static bool is_alone(const struct broker *b)
{
    return b->config.zookeeper_connect[0] == '\0';
}

static int open_zookeeper(struct broker *b, char *err, size_t err_size)
{
    struct zookeeper_target to;
    if (b->open_registers != NULL)
        return b->open_registers(b->open_registers_arg, b->loops[0], &b->registers, err, err_size);
    int rc = zookeeper_target_of(&b->config, b->world, &to, err, err_size);
    if (rc < 0)
        return rc;
    rc = registers_open_zookeeper(&to, b->loops[0], &b->registers, err, err_size);
    zookeeper_target_done(&to);
    return rc;
}

/* Directories of a broker that was alone have its topics only: in ZooKeeper they would belong to nothing. */
static int refuse_own_registers(struct broker *b, char *err, size_t err_size)
{
    for (int i = 0; i < logdirs_count(b->dirs); i++) {
        struct datadir *dd = logdirs_at(b->dirs, i);
        if (!datadir_has_file(dd, REGISTERS_JOURNAL))
            continue;
        snprintf(err, err_size,
                 "zookeeper.connect is set, but %s has registers.journal, with the topics of a broker alone: import "
                 "them (klog cluster import), leave zookeeper.connect empty, or give this broker new directories",
                 datadir_path(dd));
        return -EEXIST;
    }
    return 0;
}

/* New directories learn from the registers which cluster they belong to. */
static int open_dirs(struct broker *b, char *err, size_t err_size)
{
    struct broker_config cfg;
    char id[64], ignored[64];
    int rc = 0;

    snprintf(id, sizeof id, "%s", b->config.cluster_id);
    if (!is_alone(b))
        rc = cluster_agree_on_id(b->registers, b->world, !logdirs_have_identity(b->world, &b->config), id, err, err_size);
    if (rc < 0)
        return rc;
    broker_config_copy(&cfg, &b->config);
    broker_config_set(&cfg, "cluster.id", id, ignored, sizeof ignored);
    rc = logdirs_open(b->world, &cfg, dir_failed, b, &b->dirs, err, err_size);
    broker_config_done(&cfg);
    if (rc == 0 && !is_alone(b))
        rc = refuse_own_registers(b, err, err_size);
    return rc;
}

static void make_partitions(struct broker *b)
{
    struct partitions_deps deps = {
        .world = b->world,
        .me = b->id,
        .dirs = b->dirs,
        .flusher = b->flusher,
        .was_deleted = topic_was_deleted,
        .elsewhere = is_alone(b) ? NULL : partition_elsewhere,
        .arg = b,
    };
    b->partitions = partitions_new(&deps);
}

/* The first answer of a store that is elsewhere, for as long as it takes: the machine of a ZooKeeper may come up after this one. The
 * loop's, but for what the latch hands over. */
struct store_wait {
    struct broker *broker;
    struct latch done;
    bool told, over; /* over: the latch is open, whatever comes yet */
    int rc;
    struct timer look;
};

enum { LOOK_MS = 100 };

static void store_wait_end(struct store_wait *w, int rc)
{
    if (w->over)
        return;
    w->over = true;
    w->rc = rc;
    timer_clear(w->broker->loops[0], &w->look);
    latch_open(&w->done);
}

static void on_first_answer(void *arg, int rc)
{
    struct store_wait *w = arg;
    struct broker *b = w->broker;
    if (rc != -EREMOTEIO || w->over) {
        store_wait_end(w, rc);
        return;
    }
    if (!w->told)
        log_warn("ZooKeeper does not answer at %s: waiting for it, nothing is served until it does", b->config.zookeeper_connect);
    w->told = true;
    registers_renew(b->registers); /* if the session ended before anybody could hear of it */
    registers_sync(b->registers, on_first_answer, w);
}

static void look_for_stop(struct timer *t)
{
    struct store_wait *w = container_of(t, struct store_wait, look);
    struct broker *b = w->broker;
    if (b->stop_asked != NULL && b->stop_asked())
        store_wait_end(w, -EINTR);
    else
        timer_set_in(b->loops[0], &w->look, LOOK_MS);
}

static void store_wait_begin(void *arg)
{
    struct store_wait *w = arg;
    timer_set_in(w->broker->loops[0], &w->look, LOOK_MS);
    registers_sync(w->broker->registers, on_first_answer, w);
}

static int wait_for_zookeeper(struct broker *b, char *err, size_t err_size)
{
    struct store_wait *w = b->store_wait = xcalloc(1, sizeof *w); /* an answer may come after the wait was given up */
    w->broker = b;
    w->look.cb = look_for_stop;
    latch_init(&w->done, b->world->exec);
    loop_call(b->loops[0], store_wait_begin, w);
    latch_wait(&w->done);
    latch_done(&w->done);
    if (w->rc == -EINTR)
        snprintf(err, err_size, "stopped before a ZooKeeper answered at %s", b->config.zookeeper_connect);
    else if (w->rc < 0)
        snprintf(err, err_size, "ZooKeeper at %s: %s", b->config.zookeeper_connect, strerror(-w->rc));
    return w->rc;
}

static int start_storage(struct broker *b, char *err, size_t err_size)
{
    int rc = is_alone(b) ? 0 : open_zookeeper(b, err, err_size);
    if (rc == 0 && !is_alone(b))
        rc = wait_for_zookeeper(b, err, err_size);
    if (rc == 0)
        rc = open_dirs(b, err, err_size);
    if (rc < 0)
        return rc;
    const struct datadir_identity *identity = logdirs_identity(b->dirs);
    b->id = identity->broker_id;
    snprintf(b->cluster_id, sizeof b->cluster_id, "%s", identity->cluster_id);
    b->flusher = flusher_new(b->world, logdirs_count(b->dirs));
    make_partitions(b); /* before anything that may tell that a directory has failed */
    return is_alone(b) ? open_registers(b, err, err_size) : 0;
}

/* ---- start ---- */
static void make_server(struct broker *b, char *err, size_t err_size)
{
    struct server_deps deps = {
        .world = b->world,
        .config = &b->config,
        .loops = b->loops,
        .n_loops = b->n_loops,
        .workers = b->workers,
        .apis = &apis_served,
        .watched = b->watch != NULL,
        .services = &b->services,
    };
    b->server = server_new(&deps, err, err_size);
}

/* Where other brokers and their clients are told to find this one. A listener on all addresses is found at the machine's
 * name, unless advertised.listeners says otherwise. */
static void find_endpoints(struct broker *b)
{
    char name[256];
    struct server_advertised a;

    b->world->machine->host_name(b->world->machine, name, sizeof name);
    b->endpoints = xcalloc(LISTENERS_MAX, sizeof *b->endpoints);
    while (b->n_endpoints < LISTENERS_MAX && server_advertised(b->server, b->n_endpoints, &a))
        b->endpoints[b->n_endpoints++] = (struct cluster_endpoint){
            xstrdup(a.listener), xstrdup(a.host != NULL ? a.host : name), a.port
        };
}

static void free_endpoints(struct broker *b)
{
    for (size_t i = 0; i < b->n_endpoints; i++) {
        free(b->endpoints[i].listener);
        free(b->endpoints[i].host);
    }
    free(b->endpoints);
}

static void make_cluster(struct broker *b)
{
    find_endpoints(b);
    struct cluster_deps deps = {
        .world = b->world,
        .id = b->id,
        .cluster_id = b->cluster_id,
        .config = &b->config,
        .endpoints = b->endpoints,
        .n_endpoints = b->n_endpoints,
        .register_within_ms = 2 * b->config.zookeeper_session_timeout_ms,
        .proven = is_alone(b) || logdirs_were_clean(b->dirs), /* alone: nobody else could have what is lost here */
        .alone = is_alone(b),
        .multi_max = is_alone(b) ? SIZE_MAX : REGISTERS_MULTI_MAX,
        .follow = follow_leader,
        .registers = b->registers,
        .dirs = b->dirs,
        .partitions = b->partitions,
        .loop = b->loops[0],
        .workers = b->workers,
        .settings = apply_settings,
        .topic_deleted = topic_deleted,
        .replaced = replaced,
        .arg = b,
    };
    b->cluster = cluster_new(&deps);
}

/* What other brokers lead is copied by threads of their own. */
static int make_follow(struct broker *b, char *err, size_t err_size)
{
    struct follow_deps deps = {
        .world = b->world, .config = &b->config, .me = b->id, .throttle = &b->throttle_follower,
        .broker_epoch = broker_epoch, .arg = b
    };
    if (is_alone(b))
        return 0;
    b->follow = follow_new(&deps);
    if (b->follow != NULL)
        return 0;
    int rc = errno == 0 ? -EAGAIN : -errno;
    snprintf(err, err_size, "cannot start the fetchers of replicas: %s", strerror(-rc));
    return rc;
}

static void make_coordinator(struct broker *b)
{
    struct coordinator_deps deps = {
        .world = b->world,
        .config = &b->config,
        .loops = b->loops,
        .n_loops = b->n_loops,
        .workers = b->workers,
        .partitions = b->partitions,
        .cluster = b->cluster,
        .answer_join = join_group_answer,
        .answer_sync = sync_group_answer,
    };
    b->coordinator = coordinator_new(&deps);
}

static void fill_services(struct broker *b)
{
    b->services = (struct services){
        .world = b->world,
        .id = b->id,
        .config = &b->config,
        .workers = b->workers,
        .dirs = b->dirs,
        .partitions = b->partitions,
        .cluster = b->cluster,
        .coordinator = b->coordinator,
        .throttle = &b->throttle_leader,
    };
}

/* On loops[0], as apply_settings, which asks whether there is a cleaner yet. */
static void start_cleaner(void *arg)
{
    struct broker *b = arg;
    struct cluster_image *img = cluster_image_get(b->cluster);
    b->cleaner = cleaner_new(b->world, b->dirs, b->partitions, &img->defaults->config);
    cluster_image_put(img);
}

static int start_watch(struct broker *b, char *err, size_t err_size)
{
    if (b->config.http_listener[0] == '\0')
        return 0;
    b->watch = watch_new(b->world, &b->config, err, err_size);
    return b->watch == NULL ? -EINVAL : 0;
}

static void watch_all(struct broker *b)
{
    struct watch_sources src = {
        .id = b->id,
        .cluster_id = b->cluster_id,
        .server = b->server,
        .partitions = b->partitions,
        .cluster = b->cluster,
        .coordinator = b->coordinator,
        .flusher = b->flusher,
        .workers = b->workers,
        .dirs = b->dirs,
    };
    watch_serve(b->watch, &src);
}

static int start_all(struct broker *b, char *err, size_t err_size)
{
    throttle_init(&b->throttle_leader);
    throttle_init(&b->throttle_follower);
    int rc = start_watch(b, err, err_size);
    if (rc == 0)
        rc = start_loops(b, err, err_size);
    if (rc < 0)
        return rc;
    b->workers = workers_new(b->world, b->config.num_io_threads, "klogd-io");
    make_server(b, err, err_size);
    if (b->server == NULL)
        return -EINVAL;
    rc = start_storage(b, err, err_size);
    if (rc < 0)
        return rc;
    make_cluster(b);
    make_coordinator(b);
    rc = make_follow(b, err, err_size);
    if (rc < 0)
        return rc;
    rc = cluster_start(b->cluster, err, err_size);
    if (rc < 0)
        return rc;
    coordinator_start(b->coordinator);
    b->upkeep = upkeep_new(b->world, b->loops[0], b->workers, b->partitions, &b->config);
    loop_call(b->loops[0], start_cleaner, b);
    b->scrubber = scrubber_new(b->world, b->dirs, b->partitions, &b->config);
    fill_services(b);
    b->started = true;
    rc = server_start(b->server, logdirs_segment_files(b->dirs), err, err_size);
    if (rc == 0)
        watch_all(b);
    return rc;
}

int broker_start(struct broker *b, char *err, size_t err_size)
{
    err[0] = '\0';
    int rc = start_all(b, err, err_size);
    if (rc < 0)
        broker_stop(b);
    return rc;
}

/* ---- stop ---- */
/* Nothing but this thread runs any more. */
static void close_registers(struct broker *b)
{
    if (b->registers != NULL)
        registers_close(b->registers);
    b->registers = NULL;
    free(b->store_wait);
    b->store_wait = NULL;
}

static bool close_storage(struct broker *b)
{
    int n = logdirs_count(b->dirs);
    CLEANUP(freep) bool *dir_clean = xcalloc((size_t)n, sizeof *dir_clean);
    for (int i = 0; i < n; i++)
        dir_clean[i] = b->started || datadir_was_clean(logdirs_at(b->dirs, i)); /* a failed start leaves it as it was */
    if (b->partitions != NULL)
        partitions_close(b->partitions, dir_clean);
    cluster_free(b->cluster);
    close_registers(b);
    return logdirs_close(b->dirs, dir_clean);
}

bool broker_stop(struct broker *b)
{
    watch_stop(b->watch);
    cluster_drain(b->cluster, HAND_OVER_MS);
    coordinator_stop(b->coordinator);
    server_stop(b->server);
    coordinator_drain(b->coordinator);
    upkeep_stop(b->upkeep);
    cleaner_stop(b->cleaner);
    scrubber_stop(b->scrubber);
    cluster_stop(b->cluster);
    follow_stop(b->follow);
    join_loops(b); /* nobody submits jobs or appends after this */
    cleaner_free(b->cleaner);
    scrubber_free(b->scrubber);
    workers_free(b->workers);
    flusher_free(b->flusher);
    follow_free(b->follow);
    coordinator_free(b->coordinator);
    bool clean = b->dirs == NULL || close_storage(b);
    close_registers(b); /* of a start that did not come to the directories */
    partitions_free(b->partitions);
    upkeep_free(b->upkeep);
    watch_free(b->watch);
    server_free(b->server);
    free_endpoints(b);
    free_loops(b);
    throttle_done(&b->throttle_leader);
    throttle_done(&b->throttle_follower);
    return clean;
}
