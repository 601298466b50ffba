/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and stop, in the order that broker.h gives. Main thread; only broker_dir_failed() comes from others.
 */
#include "daemon/broker.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/group/coordinator.h"
#include "daemon/meta/cluster.h"
#include "daemon/meta/registers.h"
#include "daemon/replica/partition.h"
#include "daemon/server/server.h"
#include "daemon/upkeep/cleaner.h"
#include "daemon/upkeep/flusher.h"
#include "daemon/upkeep/upkeep.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/exec.h"
#include "lib/store/io.h"
#include "lib/store/register_files.h"

enum {
    FIRST_BROKER_ID = 1,
    KEPT_DESCRIPTORS_MAX = 32,
    SEGMENT_FILES_MAX = 512, /* descriptors of segments at rest, over all log directories */
};

/* ---- calls into a loop ---- */
struct loop_call {
    struct task task;
    void (*f)(void *arg);
    void *arg;
    sem_t done;
};

static void call_run(struct task *t)
{
    struct loop_call *call = container_of(t, struct loop_call, task);
    call->f(call->arg);
    sem_post(&call->done);
}

void broker_call(struct loop *lp, void (*f)(void *arg), void *arg)
{
    struct loop_call call = { .task.cb = call_run, .f = f, .arg = arg };
    sem_init(&call.done, 0, 0);
    loop_post(lp, &call.task);
    while (sem_wait(&call.done) < 0)
        ;
    sem_destroy(&call.done);
}

/* ---- log directories ---- */
/* Under whatever name. */
static bool is_open_dir(struct broker *b, const char *path)
{
    struct stat st, other;
    if (stat(path, &st) < 0)
        return false;
    for (int i = 0; i < b->n_dirs; i++) {
        if (b->dirs[i] != NULL && fstat(datadir_fd(b->dirs[i]), &other) == 0 && st.st_dev == other.st_dev && st.st_ino == other.st_ino)
            return true;
    }
    return false;
}

static int open_dir(struct broker *b, int i, const char *path, struct datadir_identity *identity, char *err,
                    size_t err_size)
{
    if (is_open_dir(b, path)) {
        snprintf(err, err_size, "log.dirs: %s is named twice: name each directory once", path);
        return -EINVAL;
    }
    int rc = datadir_open(path, b->world, identity, &b->dirs[i], err, err_size);
    if (rc == 0)
        datadir_keep_reserve(b->dirs[i]);
    return rc;
}

static char **list_dirs(const struct broker *b, int *ret_n)
{
    CLEANUP(freep) char *list = xstrdup(b->config.log_dirs);
    char **paths = NULL, *save = NULL;
    for (char *path = strtok_r(list, ", ", &save); path != NULL; path = strtok_r(NULL, ", ", &save)) {
        paths = xreallocarray(paths, (size_t)*ret_n + 1, sizeof(char *));
        paths[(*ret_n)++] = xstrdup(path);
    }
    return paths;
}

static bool has_identity(const char *path)
{
    CLEANUP(freep) char *file = xasprintf("%s/meta.properties", path);
    return access(file, F_OK) == 0;
}

/* Those that know whose they are come first, so that a new one learns it from them. */
static int open_each_dir(struct broker *b, char *const *paths, struct datadir_identity *identity, char *err,
                         size_t err_size)
{
    CLEANUP(freep) bool *known = xcalloc((size_t)b->n_dirs + 1, sizeof *known);
    int rc = 0;
    for (int i = 0; i < b->n_dirs; i++)
        known[i] = has_identity(paths[i]);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->n_dirs && rc == 0; i++)
            if (known[i] == (pass == 0))
                rc = open_dir(b, i, paths[i], identity, err, err_size);
    return rc;
}

static void close_dirs_unused(struct broker *b)
{
    for (int i = 0; i < b->n_dirs; i++)
        if (b->dirs[i] != NULL)
            datadir_close(b->dirs[i], datadir_was_clean(b->dirs[i]));
    free(b->dirs);
    b->dirs = NULL;
    b->n_dirs = 0;
}

static int open_all_dirs(struct broker *b, struct datadir_identity *identity, char *err, size_t err_size)
{
    char **paths = list_dirs(b, &b->n_dirs);
    int rc = 0;
    if (b->n_dirs == 0) {
        snprintf(err, err_size, "log.dirs: no directory is named; set log.dirs to where the data shall live");
        rc = -EINVAL;
    }
    b->dirs = xcalloc((size_t)b->n_dirs + 1, sizeof(*b->dirs));
    if (rc == 0)
        rc = open_each_dir(b, paths, identity, err, err_size);
    for (int i = 0; i < b->n_dirs; i++)
        free(paths[i]);
    free(paths);
    if (rc < 0)
        close_dirs_unused(b); /* as they were */
    return rc;
}

