/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What directories a data directory has: partitions, what deletions left, and guests. People put things of their
 * own there (lost+found, backups), so a name alone proves nothing: only what has a log's files in it is a
 * partition, and only a name as datadir_remove() makes them is a deletion's.
 *
 * Any thread; all of it blocks. Nothing is kept in memory.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/base/uuid.h"
#include "lib/base/varint.h"
#include "lib/base/world.h"
#include "lib/store/clean.h"
#include "lib/store/clean_marks.h"
#include "lib/store/datadir_int.h"
#include "lib/store/flush_mark.h"
#include "lib/store/metafiles.h"
#include "lib/store/plog_int.h"
#include "lib/store/register_files.h"
#include "lib/store/start_mark.h"

#define DOOMED    "-delete" /* ends the names of directories being deleted */
#define STRAY     "-stray"  /* and of those set aside */
#define TEMPORARY ".tmp"

enum {
    BASE_DIGITS = 20,
    DOOMED_HEX = 16,
    NAME_KEPT = 200, /* of a partition's name, where something is put behind it */
    STRAYS_MAX = 1000,
};

/* ---- names ---- */

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n > m && strcmp(s + n - m, tail) == 0;
}

bool partition_name_parse(const char *name, char *ret_topic, size_t size, int32_t *ret_partition)
{
    const char *dash = strrchr(name, '-');
    char *end;

    if (dash == NULL || dash == name || dash[1] < '0' || dash[1] > '9' || (size_t)(dash - name) >= size)
        return false;
    errno = 0;
    long v = strtol(dash + 1, &end, 10);
    if (errno != 0 || *end != '\0' || v > INT32_MAX || (dash[1] == '0' && dash[2] != '\0'))
        return false;
    memcpy(ret_topic, name, (size_t)(dash - name));
    ret_topic[dash - name] = '\0';
    *ret_partition = (int32_t)v;
    return true;
}

/* TOPIC-N.HEX-delete, as datadir_remove() makes it; of a long TOPIC-N only the first 200 bytes are there. */
static bool is_doomed_name(const char *name)
{
    size_t n = strlen(name), tail = 1 + DOOMED_HEX + strlen(DOOMED);
    char partition[NAME_MAX + 1], topic[NAME_MAX + 1];
    int32_t number;

    if (n <= tail || n > NAME_MAX || !ends_with(name, DOOMED) || name[n - tail] != '.')
        return false;
    for (const char *p = name + n - tail + 1; p < name + n - strlen(DOOMED); p++)
        if (!isdigit((unsigned char)*p) && (*p < 'a' || *p > 'f'))
            return false;
    snprintf(partition, sizeof partition, "%.*s", (int)(n - tail), name);
    return n - tail == NAME_KEPT || partition_name_parse(partition, topic, sizeof topic, &number);
}

/* A file that klog (or Kafka) puts into a partition's directory, half-written ones too. */
static bool is_log_file(const char *name)
{
    static const char *const names[] = { PARTITION_FILE, CHECKPOINT_FILE, EPOCHS_FILE, MARK_FILE, CLEAN_MANIFEST };
    int digits = 0;

    while (isdigit((unsigned char)name[digits]))
        digits++;
    if (digits == BASE_DIGITS && name[digits] == '.')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (name[n] == '\0' || strcmp(name + n, TEMPORARY) == 0))
            return true;
    }
    return false;
}

/* ---- partition.metadata ---- */

int partition_metadata_read(const struct store_io *io, int dirfd, const char *name, struct uuid *ret)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", name, PARTITION_FILE);
    int rc = io_read_file(io, dirfd, path, SMALL_FILE_MAX, &b);
    if (rc == -EFBIG)
        return -EBADMSG;
    return rc < 0 ? rc : partition_metadata_decode(slice_of(b.p, b.n), ret);
}

int partition_metadata_write(const struct store_io *io, int dirfd, const char *name, const struct uuid *id, bool sync)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", name, PARTITION_FILE);
    partition_metadata_encode(id, &b);
    return sync ? io_replace_file(io, dirfd, name, path, b.p, b.n) : io_write_unsynced(io, dirfd, path, b.p, b.n);
}

/* ---- looking ---- */

/* What a directory of a partition's name has in it. */
struct inside {
    bool log_files, others;
};

static int note_inside(void *arg, const char *name, enum io_kind kind)
{
    struct inside *in = arg;

    (void)kind;
    if (is_log_file(name))
        in->log_files = true;
    else
        in->others = true;
    return 0;
}

static int look_inside(struct datadir *dd, const char *name, struct inside *ret)
{
    const struct store_io *io = datadir_io(dd);

    *ret = (struct inside){ 0 };
    return io->list(io, datadir_fd(dd), name, note_inside, ret);
}

