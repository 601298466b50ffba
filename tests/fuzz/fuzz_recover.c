/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a log whose files are not what was written. Input: u8 which file, u8 how (bit 0: the rest is
 * patches of u16 position and u8 value to the file, else the file's whole content; bit 1: the stop before was
 * clean), the rest. Whatever the files say, the log opens, every question gets an answer or an error, a
 * record goes in at the end, and the next opening finds what this one left.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/record/build.h"
#include "lib/store/datadir.h"
#include "lib/store/io.h"
#include "lib/store/plog.h"

#define T0        1700000000000LL
#define ASKED_MAX 64

static const char *const files[] = {
    "00000000000000000000.log",       "00000000000000000000.index", "00000000000000000000.timeindex",
    "00000000000000000000.text",      "00000000000000000010.log",   "00000000000000000010.index",
    "00000000000000000010.timeindex", "00000000000000000010.text",  "00000000000000000018.producers",
    "partition.checkpoint",           "leader-epoch-checkpoint",    "partition.metadata",
};

static struct bytebuf template[ARRAY_LEN(files)];
static struct bytebuf meta, marker; /* of the directory */
static char root[PATH_MAX];
static const struct uuid topic_id = { { 1, 2, 3 } };
static const struct plog_config cfg = {
    .segment_bytes = 1600,
    .segment_ms = INT64_MAX,
    .index_interval_bytes = 150,
    .retention_ms = -1,
    .retention_bytes = -1,
};

static int no_sync(const struct store_io *io, int fd)
{
    (void)io, (void)fd;
    return 0;
}

static void open_log(struct datadir **dd, struct plog **l, struct plog_recovery *rec, int *ret)
{
    static struct store_io io;
    static const struct world w = { .clock = &clock_real, .random = &random_real, .machine = &machine_real, .io = &io };
    struct datadir_identity id = { .broker_id = 1, .cluster_id = "fuzz" };
    char err[256];

    io = store_io_real;
    io.fsync = io.fdatasync = io.syncfs = no_sync;
    KCHECK(datadir_open(root, &w, &id, dd, err, sizeof err) == 0);
    *ret = plog_open(*dd, "t", 0, &topic_id, &cfg, T0, l, rec);
}

static int64_t append(struct plog *l, int32_t sequence)
{
    struct batch_builder b;
    struct batch_producer p = { .id = 5, .base_sequence = sequence };
    struct batch_info info = { .text_bytes = 2 * 101 };
    struct plog_appended a;
    struct bytebuf out = { 0 };
    char value[100] = "v";

    if (sequence < 0)
        p = (struct batch_producer){ .id = -1, .epoch = -1, .base_sequence = -1 };
    batch_builder_init(&b);
    for (int i = 0; i < 2; i++)
        batch_builder_add(&b, T0 + sequence, KSTR_NULL, kstr_bytes(value, sizeof value), NULL, 0);
    KCHECK(batch_builder_finish(&b, CODEC_NONE, 0, &p, 0, &out) == 0);
    batch_header_read(out.p, &info.h);
    plog_append(l, out.p, out.n, &info, INT32_MAX, T0, -1, &a);
    KCHECK(a.err == KERR_NONE);
    batch_builder_done(&b);
    bytebuf_done(&out);
    return a.base_offset;
}

static void path_of(size_t i, char ret[PATH_MAX])
{
    int n = snprintf(ret, PATH_MAX, "%.200s/t-0/%s", root, files[i]);
    KCHECK(n > 0 && n < PATH_MAX);
}

static void remove_root(void)
{
    fs_remove_tree(AT_FDCWD, root);
}

/* A log of nine batches in two segments, as a clean stop leaves it. */
static void make_template(void)
{
    struct datadir *dd;
    struct plog *l;
    struct plog_recovery rec;
    int rc;

    snprintf(root, sizeof root, "/dev/shm/fuzz-recover-XXXXXX");
    if (mkdtemp(root) == NULL) {
        snprintf(root, sizeof root, "fuzz-recover-XXXXXX");
        KCHECK(mkdtemp(root) != NULL);
    }
    atexit(remove_root);
    open_log(&dd, &l, &rec, &rc);
    KCHECK(rc == 0);
    for (int i = 0; i < 9; i++)
        append(l, 2 * i);
    KCHECK(plog_close(l, true, 18) == 0);
    datadir_close(dd, true);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char path[PATH_MAX];
        path_of(i, path);
        if (fs_read_file(AT_FDCWD, path, 1 << 20, &template[i]) < 0) {
            fprintf(stderr, "the template has no %s\n", path);
            abort();
        }
    }
    CLEANUP(closep) int fd = open(root, O_RDONLY | O_DIRECTORY);
    KCHECK(fs_read_file(fd, "meta.properties", 4096, &meta) == 0);
    KCHECK(fs_read_file(fd, "clean-shutdown", 4096, &marker) == 0);
}