/* Directories that nobody has given a number get this one. They learn it by being opened with it. */
static int number_dirs(struct broker *b, struct datadir_identity *identity, char *err, size_t err_size)
{
    close_dirs_unused(b);
    identity->broker_id = FIRST_BROKER_ID;
    return open_all_dirs(b, identity, err, err_size);
}

/* The limit of the process is shared: segments at rest may take a third of it, some are kept for what the store opens
 * only for a moment, and connections get what is left (connections_possible). */
static void limit_files(struct broker *b)
{
    int64_t limit = b->world->machine->fd_limit(b->world->machine);
    b->segment_files = (int)MIN((int64_t)SEGMENT_FILES_MAX, limit / 3);
    for (int i = 0; i < b->n_dirs; i++)
        datadir_set_file_limit(b->dirs[i], MAX(1, b->segment_files / b->n_dirs));
    if (b->world->io == &store_io_real)
        io_keep_descriptors((int)MIN((int64_t)KEPT_DESCRIPTORS_MAX, limit / 8));
}

static int open_dirs(struct broker *b, char *err, size_t err_size)
{
    struct datadir_identity identity = { .broker_id = b->config.broker_id };
    snprintf(identity.cluster_id, sizeof identity.cluster_id, "%s", b->config.cluster_id);
    int rc = open_all_dirs(b, &identity, err, err_size);
    if (rc == 0 && identity.broker_id < 0)
        rc = number_dirs(b, &identity, err, err_size);
    if (rc < 0)
        return rc;
    limit_files(b);
    b->id = identity.broker_id;
    snprintf(b->cluster_id, sizeof b->cluster_id, "%s", identity.cluster_id);
    b->dir_failed = xcalloc((size_t)b->n_dirs, sizeof *b->dir_failed);
    return 0;
}

static bool note_dir_failed(struct broker *b, int dir, bool *ret_all)
{
    pthread_mutex_lock(&b->dirs_mu);
    bool news = !b->dir_failed[dir];
    b->dir_failed[dir] = true;
    *ret_all = true;
    for (int i = 0; i < b->n_dirs; i++)
        *ret_all &= b->dir_failed[i];
    pthread_mutex_unlock(&b->dirs_mu);
    return news;
}

void broker_dir_failed(struct broker *b, int dir, int eno)
{
    bool all;
    if (!note_dir_failed(b, dir, &all))
        return;
    log_error("log directory %s failed: %s; its partitions are offline until klogd is started anew",
              datadir_path(b->dirs[dir]), strerror(eno));
    if (all) {
        log_error("no log directory is left; stopping without a clean marker");
        b->world->machine->die(b->world->machine, BROKER_EXIT_STORAGE);
        return;
    }
    partitions_dir_failed(b->partitions, dir);
}

/* ---- threads ---- */
static void loop_main(void *arg)
{
    plog_thread_may_not_wait();
    loop_run(arg);
}

static int start_loops(struct broker *b, char *err, size_t err_size)
{
    int n = broker_config_network_threads(&b->config, b->world->machine);
    b->loops = xcalloc((size_t)n, sizeof(struct loop *));
    b->loop_threads = xcalloc((size_t)n, sizeof(struct thread *));
    for (int i = 0; i < n; i++) {
        struct loop *lp = loop_new(b->world);
        if (lp == NULL) {
            snprintf(err, err_size, "cannot make an event loop: %s", strerror(errno));
            return -EMFILE;
        }
        struct thread *t = b->world->exec->thread_start(b->world->exec, loop_main, lp, "klogd-net");
        KCHECK(t != NULL);
        b->loop_threads[b->n_loops] = t;
        b->loops[b->n_loops++] = lp;
    }
    return 0;
}

static void join_loops(struct broker *b)
{
    for (int i = 0; i < b->n_loops; i++) {
        loop_stop(b->loops[i]);
        b->world->exec->thread_join(b->world->exec, b->loop_threads[i]);
    }
}

static void free_loops(struct broker *b)
{
    for (int i = 0; i < b->n_loops; i++)
        loop_free(b->loops[i]);
    free(b->loops);
    free(b->loop_threads);
}

/* ---- registers ---- */
static void registers_failed(void *arg, int eno)
{
    broker_dir_failed(arg, 0, eno);
}

/* They are in the directory that is named first, and in no other. New ones are made only where there is nothing yet
 * (S14): without them nobody knows what topics there are. */
