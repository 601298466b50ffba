/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What directories a data directory has: partitions, what deletions left, and guests. People put things of their
 * own there (lost+found, backups), so a name alone proves nothing: only what has a log's files in it is a
 * partition, and only a name as plog_remove() makes them is a deletion's.
 *
 * Any thread; all of it blocks. Nothing is kept in memory.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/store/clean.h"
#include "lib/store/clean_marks.h"
#include "lib/store/datadir_int.h"
#include "lib/store/metafiles.h"
#include "lib/store/plog_int.h"
#include "lib/store/register_files.h"

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

/* TOPIC-N.HEX-delete, as plog_remove() makes it; of a long TOPIC-N only the first 200 bytes are there. */
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
    static const char *const names[] = { PARTITION_FILE, CHECKPOINT_FILE, EPOCHS_FILE, CLEAN_MANIFEST };
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

int partition_metadata_write(const struct store_io *io, int dirfd, const char *name, const struct uuid *id)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", name, PARTITION_FILE);
    partition_metadata_encode(id, &b);
    return io_replace_file(io, dirfd, name, path, b.p, b.n);
}

/* ---- looking ---- */

static DIR *open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (d == NULL && fd >= 0)
        close(fd);
    return d;
}

/* The next entry but "." and "..". */
static const struct dirent *next_entry(DIR *d)
{
    const struct dirent *de;

    do
        de = readdir(d);
    while (de != NULL && (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0));
    return de;
}

static bool has_log_file(int dirfd, const char *name)
{
    DIR *d = open_dir(dirfd, name);
    const struct dirent *de;
    bool found = false;

    if (d == NULL)
        return false;
    while (!found && (de = next_entry(d)) != NULL)
        found = is_log_file(de->d_name);
    closedir(d);
    return found;
}

static void look_at(struct datadir *dd, const char *name, struct partition_dir *ret)
{
    *ret = (struct partition_dir){ .is_there = true };
    ret->id_rc = partition_metadata_read(datadir_io(dd), datadir_fd(dd), name, &ret->topic_id);
    ret->is_ours = ret->id_rc != -ENOENT || has_log_file(datadir_fd(dd), name);
}

int datadir_find(struct datadir *dd, const char *topic, int32_t partition, struct partition_dir *ret)
{
    char name[NAME_MAX + 1];
    struct stat st;

    *ret = (struct partition_dir){ .id_rc = -ENOENT };
    if ((size_t)snprintf(name, sizeof name, "%s-%" PRId32, topic, partition) >= sizeof name)
        return -ENAMETOOLONG;
    if (fstatat(datadir_fd(dd), name, &st, 0) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    look_at(dd, name, ret);
    return 0;
}

static bool is_directory(int dirfd, const struct dirent *de)
{
    struct stat st;

    if (de->d_type != DT_UNKNOWN)
        return de->d_type == DT_DIR;
    return fstatat(dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int datadir_list(struct datadir *dd,
                 void (*cb)(void *arg, const char *topic, int32_t partition, const struct partition_dir *p),
                 void *arg)
{
    DIR *d = open_dir(datadir_fd(dd), ".");
    const struct dirent *de;

    if (d == NULL)
        return -errno;
    while ((de = next_entry(d)) != NULL) {
        char topic[NAME_MAX + 1];
        int32_t partition;
        struct partition_dir p;
        if (!is_directory(datadir_fd(dd), de) || !partition_name_parse(de->d_name, topic, sizeof topic, &partition))
            continue;
        look_at(dd, de->d_name, &p);
        cb(arg, topic, partition, &p);
    }
    closedir(d);
    return 0;
}

bool datadir_has_file(const struct datadir *dd, const char *name)
{
    return faccessat(datadir_fd(dd), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
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

int datadir_remove_tree(const struct store_io *io, int dirfd, const char *name)
{
    DIR *d = open_dir(dirfd, name);
    const struct dirent *de;
    int rc = 0;

    if (d == NULL)
        return errno == ENOENT ? 0 : -errno;
    while (rc == 0 && (de = next_entry(d)) != NULL) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", name, de->d_name);
        rc = io->unlinkat(io, dirfd, path, 0);
        if (rc == -ENOENT)
            rc = 0;
    }
    closedir(d);
    if (rc == 0)
        rc = io->unlinkat(io, dirfd, name, AT_REMOVEDIR);
    return rc;
}

/* Whether there is nothing in it but a log's files. */
static bool is_all_ours(int dirfd, const char *name)
{
    DIR *d = open_dir(dirfd, name);
    const struct dirent *de;
    bool ours = d != NULL;

    while (ours && (de = next_entry(d)) != NULL)
        ours = is_log_file(de->d_name);
    if (d != NULL)
        closedir(d);
    return ours;
}

static void clear_doomed(struct datadir *dd, const char *name)
{
    if (!is_doomed_name(name) || !is_all_ours(datadir_fd(dd), name)) {
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

int datadir_clear_leftovers(struct datadir *dd)
{
    DIR *d = open_dir(datadir_fd(dd), ".");
    const struct dirent *de;

    if (d == NULL)
        return -errno;
    while ((de = next_entry(d)) != NULL) {
        bool is_dir = is_directory(datadir_fd(dd), de);
        if (is_dir && ends_with(de->d_name, DOOMED))
            clear_doomed(dd, de->d_name);
        else if (!is_dir && is_own_temporary(de->d_name))
            datadir_io(dd)->unlinkat(datadir_io(dd), datadir_fd(dd), de->d_name, 0);
    }
    closedir(d);
    return 0;
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
