/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount's life. Start: clients, a first look at the cluster, mount. Run: one epoll loop for the kernel's
 * requests and the brokers' answers. End, by signal or by umount: waiting reads see end of file, unfinished
 * last lines are sent, what is on its way is waited for (within the time-out), then the mount goes, lazily if
 * it is busy. Loop's thread.
 */
#include "fuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fuse/base/missed.h"
#include "fuse/cluster/statfs.h"
#include "fuse/cluster/topics.h"
#include "fuse/file/append.h"
#include "fuse/file/merged.h"
#include "fuse/group/reader.h"
#include "fuse/kinds.h"
#include "fuse/meter/meter.h"
#include "fuse/ops.h"
#include "fuse/partition/pfile.h"
#include "fuse/partition/poke.h"
#include "fuse/partition/watch.h"
#include "fuse/tree/file.h"
#include "fuse/tree/node.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/service.h"
#include "lib/client/sync.h"
#include "lib/loop/exec.h"

/* Requests of the kernel that are taken in before the brokers' answers get their turn. */
#define REQUESTS_A_ROUND 64
#define WORKER_THREADS   2
#define END_POLL_MS      5

/* ---- what libfuse says ---- */

/* Its last message, for the one line of reason when mounting fails; libfuse's hook has no argument to keep it
 * elsewhere. */
static char fuse_said[256];

PRINTF_LIKE(2, 0) static void on_fuse_log(enum fuse_log_level level, const char *fmt, va_list ap)
{
    (void)level;
    vsnprintf(fuse_said, sizeof fuse_said, fmt, ap);
    fuse_said[strcspn(fuse_said, "\n")] = '\0';
    log_debug("%s", fuse_said);
}

/* ---- the kernel's requests ---- */

static void session_stop(struct mount *m);

static void on_kernel(struct loop_fd *w, uint32_t events)
{
    struct mount *m = container_of(w, struct mount, se_watch);
    (void)events;
    for (int i = 0; i < REQUESTS_A_ROUND; i++) {
        int n = fuse_session_receive_buf(m->se, &m->se_buf);
        if (n == -EAGAIN)
            return;
        if (n == -EINTR)
            continue;
        if (n <= 0 || fuse_session_exited(m->se)) {
            loop_fd_del(m->loop, &m->se_watch);
            m->unmounted = true;
            session_stop(m);
            return;
        }
        fuse_session_process_buf(m->se, &m->se_buf);
    }
}

/* ---- stopping ---- */

static void on_end_timer(struct timer *t)
{
    struct mount *m = container_of(t, struct mount, end_timer);
    int64_t now = loop_now_ms(m->loop);
    if ((writers_pending(m->writers) == 0 && !readers_pending(m)) || now >= m->end_deadline_ms)
        loop_stop(m->loop);
    else
        timer_set(m->loop, t, now + END_POLL_MS);
}

static void session_stop(struct mount *m)
{
    if (m->stopping)
        return;
    m->stopping = true;
    meter_stop(m->meter);
    watch_stop(m->watch);
    poke_stop(m->poke);
    pfiles_wake(m);
    readers_end(m);
    merged_end_all(m);
    append_release_all(m);
    m->end_deadline_ms = mount_deadline_ms(m);
    m->end_timer.cb = on_end_timer;
    on_end_timer(&m->end_timer);
}

static void reopen_log(void)
{
    int rc = service_log_reopen();
    if (rc < 0)
        log_error("SIGHUP: the log file cannot be opened anew: %s; messages go on to the old one", strerror(-rc));
}

static void on_signal(struct loop_fd *w, uint32_t events)
{
    struct mount *m = container_of(w, struct mount, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGHUP)
        reopen_log();
    if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT)
        return;
    log_info("stopping: signal %u", info.ssi_signo);
    session_stop(m);
}

/* ---- starting ---- */

static int signals_watch(struct mount *m)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1); /* this one and the next mean nothing, and must not leave a dead mount */
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    m->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (m->signals.fd < 0)
        return -errno;
    m->signals.events = EPOLLIN;
    m->signals.cb = on_signal;
    return loop_fd_add(m->loop, &m->signals);
}

