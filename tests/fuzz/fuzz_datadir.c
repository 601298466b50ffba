/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a data directory one of whose own files is not what was written. Input: u8 which file, u8 how (bit 0: the rest
 * is patches of u16 position and u8 value to the file, else the file's whole content; bit 1: the stop before was
 * clean; bit 2: the file is missing), the rest. Whatever it says: the directory opens, its registers and marks are read,
 * and it opens again as it was left; or it is refused with one line, and every byte stays as it was.
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
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/store/clean_marks.h"
#include "lib/store/datadir.h"
#include "lib/store/io.h"
#include "lib/store/register_journal.h"

#define CLEAN "clean-shutdown"

static const char *const files[] = {
    "meta.properties", CLEAN, REGISTERS_JOURNAL, REGISTERS_SNAPSHOT, CLEAN_OFFSETS_FILE, CLEAN_HORIZONS_FILE,
    "t-0/partition.metadata",
};
static struct bytebuf template[ARRAY_LEN(files)];
static char root[PATH_MAX];

static int no_sync(const struct store_io *io, int fd)
{
    (void)io, (void)fd;
    return 0;
}

static int ignore_put(void *arg, const char *path, struct slice value, int64_t version)
{
    (void)value;
    KCHECK(path[0] != '\0' || version >= 0);
    ++*(int *)arg;
    return 0;
}

static int ignore_drop(void *arg, const char *path)
{
    (void)path;
    ++*(int *)arg;
    return 0;
}

static void each(void *arg, void (*f)(void *f_arg, const char *path, struct slice value, int64_t version), void *f_arg)
{
    (void)arg;
    f(f_arg, "/a", slice_of("1", 1), 0);
}

static void ignore_mark(void *arg, const struct clean_mark *m)
{
    (void)arg;
    KCHECK(m->partition >= 0 && m->value >= 0);
}

static void ignore_dir(void *arg, const char *topic, int32_t partition, const struct partition_dir *p)
{
    (void)arg, (void)topic, (void)partition;
    KCHECK(p->is_there);
}

/* 0, or what it was refused with. clean: how it is closed. */
static int open_all(bool clean, char err[512])
{
    static struct store_io io;
    static const struct world w = { .clock = &clock_real, .random = &random_real, .machine = &machine_real, .io = &io };
    struct datadir_identity id = { .broker_id = 1 };
    struct datadir *dd;
    struct register_journal j;
    int entries = 0;
    struct register_sink sink = { .arg = &entries, .put = ignore_put, .drop = ignore_drop };

    io = store_io_real;
    io.fsync = io.fdatasync = io.syncfs = no_sync;
    int rc = datadir_open(root, &w, &id, &dd, err, 512);
    if (rc < 0)
        return rc;
    bool may_create = datadir_holds_data(dd) == 0 && !datadir_was_clean(dd);
    rc = register_journal_open(&j, dd, may_create, 0, &sink, each, &entries, err, 512);
    if (rc < 0) {
        datadir_close(dd, datadir_was_clean(dd));
        return rc;
    }
    KCHECK(datadir_list(dd, ignore_dir, NULL) == 0);
    rc = clean_marks_read(dd, CLEAN_OFFSETS_FILE, ignore_mark, NULL);
    KCHECK(rc == 0 || rc == -EBADMSG);
    rc = clean_marks_read(dd, CLEAN_HORIZONS_FILE, ignore_mark, NULL);
    KCHECK(rc == 0 || rc == -EBADMSG);
    register_journal_put(&j, "/b", slice_of("2", 1), 1);
    KCHECK(register_journal_commit(&j) == 0);
    datadir_set_clean_note(dd, j.sequence);
    register_journal_close(&j);
    datadir_close(dd, clean);
    return 0;
}

static void path_of(size_t i, char ret[PATH_MAX])
{
    int n = snprintf(ret, PATH_MAX, "%.200s/%s", root, files[i]);
    KCHECK(n > 0 && n < PATH_MAX);
}

static void remove_root(void)
{
    fs_remove_tree(AT_FDCWD, root);
}

static void write_file(const char *path, const uint8_t *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    KCHECK(fd >= 0 && fs_write_all(fd, p, n) == 0);
    close(fd);
}

