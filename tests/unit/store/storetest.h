/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data directory of a test's own, under the working directory, and batches to put into it. Every test that
 * uses it has fixture_setup and fixture_teardown.
 */
#ifndef KLOG_STORETEST_H
#define KLOG_STORETEST_H

#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/record/build.h"
#include "lib/store/datadir_int.h"
#include "lib/store/plog.h"
#include "lib/store/plog_check.h"
#include "lib/store/plog_int.h"

#define T0 1700000000000LL

struct fixture {
    char path[64], real_path[64];
    const struct store_io *io; /* NULL: the real one */
    struct world world;        /* with that disk */
    struct datadir *dd;
    struct plog *l;
    struct plog_config cfg;
    struct plog_recovery rec;
    struct uuid topic_id;
    int64_t now_ms;
    int32_t epoch; /* leader epoch of what is appended */
    int64_t seed;  /* simtest.h: the one that runs; -1 none */
};

static inline int fixture_setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    test_dir_make(f->path, sizeof f->path, "klog-store");
    f->cfg = (struct plog_config){
        .segment_bytes = 1 << 20,
        .segment_ms = 7LL * 24 * 3600 * 1000,
        .index_interval_bytes = 4096,
        .retention_ms = -1,
        .retention_bytes = -1,
        .delete_policy = true,
        .producer_expiry_ms = 86400000,
    };
    f->seed = -1;
    plog_after_call = plog_check;
    memset(f->topic_id.b, 7, sizeof f->topic_id.b);
    f->now_ms = T0;
    *state = f;
    return 0;
}

static inline const struct world *world_of(struct fixture *f)
{
    f->world = (struct world){
        .clock = &clock_real,
        .random = &random_real,
        .machine = &machine_real,
        .io = f->io == NULL ? &store_io_real : f->io,
    };
    return &f->world;
}

static inline void must_open_dir(struct fixture *f)
{
    struct datadir_identity id = { .broker_id = 1 };
    char err[256] = "";
    int rc = datadir_open(f->path, world_of(f), &id, &f->dd, err, sizeof err);
    if (rc < 0)
        fail_msg("datadir_open: %d %s", rc, err);
}

static inline void must_open(struct fixture *f)
{
    must_open_dir(f);
    int rc = plog_open(f->dd, "orders", 0, &f->topic_id, &f->cfg, f->now_ms, &f->l, &f->rec);
    if (rc < 0)
        fail_msg("plog_open: %d", rc);
}

/* clean: as a stop by SIGTERM; else as SIGKILL leaves it. */
static inline void shut(struct fixture *f, bool clean)
{
    struct plog_ends e;
    plog_ends(f->l, &e);
    assert_int_equal(plog_close(f->l, clean, e.end_offset), 0);
    datadir_close(f->dd, clean);
    f->l = NULL;
    f->dd = NULL;
}

static inline void reopen(struct fixture *f, bool clean)
{
    shut(f, clean);
    must_open(f);
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    if (f->seed >= 0) /* the test did not come to its end */
        print_message("seed %lld\n", (long long)f->seed);
    if (f->l != NULL)
        plog_close(f->l, false, 0);
    datadir_close(f->dd, false);
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->path), 0);
    free(f);
    return 0;
}

struct batch_spec {
    int n;             /* records */
    int value_bytes;   /* each */
    int64_t timestamp; /* of the first; the others 1 ms later each; 0: T0 */
    enum codec codec;
    int64_t producer_id; /* 0: none */
    int16_t producer_epoch;
    int32_t base_sequence;
};

/* Record i of a batch has the value "i:xxxx..." of value_bytes bytes. */
static inline void make_batch(const struct batch_spec *spec, struct bytebuf *ret)
{
    struct batch_builder b;
    struct batch_producer p = {
        .id = spec->producer_id == 0 ? -1 : spec->producer_id,
        .epoch = spec->producer_id == 0 ? -1 : spec->producer_epoch,
        .base_sequence = spec->producer_id == 0 ? -1 : spec->base_sequence,
    };
    int64_t ts = spec->timestamp == 0 ? T0 : spec->timestamp;

    batch_builder_init(&b);
    for (int i = 0; i < spec->n; i++) {
        char *v = xmalloc((size_t)spec->value_bytes + 16);
        memset(v, 'a' + i % 26, (size_t)spec->value_bytes);
        batch_builder_add(&b, ts + i, KSTR_NULL, kstr_bytes(v, (size_t)spec->value_bytes), NULL, 0);
        free(v);
    }
    assert_int_equal(batch_builder_finish(&b, spec->codec, 0, &p, 0, ret), 0);
    batch_builder_done(&b);
}