static void look_at(struct datadir *dd, const char *name, struct partition_dir *ret)
{
    struct inside in;

    *ret = (struct partition_dir){ .is_there = true };
    ret->id_rc = partition_metadata_read(datadir_io(dd), datadir_fd(dd), name, &ret->topic_id);
    ret->is_ours = ret->id_rc != -ENOENT || (look_inside(dd, name, &in) == 0 && in.log_files);
}

int datadir_find(struct datadir *dd, const char *topic, int32_t partition, struct partition_dir *ret)
{
    const struct store_io *io = datadir_io(dd);
    char name[NAME_MAX + 1];
    struct io_stat st;

    *ret = (struct partition_dir){ .id_rc = -ENOENT };
    if ((size_t)snprintf(name, sizeof name, "%s-%" PRId32, topic, partition) >= sizeof name)
        return -ENAMETOOLONG;
    int rc = io->statat(io, datadir_fd(dd), name, 0, &st);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    if (st.kind != IO_DIRECTORY)
        return -ENOTDIR;
    look_at(dd, name, ret);
    return 0;
}

/* A log that was made and not written to has one segment, of base 0, with an empty .log. Ends the listing at anything else. */
struct unwritten {
    struct datadir *dd;
    const char *name;
};

static int look_for_records(void *arg, const char *file, enum io_kind kind)
{
    static const char first[] = "00000000000000000000.";
    const struct unwritten *u = arg;
    const struct store_io *io = datadir_io(u->dd);
    char path[PATH_MAX];
    struct io_stat st;

    if (kind != IO_FILE || !is_log_file(file) || ends_with(file, START_SUFFIX))
        return -EEXIST;
    if (!isdigit((unsigned char)file[0]))
        return 0;
    if (strncmp(file, first, sizeof first - 1) != 0)
        return -EEXIST;
    snprintf(path, sizeof path, "%s/%s", u->name, file);
    int rc = io->statat(io, datadir_fd(u->dd), path, AT_SYMLINK_NOFOLLOW, &st);
    return rc < 0 ? rc : ends_with(file, segment_suffix[SEGMENT_LOG]) && st.size > 0 ? -EEXIST : 0;
}

bool datadir_is_unwritten(struct datadir *dd, const char *topic, int32_t partition)
{
    const struct store_io *io = datadir_io(dd);
    char name[NAME_MAX + 1];
    struct unwritten u = { .dd = dd, .name = name };

    if ((size_t)snprintf(name, sizeof name, "%s-%" PRId32, topic, partition) >= sizeof name)
        return false;
    return io->list(io, datadir_fd(dd), name, look_for_records, &u) == 0;
}

struct each_partition {
    struct datadir *dd;
    void (*cb)(void *arg, const char *topic, int32_t partition, const struct partition_dir *p);
    void *arg;
};

static int tell_partition(void *arg, const char *name, enum io_kind kind)
{
    const struct each_partition *e = arg;
    char topic[NAME_MAX + 1];
    int32_t partition;
    struct partition_dir p;

    if (kind != IO_DIRECTORY || !partition_name_parse(name, topic, sizeof topic, &partition))
        return 0;
    look_at(e->dd, name, &p);
    e->cb(e->arg, topic, partition, &p);
    return 0;
}

int datadir_list(struct datadir *dd,
                 void (*cb)(void *arg, const char *topic, int32_t partition, const struct partition_dir *p),
                 void *arg)
{
    struct each_partition e = { .dd = dd, .cb = cb, .arg = arg };
    return datadir_io(dd)->list(datadir_io(dd), datadir_fd(dd), ".", tell_partition, &e);
}

bool datadir_has_file(const struct datadir *dd, const char *name)
{
    return io_exists(datadir_io(dd), datadir_fd(dd), name);
}

static void note_ours(void *arg, const char *topic, int32_t partition, const struct partition_dir *p)
{
    (void)topic, (void)partition;
    *(bool *)arg |= p->is_ours;
}

int datadir_holds_data(struct datadir *dd)
{
    static const char *const files[] = { CLEAN_FILE, CLEAN_OFFSETS_FILE, CLEAN_HORIZONS_FILE, REGISTERS_JOURNAL,
                                         REGISTERS_SNAPSHOT };
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (datadir_has_file(dd, files[i]))
            return 1;
    int rc = datadir_list(dd, note_ours, &found);
    return rc < 0 ? rc : found;
}

/* ---- removing ---- */

struct emptying {
    const struct store_io *io;
    int dirfd;
    const char *dir;
};