static void make_root(void)
{
    CLEANUP(freep) char *dir = xasprintf("%s/t-0", root);

    fs_remove_tree(AT_FDCWD, root);
    KCHECK(mkdir(root, 0755) == 0);
    KCHECK(mkdir(dir, 0755) == 0);
}

/* The registers of a short life, with a snapshot (of format 1 when the journal is). */
static void make_template(void)
{
    static const char marks[] = "0\n1\nt 0 5\n", horizons[] = "1\n1\nt 0 5 BwcHBwcHBwcHBwcHBwcHBw\n";
    static const char metadata[] = "version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw\n";
    char err[512], path[PATH_MAX];

    snprintf(root, sizeof root, "/dev/shm/fuzz-datadir-XXXXXX");
    if (mkdtemp(root) == NULL) {
        snprintf(root, sizeof root, "fuzz-datadir-XXXXXX");
        KCHECK(mkdtemp(root) != NULL);
    }
    atexit(remove_root);
    log_set_level(LOG_LEVEL_ERROR);
    KCHECK(open_all(false, err) == 0);
    KCHECK(open_all(true, err) == 0);
    for (size_t i = 0; i < 3; i++) {
        path_of(i, path);
        KCHECK(fs_read_file(AT_FDCWD, path, 1 << 20, &template[i]) == 0);
    }
    memset(bytebuf_extend(&template[3], REGISTERS_SNAPSHOT_HEAD_BYTES), 0, REGISTERS_SNAPSHOT_HEAD_BYTES);
    register_add_put(&template[3], "/a", slice_of("1", 1), 0);
    struct uuid id;
    memcpy(id.b, template[2].p + 16, sizeof id.b);
    register_snapshot_seal(&template[3], &id, 1);
    bytebuf_add(&template[4], marks, sizeof marks - 1);
    bytebuf_add(&template[5], horizons, sizeof horizons - 1);
    bytebuf_add(&template[6], metadata, sizeof metadata - 1);
}

static void patch(struct bytebuf *b, const uint8_t *p, size_t n)
{
    for (; n >= 3 && b->n > 0; p += 3, n -= 3)
        b->p[((size_t)p[0] << 8 | p[1]) % b->n] = p[2];
}

/* now[i].n == SIZE_MAX: it is not there. */
static void write_files(size_t which, uint8_t how, const uint8_t *p, size_t n, struct bytebuf now[ARRAY_LEN(files)])
{
    char path[PATH_MAX];

    make_root();
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        bool there = !(i == which && (how & 4)) && !(i == 1 && !(how & 2));
        if (i != which || (how & 1))
            bytebuf_add(&now[i], template[i].p, template[i].n);
        if (i == which && (how & 1))
            patch(&now[i], p, n);
        else if (i == which)
            bytebuf_add(&now[i], p, n);
        path_of(i, path);
        if (there)
            write_file(path, now[i].p, now[i].n);
    }
}

/* A marker that did not fit was no marker; every other file is as it was. */
static void check_untouched(size_t which, uint8_t how, const struct bytebuf now[ARRAY_LEN(files)])
{
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
        if (i == 1 || (i == which && (how & 4)))
            continue;
        path_of(i, path);
        KCHECK(fs_read_file(AT_FDCWD, path, 1 << 21, &b) == 0);
        KCHECK(b.n == now[i].n && (b.n == 0 || memcmp(b.p, now[i].p, b.n) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bytebuf now[ARRAY_LEN(files)] = { 0 };
    char err[512] = "";

    if (n < 2)
        return 0;
    if (template[0].n == 0)
        make_template();
    size_t which = p[0] % ARRAY_LEN(files);
    write_files(which, p[1], p + 2, n - 2, now);
    int rc = open_all(p[1] & 8, err);
    KCHECK(rc == 0 || ((rc == -EBADMSG || rc == -ESTALE) && err[0] != '\0' && strchr(err, '\n') == NULL));
    if (rc < 0) {
        check_untouched(which, p[1], now);
        KCHECK(open_all(false, err) == rc); /* and so it stays */
    } else {
        KCHECK(open_all(false, err) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        bytebuf_done(&now[i]);
    return 0;
}
