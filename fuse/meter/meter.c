/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting. libfuse lets others do its reads and writes of /dev/fuse: each request of the kernel and each answer comes by here,
 * whatever it is and whoever answers it, and no handler knows of it. Answers are counted before they go to the kernel, so that
 * who has one finds it in /metrics.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/meter/meter_int.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/metrics/http.h"
#include "lib/wire/wire.h"

#define BEAT_MS 1000

static const char *const kind_names[KINDS] = {
    [FUSE_LOOKUP] = "lookup",           [FUSE_GETATTR] = "getattr",         [FUSE_SETATTR] = "setattr",
    [FUSE_READLINK] = "readlink",       [FUSE_SYMLINK] = "symlink",         [FUSE_MKNOD] = "mknod",
    [FUSE_MKDIR] = "mkdir",             [FUSE_UNLINK] = "unlink",           [FUSE_RMDIR] = "rmdir",
    [FUSE_RENAME] = "rename",           [FUSE_LINK] = "link",               [FUSE_OPEN] = "open",
    [FUSE_READ] = "read",               [FUSE_WRITE] = "write",             [FUSE_STATFS] = "statfs",
    [FUSE_RELEASE] = "release",         [FUSE_FSYNC] = "fsync",             [FUSE_SETXATTR] = "setxattr",
    [FUSE_GETXATTR] = "getxattr",       [FUSE_LISTXATTR] = "listxattr",     [FUSE_REMOVEXATTR] = "removexattr",
    [FUSE_FLUSH] = "flush",             [FUSE_INIT] = "init",               [FUSE_OPENDIR] = "opendir",
    [FUSE_READDIR] = "readdir",         [FUSE_RELEASEDIR] = "releasedir",   [FUSE_FSYNCDIR] = "fsyncdir",
    [FUSE_GETLK] = "getlk",             [FUSE_SETLK] = "setlk",             [FUSE_SETLKW] = "setlkw",
    [FUSE_ACCESS] = "access",           [FUSE_CREATE] = "create",           [FUSE_BMAP] = "bmap",
    [FUSE_DESTROY] = "destroy",         [FUSE_IOCTL] = "ioctl",             [FUSE_POLL] = "poll",
    [FUSE_FALLOCATE] = "fallocate",     [FUSE_READDIRPLUS] = "readdirplus", [FUSE_RENAME2] = "rename2",
    [FUSE_LSEEK] = "lseek",             [FUSE_COPY_FILE_RANGE] = "copy_file_range",
};

const char *meter_kind_name(size_t kind)
{
    return kind_names[kind] != NULL ? kind_names[kind] : "other";
}

static struct lane *my_lane(struct meter *t)
{
    return &t->lanes[pthread_equal(pthread_self(), t->loop_thread) ? 0 : 1];
}

/* ---- requests ---- */
static bool has_no_answer(uint32_t opcode)
{
    return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT || opcode == FUSE_NOTIFY_REPLY;
}

static void note_request(struct meter *t, const struct fuse_in_header *in)
{
    if (has_no_answer(in->opcode) || in->unique == 0)
        return;
    uint32_t kind = in->opcode < KINDS && kind_names[in->opcode] != NULL ? in->opcode : 0;
    if (under_way_take(&t->under_way, in->unique, kind, clock_mono_ns()) && kind == FUSE_READ)
        counter_add(&t->taken.reads, 1);
}

static ssize_t read_request(int fd, void *buf, size_t size, void *mount)
{
    struct mount *m = mount;
    ssize_t n = read(fd, buf, size);
    if (n >= (ssize_t)sizeof(struct fuse_in_header))
        note_request(m->meter, buf);
    return n;
}

/* ---- answers ---- */
/* What an answer that went well says. */
static void note_done(struct lane *l, uint32_t kind, const struct fuse_out_header *out, const struct iovec *rest)
{
    if (kind == FUSE_READ)
        counter_add(&l->read_bytes, out->len - sizeof *out);
    else if (kind == FUSE_WRITE && rest != NULL && rest->iov_len >= sizeof(struct fuse_write_out))
        counter_add(&l->written_bytes, ((const struct fuse_write_out *)rest->iov_base)->size);
    else if (kind == FUSE_OPEN || kind == FUSE_CREATE)
        counter_add(&l->opened, 1);
    else if (kind == FUSE_OPENDIR)
        counter_add(&l->opened_dirs, 1);
    else if (kind == FUSE_RELEASE)
        counter_add(&l->closed, 1);
    else if (kind == FUSE_RELEASEDIR)
        counter_add(&l->closed_dirs, 1);
}