static void write_file(const char *path, const uint8_t *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    KCHECK(fd >= 0 && fs_write_all(fd, p, n) == 0);
    close(fd);
}

static void patch(struct bytebuf *b, const uint8_t *p, size_t n)
{
    for (; n >= 3 && b->n > 0; p += 3, n -= 3)
        b->p[get_be16(p) % b->n] = p[2];
}

static void write_files(size_t which, uint8_t how, const uint8_t *p, size_t n)
{
    char dir[PATH_MAX];
    struct bytebuf b = { 0 };

    fs_remove_tree(AT_FDCWD, root);
    KCHECK(mkdir(root, 0755) == 0);
    KCHECK((size_t)snprintf(dir, sizeof dir, "%.200s/t-0", root) < sizeof dir && mkdir(dir, 0755) == 0);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        b.n = 0;
        if (i != which || (how & 1))
            bytebuf_add(&b, template[i].p, template[i].n);
        if (i == which && (how & 1))
            patch(&b, p, n);
        else if (i == which)
            bytebuf_add(&b, p, n);
        char path[PATH_MAX];
        path_of(i, path);
        write_file(path, b.p, b.n);
    }
    bytebuf_done(&b);
    CLEANUP(freep) char *meta_path = xasprintf("%s/meta.properties", root);
    CLEANUP(freep) char *marker_path = xasprintf("%s/clean-shutdown", root);
    write_file(meta_path, meta.p, meta.n);
    if (how & 2)
        write_file(marker_path, marker.p, marker.n);
}

static void ask(struct plog *l)
{
    struct plog_ends e;
    int64_t o, ts, text, base;

    plog_ends(l, &e);
    KCHECK(e.start_offset <= e.end_offset && e.flushed_offset == e.end_offset);
    for (int i = 0; i < ASKED_MAX && i <= e.end_offset - e.start_offset; i++) {
        struct plog_span s;
        int64_t offset = i % 2 == 0 ? e.start_offset + i : e.end_offset - i;
        int rc = plog_read(l, offset, e.end_offset, 300, true, &s);
        KCHECK(rc == 0 || rc == -EBADMSG);
        if (s.file != NULL)
            KCHECK(s.n > 0 && s.n <= INT32_MAX);
        plog_span_release(&s);
        rc = plog_text_of_offset(l, offset, &text);
        KCHECK(rc == 0 || rc == -EBADMSG);
        if (rc == 0)
            plog_offset_of_text(l, text, &base, &text);
    }
    plog_find_time(l, T0 + 5, e.end_offset, &o, &ts);
    plog_find_time(l, INT64_MAX, e.end_offset, &o, &ts);
    plog_max_timestamp(l, e.end_offset, &o, &ts);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct datadir *dd;
    struct plog *l;
    struct plog_recovery rec;
    struct plog_ends before, after;
    int rc;

    if (n < 2)
        return 0;
    if (template[0].n == 0)
        make_template();
    write_files(p[0] % ARRAY_LEN(files), p[1], p + 2, n - 2);
    open_log(&dd, &l, &rec, &rc);
    KCHECK(rc == 0 || rc == -EBADMSG || rc == -ESTALE);
    if (rc == 0) {
        plog_ends(l, &before);
        ask(l);
        KCHECK(append(l, -1) == before.end_offset);
        plog_close(l, p[1] & 2, before.end_offset);
    }
    datadir_close(dd, p[1] & 2);
    if (rc < 0)
        return 0;
    open_log(&dd, &l, &rec, &rc);
    KCHECK(rc == 0 && rec.cut_bytes == 0);
    plog_ends(l, &after);
    KCHECK(after.end_offset == before.end_offset + 2 && after.start_offset >= before.start_offset);
    ask(l);
    plog_close(l, false, 0);
    datadir_close(dd, false);
    return 0;
}