static int remove_entry(void *arg, const char *name, enum io_kind kind)
{
    const struct emptying *e = arg;
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s", e->dir, name) >= sizeof path)
        return -ENAMETOOLONG;
    if (kind == IO_DIRECTORY)
        return datadir_remove_tree(e->io, e->dirfd, path);
    int rc = e->io->unlinkat(e->io, e->dirfd, path, 0);
    return rc == -ENOENT ? 0 : rc;
}

int datadir_remove_tree(const struct store_io *io, int dirfd, const char *name)
{
    struct emptying e = { .io = io, .dirfd = dirfd, .dir = name };
    int rc = io->list(io, dirfd, name, remove_entry, &e);

    if (rc == 0)
        rc = io->unlinkat(io, dirfd, name, AT_REMOVEDIR);
    return rc == -ENOENT ? 0 : rc;
}

/* Whether there is nothing in it but a log's files. */
static bool is_all_ours(struct datadir *dd, const char *name)
{
    struct inside in;
    return look_inside(dd, name, &in) == 0 && !in.others;
}

static void clear_doomed(struct datadir *dd, const char *name)
{
    if (!is_doomed_name(name) || !is_all_ours(dd, name)) {
        log_info("%s/%s is not klog's, or has other files in it: left alone", datadir_path(dd), name);
        return;
    }
    int rc = datadir_remove_tree(datadir_io(dd), datadir_fd(dd), name);
    if (rc < 0)
        log_warn("%s/%s: what is left of a deleted partition cannot be removed: %s", datadir_path(dd), name,
                 strerror(-rc));
    else
        log_info("%s/%s: removed what was left of a deleted partition", datadir_path(dd), name);
}

static bool is_own_temporary(const char *name)
{
    static const char *const files[] = { META_FILE, CLEAN_FILE, CLEAN_OFFSETS_FILE, CLEAN_HORIZONS_FILE,
                                         REGISTERS_JOURNAL, REGISTERS_SNAPSHOT };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        size_t n = strlen(files[i]);
        if (strncmp(name, files[i], n) == 0 && strcmp(name + n, TEMPORARY) == 0)
            return true;
    }
    return false;
}

static int clear_if_leftover(void *arg, const char *name, enum io_kind kind)
{
    struct datadir *dd = arg;

    if (kind == IO_DIRECTORY && ends_with(name, DOOMED))
        clear_doomed(dd, name);
    else if (kind != IO_DIRECTORY && is_own_temporary(name))
        datadir_io(dd)->unlinkat(datadir_io(dd), datadir_fd(dd), name, 0);
    return 0;
}

int datadir_clear_leftovers(struct datadir *dd)
{
    return datadir_io(dd)->list(datadir_io(dd), datadir_fd(dd), ".", clear_if_leftover, dd);
}

/* Renamed first: a crash in between, or an error, must not leave a half of it under the name of a partition. */
int datadir_remove(struct datadir *dd, const char *name)
{
    const struct store_io *io = datadir_io(dd);
    char doomed[NAME_MAX + 1];
    struct uuid u;

    uuid_random(datadir_world(dd)->random, &u);
    snprintf(doomed, sizeof doomed, "%.*s.%016" PRIx64 DOOMED, NAME_KEPT, name, get_be64(u.b));
    int rc = io->renameat(io, datadir_fd(dd), name, datadir_fd(dd), doomed);
    if (rc == -ENOENT)
        return 0;
    if (rc == 0)
        rc = io_sync_dir(io, datadir_fd(dd), ".");
    return rc < 0 ? rc : datadir_remove_tree(io, datadir_fd(dd), doomed);
}

int datadir_remove_empty(struct datadir *dd, const char *name)
{
    return datadir_io(dd)->unlinkat(datadir_io(dd), datadir_fd(dd), name, AT_REMOVEDIR);
}

int datadir_set_aside(struct datadir *dd, const char *topic, int32_t partition, const struct uuid *topic_id,
                      char ret[256])
{
    const struct store_io *io = datadir_io(dd);
    char name[NAME_MAX + 1], id[UUID_TEXT_LEN + 1], number[16] = "";

    if ((size_t)snprintf(name, sizeof name, "%s-%" PRId32, topic, partition) >= sizeof name)
        return -ENAMETOOLONG;
    uuid_text(topic_id, id);
    for (int i = 1; i <= STRAYS_MAX; i++) {
        if (i > 1)
            snprintf(number, sizeof number, ".%d", i);
        snprintf(ret, 256, "%.*s.%s%s" STRAY, NAME_KEPT, name, id, number);
        if (datadir_has_file(dd, ret))
            continue;
        int rc = io->renameat(io, datadir_fd(dd), name, datadir_fd(dd), ret);
        return rc < 0 ? rc : io_sync_dir(io, datadir_fd(dd), ".");
    }
    return -EEXIST;
}
