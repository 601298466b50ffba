/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See import.h. The registers are read from their files, as the embedded store would at its start, and created in ZooKeeper parents
 * first. A register MARK says which store is being imported: with it what is there already is this import's own, begun before;
 * without it the path has to be empty. When all is there the journal and the snapshot get other names, durably, and then MARK goes.
 *
 * A register begins at version 0 there, and that means nothing to anybody, but for brokers' epochs, which are versions: they are
 * set until they have the version that they had.
 */
#include "daemon/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/meta/register_tree.h"
#include "daemon/meta/zookeeper.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "lib/base/world.h"
#include "lib/loop/loop.h"
#include "lib/loop/thread.h"
#include "lib/store/datadir.h"
#include "lib/store/register_files.h"

#define MARK  "/klog_import"
#define EPOCH "/klog/broker_epoch/"

enum {
    BATCH_BYTES = 128 * 1024, /* below what a multi may have, whatever the one more is */
    SETS_AT_ONCE = 500,
    TRIES = 5, /* of one change of which nobody knows whether it happened; each waits for a connection */
};

struct import {
    struct registers *r;
    struct register_tree tree;
    struct register_op *batch;
    int n_batch, cap_batch;
    size_t n;
    int rc; /* the first error */
    char failed[128]; /* the register that it was */
};

/* ---- one register after the other ---- */

static int set_once(struct import *im, const char *path, struct slice value)
{
    struct register_op op = { .kind = REGISTER_SET, .path = path, .value = value, .version = REGISTER_ANY_VERSION };

    return registers_multi_wait(im->r, &op, 1);
}

/* Whether it is there already or not; a value set twice is the same value. */
static int put_one(struct import *im, const char *path, struct slice value)
{
    int rc = -EREMOTEIO;

    for (int i = 0; i < TRIES && rc == -EREMOTEIO; i++) {
        struct register_op op = { .kind = REGISTER_CREATE, .path = path, .value = value };
        rc = registers_multi_wait(im->r, &op, 1);
        if (rc == -EEXIST)
            rc = set_once(im, path, value);
    }
    return rc;
}

static void note_error(struct import *im, const char *path, int rc)
{
    if (rc >= 0 || im->rc < 0)
        return;
    im->rc = rc;
    snprintf(im->failed, sizeof im->failed, "%s", path);
}

/* All at once when none of them is there yet. */
static void flush_batch(struct import *im)
{
    int n = im->n_batch, rc = im->rc < 0 || n == 0 ? 0 : registers_multi_wait(im->r, im->batch, n);

    im->n_batch = 0;
    for (int i = 0; rc < 0 && i < n && im->rc == 0; i++)
        note_error(im, im->batch[i].path, put_one(im, im->batch[i].path, im->batch[i].value));
}

static void add_register(void *arg, const char *path, struct slice value, int64_t version)
{
    struct import *im = arg;
    (void)version;

    if (im->n_batch == im->cap_batch) {
        im->cap_batch = im->cap_batch == 0 ? 64 : 2 * im->cap_batch;
        im->batch = xreallocarray(im->batch, (size_t)im->cap_batch, sizeof *im->batch);
    }
    im->batch[im->n_batch++] = (struct register_op){ .kind = REGISTER_CREATE, .path = path, .value = value };
    im->n++;
    if (registers_multi_bytes(im->batch, im->n_batch) >= BATCH_BYTES) {
        struct register_op last = im->batch[--im->n_batch]; /* it may be a large one */
        flush_batch(im);
        im->batch[im->n_batch++] = last;
    }
}

/* ---- versions of brokers' epochs ---- */

static void raise_version(void *arg, const char *path, struct slice value, int64_t version)
{
    struct import *im = arg;
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct register_op ops[SETS_AT_ONCE];
    int64_t now = 0;
    int rc = 0;

    if (strncmp(path, EPOCH, strlen(EPOCH)) != 0)
        return;
    for (int tries = 0; im->rc == 0 && tries < TRIES;) {
        rc = registers_get_wait(im->r, path, &b, &now);
        if (rc == 0 && now >= version)
            return;
        int n = (int)MIN((int64_t)SETS_AT_ONCE, version - now);
        for (int i = 0; i < n; i++)
            ops[i] = (struct register_op){ .kind = REGISTER_SET, .path = path, .value = value, .version = REGISTER_ANY_VERSION };
        rc = rc < 0 ? rc : registers_multi_wait(im->r, ops, n);
        tries = rc < 0 ? tries + 1 : 0;
        if (rc < 0 && rc != -EREMOTEIO)
            break;
    }
    note_error(im, path, rc);
}

/* ---- the two ends ---- */

static int sink_put(void *arg, const char *path, struct slice value, int64_t version)
{
    return register_tree_put(arg, path, value, version);
}

static int sink_drop(void *arg, const char *path)
{
    return register_tree_drop(arg, path);
}

static int read_registers(struct import *im, struct datadir *dd, char id[UUID_TEXT_LEN + 1], char *err, size_t err_size)
{
    struct register_sink sink = { .arg = &im->tree, .put = sink_put, .drop = sink_drop };
    struct register_files files = { 0 };
    int64_t clean = datadir_was_clean(dd) ? datadir_clean_note(dd) : REGISTERS_NOT_CLEAN;

    if (!datadir_has_file(dd, REGISTERS_JOURNAL)) {
        snprintf(err, err_size, "%s has no registers.journal: there is nothing to import, or it was imported before",
                 datadir_path(dd));
        return -ENOENT;
    }
    int rc = register_files_read(datadir_io(dd), datadir_fd(dd), clean, &sink, &files, err, err_size);
    uuid_text(&files.id, id);
    register_files_done(&files);
    return rc;
}