static struct client *client_start(struct mount *m)
{
    struct client_config cfg = { .brokers = m->opt->brokers,
                                 .client_id = "klogfs",
                                 .request_timeout_ms = MAX(m->opt->timeout_ms, 1000),
                                 .retry_backoff_ms = 100,
                                 .metadata_max_age_ms = 300000,
                                 .frame_max = 104857600,
                                 .sent = m->meter == NULL ? NULL : meter_sent,
                                 .sent_arg = m->meter };
    return client_new(m->loop, m->workers, &cfg);
}

static struct workers *replier_start(const struct world *w)
{
    cpu_set_t cpus;
    bool alone = sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1;
    return alone ? NULL : workers_new(w, 1, "klogfs-reply");
}

static int clients_start(struct mount *m)
{
    m->replier = replier_start(&m->world);
    m->workers = workers_new(&m->world, WORKER_THREADS, "klogfs");
    m->client = client_start(m);
    m->writer = m->client == NULL ? NULL : client_start(m);
    if (m->writer == NULL)
        return -errno;
    struct producer_config cfg = { .acks = m->opt->required_acks,
                                   .compression = (enum codec)m->opt->compression,
                                   .linger_ms = m->opt->async ? m->opt->linger_ms : 0,
                                   .batch_size = m->opt->batch_size_bytes,
                                   .delivery_timeout_ms = m->opt->timeout_ms };
    m->producer = producer_new(m->writer, &cfg);
    return 0;
}

static void parts_start(struct mount *m)
{
    TAILQ_INIT(&m->requests);
    LIST_INIT(&m->handles);
    LIST_INIT(&m->group_users);
    m->kinds = kinds;
    TAILQ_INIT(&m->group_waits);
    text_cache_init(&m->texts, TEXT_CACHE_MAX);
    m->topics = topics_new(m);
    m->ends = ends_asker_new(m);
    m->writers = writers_new(m);
    m->watch = watch_new(m);
    m->disk = disk_figures_new();
    m->started_wall_ms = clock_wall_ms();
    nodes_new(m);
}

static int kernel_mount(struct mount *m, char *err, size_t err_size)
{
    const struct options *o = m->opt;
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    char *list = NULL;
    CLEANUP(freep) char *name = xasprintf("fsname=%s", o->brokers);
    CLEANUP(freep)
    char *others = xasprintf("subtype=klogfs%s%s%s%s", o->ro ? ",ro" : "", o->allow_other ? ",allow_other" : "",
                             o->modes_matter ? ",default_permissions" : "",
                             bytebuf_cstr((struct bytebuf *)&o->kernel_options));
    fuse_opt_add_opt(&list, others);
    fuse_opt_add_opt_escaped(&list, name); /* it has commas of its own */
    fuse_opt_add_arg(&args, "klogfs");
    fuse_opt_add_arg(&args, "-o");
    fuse_opt_add_arg(&args, list);
    free(list);
    struct stat st;
    if (stat(o->mountpoint, &st) == 0 && !S_ISDIR(st.st_mode)) {
        snprintf(err, err_size, "cannot mount on %s: it is not a directory", o->mountpoint);
        fuse_opt_free_args(&args);
        return -ENOTDIR;
    }
    fuse_set_log_func(on_fuse_log);
    m->se = fuse_session_new(&args, &klogfs_ops, sizeof klogfs_ops, m);
    fuse_opt_free_args(&args);
    if (m->se == NULL || fuse_session_mount(m->se, o->mountpoint) != 0) {
        snprintf(err, err_size, "cannot mount on %s (%s); is /dev/fuse there, and may you use it?",
                 o->mountpoint, fuse_said);
        return -EIO;
    }
    m->mounted = true;
    int rc = m->meter == NULL ? 0 : meter_attach(m->meter, m->se);
    if (rc != 0) {
        snprintf(err, err_size, "http.listener: operations cannot be counted: %s; libfuse 3.14 or later is needed", strerror(-rc));
        return rc;
    }
    m->se_watch.fd = fuse_session_fd(m->se);
    m->se_watch.events = EPOLLIN;
    m->se_watch.cb = on_kernel;
    fcntl(m->se_watch.fd, F_SETFL, fcntl(m->se_watch.fd, F_GETFL) | O_NONBLOCK);
    rc = loop_fd_add(m->loop, &m->se_watch);
    if (rc != 0)
        snprintf(err, err_size, "cannot watch the mount: %s", strerror(-rc));
    return rc;
}