static inline struct plog_appended append_spec(struct fixture *f, const struct batch_spec *spec)
{
    struct plog_appended a;
    struct bytebuf b = { 0 };
    struct batch_info info = { .text_bytes = (int64_t)spec->n * (spec->value_bytes + 1) };

    make_batch(spec, &b);
    batch_header_read(b.p, &info.h);
    plog_append(f->l, b.p, b.n, &info, f->epoch, f->now_ms, -1, &a);
    bytebuf_done(&b);
    return a;
}

static inline struct plog_appended append_n(struct fixture *f, int n, int value_bytes)
{
    const struct batch_spec spec = { .n = n, .value_bytes = value_bytes };
    return append_spec(f, &spec);
}

static inline int flush(struct fixture *f)
{
    struct plog_flush *t = plog_flush_begin(f->l);
    if (t == NULL)
        return 0;
    int rc = plog_flush_run(t);
    plog_flush_end(f->l, t, rc);
    return rc;
}

static inline struct plog_ends ends_of(struct fixture *f)
{
    struct plog_ends e;
    plog_ends(f->l, &e);
    return e;
}

/* Reads the whole log batch by batch and checks every checksum and that offsets have no gap; returns the end.
 */
static inline int64_t check_log(struct fixture *f)
{
    struct plog_ends e = ends_of(f);
    int64_t next = e.start_offset;

    while (next < e.end_offset) {
        struct plog_span s;
        int rc = plog_read(f->l, next, e.end_offset, 100000, true, &s);
        if (rc < 0 || s.file == NULL)
            fail_msg("plog_read at %lld: %d, %lld bytes", (long long)next, rc, (long long)s.n);
        uint8_t *p = xmalloc((size_t)s.n);
        assert_int_equal(plog_span_read(&s, p), 0);
        struct slice rest = slice_of(p, (size_t)s.n);
        while (rest.n > 0) {
            struct batch_header h;
            assert_int_equal(batch_check(rest, 1 << 30, &h), 0);
            assert_true(h.base_offset <= next);
            assert_true(h.base_offset == next || next == e.start_offset);
            next = batch_last_offset(&h) + 1;
            rest = slice_of(rest.p + batch_size(&h), rest.n - (size_t)batch_size(&h));
        }
        free(p);
        plog_span_release(&s);
    }
    return next;
}

static inline void file_path(const struct fixture *f, const char *file, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%s/orders-0/%s", f->path, file);
}

static inline int64_t file_size(struct fixture *f, const char *file)
{
    const struct store_io *io = world_of(f)->io;
    char path[PATH_MAX];
    struct io_stat st;
    file_path(f, file, path);
    return io->statat(io, AT_FDCWD, path, 0, &st) < 0 ? -1 : st.size;
}

/* Writes n bytes at `at` (-1: the end) of a file of the partition. */
static inline void file_poke(const struct fixture *f, const char *file, int64_t at, const void *p, size_t n)
{
    char path[PATH_MAX];
    file_path(f, file, path);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    if (at < 0)
        at = lseek(fd, 0, SEEK_END);
    assert_int_equal(pwrite(fd, p, n, at), n);
    close(fd);
}

static inline void file_cut(const struct fixture *f, const char *file, int64_t size)
{
    char path[PATH_MAX];
    file_path(f, file, path);
    assert_int_equal(truncate(path, size), 0);
}

static inline void file_zero(struct fixture *f, const char *file)
{
    int64_t n = file_size(f, file);
    assert_true(n >= 0);
    uint8_t *zeros = xcalloc(1, (size_t)n + 1);
    file_poke(f, file, 0, zeros, (size_t)n);
    free(zeros);
}

static inline void file_remove(const struct fixture *f, const char *file)
{
    char path[PATH_MAX];
    file_path(f, file, path);
    assert_int_equal(unlink(path), 0);
}

struct counting {
    const char *suffix;
    int n;
};

static inline int count_if_ends_so(void *arg, const char *name, enum io_kind kind)
{
    struct counting *c = arg;
    size_t len = strlen(name), tail = strlen(c->suffix);
    (void)kind;
    c->n += len > tail && strcmp(name + len - tail, c->suffix) == 0;
    return 0;
}

/* Number of files of the partition whose names end so. */
static inline int count_files(struct fixture *f, const char *suffix)
{
    const struct store_io *io = world_of(f)->io;
    struct counting c = { .suffix = suffix };
    char path[PATH_MAX];
    file_path(f, ".", path);
    assert_int_equal(io->list(io, AT_FDCWD, path, count_if_ends_so, &c), 0);
    return c.n;
}

#define SEG0 "00000000000000000000"
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

#endif