/* This import's own, or nothing at all, is what may be there. */
static int begin(struct import *im, const char *id, char *err, size_t err_size)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char **names = NULL;
    int n = 0;
    int64_t version;

    int rc = registers_get_wait(im->r, MARK, &b, &version);
    if (rc == 0 && b.n == strlen(id) && memcmp(b.p, id, b.n) == 0)
        return 0;
    if (rc == -ENOENT)
        rc = registers_children_wait(im->r, "/", &names, &n);
    if (rc == 0) {
        registers_names_free(names, n);
        if (b.n > 0 || n > 0) {
            snprintf(err, err_size, "there are registers of another cluster already: name another path in zookeeper.connect");
            return -EEXIST;
        }
        rc = put_one(im, MARK, slice_of(id, strlen(id)));
    }
    if (rc < 0)
        snprintf(err, err_size, "cannot write to ZooKeeper: %s", rc == -EREMOTEIO ? "it does not answer" : strerror(-rc));
    return rc;
}

static int set_files_aside(struct datadir *dd, char *err, size_t err_size)
{
    static const char *const names[] = { REGISTERS_SNAPSHOT, REGISTERS_JOURNAL };
    const struct store_io *io = datadir_io(dd);
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && rc == 0; i++) { /* the journal last: with it, all is to be done again */
        char aside[64];
        snprintf(aside, sizeof aside, "%s.imported", names[i]);
        if (datadir_has_file(dd, names[i]))
            rc = io->renameat(io, datadir_fd(dd), names[i], datadir_fd(dd), aside);
    }
    if (rc == 0)
        datadir_set_clean_note(dd, -1);
    rc = rc < 0 ? rc : io_sync_dir(io, datadir_fd(dd), datadir_path(dd));
    if (rc < 0)
        snprintf(err, err_size, "%s: cannot rename the registers' files: %s", datadir_path(dd), strerror(-rc));
    return rc;
}

static int import_all(struct import *im, struct datadir *dd, char *err, size_t err_size)
{
    char id[UUID_TEXT_LEN + 1];
    struct register_op unmark = { .kind = REGISTER_DELETE, .path = MARK, .version = REGISTER_ANY_VERSION };

    int rc = read_registers(im, dd, id, err, err_size);
    rc = rc < 0 ? rc : begin(im, id, err, err_size);
    if (rc < 0)
        return rc;
    register_tree_each(&im->tree, add_register, im);
    flush_batch(im);
    register_tree_each(&im->tree, raise_version, im);
    if (im->rc < 0) {
        snprintf(err, err_size, "cannot write %s to ZooKeeper: %s; do it again to go on", im->failed,
                 im->rc == -EREMOTEIO ? "it does not answer" : strerror(-im->rc));
        return im->rc;
    }
    rc = set_files_aside(dd, err, err_size);
    if (rc == 0)
        registers_multi_wait(im->r, &unmark, 1); /* in vain: a register more, that means nothing */
    return rc;
}

/* ---- what it needs around it ---- */

static void run_loop(void *arg)
{
    loop_run(arg);
}

static int with_zookeeper(const struct broker_config *c, const struct world *w, struct datadir *dd, size_t *ret_n, char *err,
                          size_t err_size)
{
    struct import im = { .rc = 0 };
    struct zookeeper_target to;
    struct loop *lp = loop_new(w);

    if (lp == NULL) {
        snprintf(err, err_size, "cannot make an event loop: %s", strerror(errno));
        return -EMFILE;
    }
    struct thread *t = thread_start(w->exec, run_loop, lp, "klogd-net");
    int rc = t == NULL ? -EAGAIN : zookeeper_target_of(c, w, &to, err, err_size);
    if (rc == 0) {
        rc = registers_open_zookeeper(&to, lp, &im.r, err, err_size);
        zookeeper_target_done(&to);
    }
    if (rc == 0)
        rc = import_all(&im, dd, err, err_size);
    loop_stop(lp);
    thread_join(w->exec, t);
    registers_close(im.r);
    loop_free(lp);
    register_tree_done(&im.tree);
    free(im.batch);
    *ret_n = im.n;
    return rc;
}

static void dir_failed(void *arg, int dir, bool all)
{
    (void)arg, (void)dir, (void)all; /* the error comes back to who wrote */
}

int broker_import(const struct broker_config *c, const struct world *w, size_t *ret_n, char *err, size_t err_size)
{
    struct logdirs *dirs;

    if (c->zookeeper_connect[0] == '\0') {
        snprintf(err, err_size, "zookeeper.connect is not set: say where the registers are to go");
        return -EINVAL;
    }
    int rc = logdirs_open(w, c, dir_failed, NULL, &dirs, err, err_size); /* with the locks: no broker runs on them */
    if (rc < 0)
        return rc;
    int n = logdirs_count(dirs);
    CLEANUP(freep) bool *clean = xcalloc((size_t)n, sizeof *clean);
    for (int i = 0; i < n; i++)
        clean[i] = datadir_was_clean(logdirs_at(dirs, i));
    rc = with_zookeeper(c, w, logdirs_at(dirs, 0), ret_n, err, err_size);
    logdirs_close(dirs, clean);
    return rc;
}