static int open_registers(struct broker *b, char *err, size_t err_size)
{
    bool may_create = true;
    for (int i = 0; i < b->n_dirs; i++) {
        int holds_data = datadir_holds_data(b->dirs[i]);
        if (i > 0 && datadir_has_file(b->dirs[i], REGISTERS_JOURNAL)) {
            snprintf(err, err_size,
                     "registers.journal is in %s, but the registers belong in %s, which log.dirs names first: name the "
                     "directories in the order they had, or move it away if %s has the right one",
                     datadir_path(b->dirs[i]), datadir_path(b->dirs[0]), datadir_path(b->dirs[0]));
            return -EEXIST;
        }
        may_create &= holds_data == 0 && !datadir_was_clean(b->dirs[i]);
    }
    return registers_open_embedded(b->dirs[0], may_create, b->loops[0], registers_failed, b, &b->registers, err,
                                   err_size);
}

/* ---- start ---- */
static int start_storage(struct broker *b, char *err, size_t err_size)
{
    int rc = open_dirs(b, err, err_size);
    return rc < 0 ? rc : open_registers(b, err, err_size);
}

/* There, since broker_apply_settings looks for it there. */
static void start_cleaner(void *arg)
{
    struct broker *b = arg;
    b->cleaner = cleaner_new(b);
}

void broker_apply_settings(struct broker *b, const struct broker_config *now)
{
    log_set_level((enum log_level)now->log_level);
    server_limit_connections(b->server, now->max_connections);
    int n = workers_resize(b->workers, now->num_io_threads);
    if (n < now->num_io_threads)
        log_warn("num.io.threads=%d: the system gives no more than %d", now->num_io_threads, n);
    cleaner_configure(b->cleaner, now);
}

static int start_all(struct broker *b, char *err, size_t err_size)
{
    b->server = server_new(b, err, err_size);
    if (b->server == NULL)
        return -EINVAL;
    int rc = start_loops(b, err, err_size);
    if (rc < 0)
        return rc;
    b->workers = workers_new(b->world, b->config.num_io_threads, "klogd-io");
    rc = start_storage(b, err, err_size);
    if (rc < 0)
        return rc;
    b->partitions = partitions_new(b);
    b->flusher = flusher_new(b);
    b->cluster = cluster_new(b);
    b->coordinator = coordinator_new(b);
    rc = cluster_start(b->cluster, err, err_size);
    if (rc < 0)
        return rc;
    coordinator_start(b->coordinator);
    b->upkeep = upkeep_new(b);
    broker_call(b->loops[0], start_cleaner, b);
    b->started_ms = world_wall_ms(b->world);
    return server_start(b->server, err, err_size);
}

int broker_start(struct broker *b, char *err, size_t err_size)
{
    pthread_mutex_init(&b->dirs_mu, NULL);
    err[0] = '\0';
    int rc = start_all(b, err, err_size);
    if (rc < 0)
        broker_stop(b);
    return rc;
}

/* ---- stop ---- */
static bool close_dirs(struct broker *b, const bool *dir_clean)
{
    bool clean = true;
    for (int i = 0; i < b->n_dirs; i++) {
        bool well = dir_clean[i] && !datadir_failed(b->dirs[i]);
        datadir_close(b->dirs[i], well);
        clean &= well;
    }
    free(b->dirs);
    free(b->dir_failed);
    return clean;
}

/* Nothing but this thread runs any more. */
static bool close_storage(struct broker *b)
{
    CLEANUP(freep) bool *dir_clean = xcalloc((size_t)b->n_dirs + 1, sizeof *dir_clean);
    for (int i = 0; i < b->n_dirs; i++)
        dir_clean[i] =
            b->started_ms > 0 || datadir_was_clean(b->dirs[i]); /* a failed start leaves it as it was */
    if (b->partitions != NULL)
        partitions_close(b->partitions, dir_clean);
    cluster_free(b->cluster);
    if (b->registers != NULL)
        registers_close(b->registers);
    return close_dirs(b, dir_clean);
}

bool broker_stop(struct broker *b)
{
    coordinator_stop(b->coordinator);
    server_stop(b->server);
    coordinator_drain(b->coordinator);
    upkeep_stop(b->upkeep);
    cleaner_stop(b->cleaner);
    cluster_stop(b->cluster);
    join_loops(b); /* nobody submits jobs or appends after this */
    cleaner_free(b->cleaner);
    workers_free(b->workers);
    flusher_free(b->flusher);
    coordinator_free(b->coordinator);
    bool clean = close_storage(b);
    partitions_free(b->partitions);
    upkeep_free(b->upkeep);
    server_free(b->server);
    free_loops(b);
    pthread_mutex_destroy(&b->dirs_mu);
    return clean;
}