static int session_begin(struct mount *m, char *err, size_t err_size)
{
    world_init_real(&m->world);
    m->loop = loop_new(&m->world);
    if (m->loop == NULL) {
        snprintf(err, err_size, "cannot make an event loop: %s", strerror(errno));
        return -errno;
    }
    int rc = signals_watch(m);
    if (rc == 0 && m->opt->http_listener[0] != '\0' && (m->meter = meter_new(m, err, err_size)) == NULL)
        return -EADDRNOTAVAIL;
    if (rc == 0)
        rc = clients_start(m);
    if (rc != 0) {
        snprintf(err, err_size, "\"%s\" is no list of HOST:PORT: %s", m->opt->brokers, strerror(-rc));
        return rc;
    }
    parts_start(m);
    rc = client_refresh_sync(m->loop, m->client, NULL, mount_deadline_ms(m));
    if (rc != 0) {
        snprintf(err, err_size, "no broker answers at %s (%s); is klogd running, and is the address right?",
                 m->opt->brokers, strerror(-rc));
        return rc;
    }
    rc = kernel_mount(m, err, err_size);
    if (rc == 0 && !m->opt->ro)
        m->poke = poke_new(m->opt->mountpoint);
    if (rc == 0 && m->meter != NULL)
        meter_serve(m->meter);
    return rc;
}

int session_start(struct mount *m, const struct options *opt, char *err, size_t err_size)
{
    *m = (struct mount){ .opt = opt, .signals.fd = -1 };
    int rc = session_begin(m, err, err_size);
    if (rc != 0)
        session_end(m);
    return rc;
}

void session_run(struct mount *m)
{
    loop_run(m->loop);
}

/* ---- the end ---- */

static void handles_end(struct mount *m)
{
    struct handle *h;
    while ((h = LIST_FIRST(&m->handles)) != NULL)
        handle_drop(h);
}

static void session_unmount(struct mount *m)
{
    if (m->mounted && !m->unmounted)
        loop_fd_del(m->loop, &m->se_watch);
    if (m->mounted)
        fuse_session_unmount(m->se);
}

/* Everything that is on its way ends with -ECANCELED here, before what it would touch goes. */
static void calls_end(struct mount *m)
{
    producer_free(m->producer);
    client_free(m->writer);
    client_free(m->client);
    m->producer = NULL;
    m->writer = m->client = NULL;
}

void session_end(struct mount *m)
{
    if (m->loop == NULL)
        return;
    m->stopping = true;
    meter_close(m->meter);
    if (m->topics != NULL) {
        requests_end(m);
        handles_end(m);
        readers_stop(m);
    }
    workers_free(m->replier); /* what it still has goes out */
    session_unmount(m);
    poke_free(m->poke);
    if (m->writer != NULL)
        calls_end(m);
    if (m->topics != NULL) {
        nodes_free(m);
        ends_asker_free(m->ends);
        watch_free(m->watch);
        writers_free(m->writers);
        topics_free(m->topics);
        text_cache_done(&m->texts);
        disk_figures_free(m->disk);
    }
    if (m->se != NULL)
        fuse_session_destroy(m->se);
    meter_free(m->meter);
    free(m->se_buf.mem);
    if (m->workers != NULL)
        workers_free(m->workers);
    if (m->signals.fd >= 0) {
        loop_fd_del(m->loop, &m->signals);
        close(m->signals.fd);
    }
    loop_free(m->loop);
    m->loop = NULL;
}