/* Who opened it has gone meanwhile: the kernel will never close it. */
static void note_refused(struct lane *l, uint32_t kind)
{
    if (kind == FUSE_OPEN || kind == FUSE_CREATE)
        counter_add(&l->closed, 1);
    else if (kind == FUSE_OPENDIR)
        counter_add(&l->closed_dirs, 1);
}

static bool note_answer(struct meter *t, struct lane *l, const struct iovec *iov, int n, uint32_t *ret_kind)
{
    const struct fuse_out_header *out = iov[0].iov_base;
    int64_t since_ns;
    if (out->unique == 0 || !under_way_answered(&t->under_way, out->unique, ret_kind, &since_ns))
        return false; /* news of our own, or an interrupt that found nobody */
    histogram_add(&l->took[*ret_kind], (clock_mono_ns() - since_ns) / 1000);
    if (out->error == 0)
        note_done(l, *ret_kind, out, n > 1 ? &iov[1] : NULL);
    else
        counter_add(&l->errors[*ret_kind][out->error > -ERRNOS && out->error < 0 ? -out->error : 0], 1);
    return out->error == 0;
}

static ssize_t write_answer(int fd, struct iovec *iov, int n, void *mount)
{
    struct mount *m = mount;
    struct lane *l = my_lane(m->meter);
    uint32_t kind;
    bool done = note_answer(m->meter, l, iov, n, &kind);
    ssize_t rc = writev(fd, iov, n);
    if (rc < 0 && done) {
        int why = errno;
        note_refused(l, kind);
        errno = why;
    }
    return rc;
}

int meter_attach(struct meter *t, struct fuse_session *se)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)
    static const struct fuse_custom_io io = { .read = read_request, .writev = write_answer };
    (void)t;
    return fuse_session_custom_io(se, &io, fuse_session_fd(se));
#else
    (void)t, (void)se, (void)read_request, (void)write_answer;
    return -EOPNOTSUPP;
#endif
}

void meter_sent(void *meter, int16_t api_key)
{
    struct meter *t = meter;
    const struct wire_api *api = wire_api_find(api_key);
    size_t i = api == NULL ? APIS_MAX : (size_t)(api - wire_api_at(0));
    if (i < APIS_MAX)
        counter_add(&t->taken.requests[i], 1);
}

/* ---- life ---- */
static void on_beat(struct timer *timer)
{
    struct meter *t = container_of(timer, struct meter, beat);
    atomic_store(&t->beat_mono_ms, clock_mono_ms());
    atomic_store(&t->missed, mount_misses_brokers(t->mount));
    timer_set_in(t->mount->loop, &t->beat, BEAT_MS);
}

struct meter *meter_new(struct mount *m, char *err, size_t err_size)
{
    struct meter *t = xcalloc(1, sizeof *t);
    t->mount = m;
    t->started_wall_ms = clock_wall_ms();
    t->loop_thread = pthread_self();
    t->beat.cb = on_beat;
    t->http = http_server_new(&m->world, m->opt->http_listener, "http.listener", meter_answer, t, err, err_size);
    if (t->http != NULL)
        return t;
    free(t);
    return NULL;
}

void meter_serve(struct meter *t)
{
    on_beat(&t->beat);
    atomic_store(&t->phase, METER_SERVING);
}

void meter_stop(struct meter *t)
{
    if (t != NULL)
        atomic_store(&t->phase, METER_STOPPING);
}

void meter_close(struct meter *t)
{
    if (t == NULL)
        return;
    meter_stop(t);
    timer_clear(t->mount->loop, &t->beat);
    http_server_free(t->http);
    t->http = NULL;
}

void meter_free(struct meter *t)
{
    if (t == NULL)
        return;
    under_way_done(&t->under_way);
    free(t);
}
