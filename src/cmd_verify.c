/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog verify: what there is to check, and the count of what was found. Partitions, segments and registers
 * are checked by verify_partition.c, verify_segment.c and verify_registers.c, which report through
 * verify_report(). Nothing is changed. A data directory that a broker holds is refused, that of a single
 * partition's parent too. An error is what the next start does not repair by itself; errors make the command
 * fail. One thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/store/metafiles.h"
#include "src/commands.h"
#include "src/verify.h"

static const struct option_spec options[] = {
    { "quick", 'q', NULL, "checksums and order only; decode no record" },
    { "no-progress", 0, NULL, "no progress bar, on a terminal either" },
    { NULL, 0, NULL, NULL },
};

/* ---- findings ---- */
void verify_report(struct verify *v, enum finding f, const char *path, int64_t at, const char *fmt, ...)
{
    CLEANUP(bytebuf_done) struct bytebuf text = { 0 };
    const char *level = f == FINDING_ERROR ? "error" : "warning";
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    v->errors += f == FINDING_ERROR;
    v->warnings += f == FINDING_WARNING;
    progress_clear(&v->progress);
    if (v->json) {
        out_json(stdout, json_pack("{s:s, s:s, s:o, s:s}", "level", level, "file", path, "at",
                                   json_offset(at), "problem", line));
        return;
    }
    if (at >= 0)
        bytebuf_printf(&text, " at %" PRId64, at);
    printf("%s: %s%s: %s\n", level, path, bytebuf_cstr(&text), line);
}

static void summary_print(struct verify *v)
{
    char size[16];

    progress_clear(&v->progress);
    if (v->json) {
        json_t *o = json_object();
        json_object_set_new(o, "partitions", json_integer(v->partitions));
        json_object_set_new(o, "segments", json_integer(v->segments));
        json_object_set_new(o, "batches", json_integer(v->batches));
        json_object_set_new(o, "records", json_integer(v->records));
        json_object_set_new(o, "bytes", json_integer(v->bytes));
        json_object_set_new(o, "errors", json_integer(v->errors));
        json_object_set_new(o, "warnings", json_integer(v->warnings));
        out_json(stdout, json_pack("{s:o}", "summary", o));
        return;
    }
    printf("%" PRId64 " partitions, %" PRId64 " segments, %" PRId64 " batches, %" PRId64
           " records, %s: %" PRId64 " errors, %" PRId64 " warnings\n",
           v->partitions, v->segments, v->batches, v->records, size_text(v->bytes, size, sizeof size),
           v->errors, v->warnings);
}

/* ---- what is there ---- */
struct partition_dirs {
    struct verify_dir *v;
    size_t n;
};

/* name: "orders-0"; topic_n of it are the topic's. */
static void dirs_add(struct partition_dirs *dirs, const char *path, const char *name, size_t topic_n)
{
    int64_t number = 0;

    args_int(name + topic_n + 1, 0, INT32_MAX, &number);
    dirs->v = xreallocarray(dirs->v, dirs->n + 1, sizeof *dirs->v);
    dirs->v[dirs->n++] = (struct verify_dir){
        .path = xstrdup(path), .topic = xstrndup(name, topic_n), .partition = (int32_t)number
    };
}

static void dirs_done(struct partition_dirs *dirs)
{
    for (size_t i = 0; i < dirs->n; i++) {
        free(dirs->v[i].path);
        free(dirs->v[i].topic);
    }
    free(dirs->v);
}

static int dirs_compare(const void *x, const void *y)
{
    const struct verify_dir *a = x, *b = y;

    return strverscmp(a->path, b->path);
}

/* "orders-0": the length of the topic, 0 when it is no partition's name. */
static size_t partition_topic_length(const char *name)
{
    const char *dash = strrchr(name, '-');
    int64_t number;

    return dash != NULL && args_int(dash + 1, 0, INT32_MAX, &number) ? (size_t)(dash - name) : 0;
}

static int dirs_list(const char *path, struct partition_dirs *ret)
{
    DIR *d = opendir(path);
    const struct dirent *de;

    if (d == NULL)
        return -errno;
    while ((de = readdir(d)) != NULL) {
        CLEANUP(freep) char *child = xasprintf("%s/%s", path, de->d_name);
        size_t n = partition_topic_length(de->d_name);
        struct stat st;
        if (n > 0 && stat(child, &st) == 0 && S_ISDIR(st.st_mode))
            dirs_add(ret, child, de->d_name, n);
    }
    closedir(d);
    if (ret->n > 0)
        qsort(ret->v, ret->n, sizeof *ret->v, dirs_compare);
    return 0;
}

/* ---- the directory itself ---- */
/* Does a daemon hold the directory now? */
static bool directory_in_use(const char *path)
{
    CLEANUP(freep) char *lock = xasprintf("%s/" LOCK_FILE, path);
    CLEANUP(closep) int fd = open(lock, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* False after saying why it cannot be checked now. */
static bool directory_check(struct verify *v, const char *path, struct meta_properties *ret_meta)
{
    CLEANUP(freep) char *meta_path = xasprintf("%s/" META_FILE, path);
    CLEANUP(freep) char *clean_path = xasprintf("%s/" CLEAN_FILE, path);
    CLEANUP(bytebuf_done) struct bytebuf meta = { 0 }, clean = { 0 };

    *ret_meta = (struct meta_properties){ .broker_id = -1 };
    if (directory_in_use(path)) {
        complain(v->args, "%s: a broker is using it; stop it first", path);
        return false;
    }
    int rc = fs_read_file(AT_FDCWD, meta_path, SMALL_FILE_MAX, &meta);
    if (rc < 0 || !meta_decode(slice_of(meta.p, meta.n), ret_meta))
        verify_report(v, FINDING_ERROR, meta_path, -1, "%s", rc < 0 ? strerror(-rc) : "it is damaged");
    else if (ret_meta->version != 0 || ret_meta->broker_id < 0 || uuid_is_zero(&ret_meta->directory_id))
        verify_report(v, FINDING_ERROR, meta_path, -1, "%s",
                      ret_meta->version != 0 ? "it is of another version" : "it is incomplete");
    rc = fs_read_file(AT_FDCWD, clean_path, SMALL_FILE_MAX, &clean);
    v->clean = rc >= 0 && clean_decode(slice_of(clean.p, clean.n), &ret_meta->directory_id, &v->clean_note);
    if (rc >= 0 && !v->clean)
        verify_report(v, FINDING_WARNING, clean_path, -1,
                      "it is not this directory's; the next start scans the logs");
    if (!v->clean)
        complain(v->args, "%s: it was not stopped cleanly; the next start will repair what is torn", path);
    return true;
}

/* All partitions of a topic have one id. */
static void topic_ids_check(struct verify *v, const struct partition_dirs *dirs)
{
    for (size_t i = 1; i < dirs->n; i++) {
        const struct verify_dir *a = &dirs->v[i - 1], *b = &dirs->v[i];
        if (strcmp(a->topic, b->topic) == 0 && !uuid_is_zero(&a->topic_id) && !uuid_is_zero(&b->topic_id) &&
            !uuid_eq(&a->topic_id, &b->topic_id))
            verify_report(v, FINDING_ERROR, b->path, -1, "its topic id is not that of %s",
                          base_name(a->path));
    }
}

static bool is_partition_dir(const char *path)
{
    CLEANUP(freep) char *file = xasprintf("%s/" PARTITION_FILE, path);

    return verify_partition_bytes(path) > 0 || access(file, F_OK) == 0;
}

/* A partition's directory alone: what its data directory says counts, where it still lies in one. */
static bool parent_check(struct verify *v, const char *path)
{
    CLEANUP(freep) char *parent = xasprintf("%s/..", path);
    CLEANUP(freep) char *meta_path = xasprintf("%s/" META_FILE, parent);
    struct meta_properties meta;

    return access(meta_path, F_OK) != 0 || directory_check(v, parent, &meta);
}

/* *ret_whole: it is a data directory, and what is in it can be compared. */
static int verify_path(struct verify *v, const char *operand, struct partition_dirs *dirs,
                       struct meta_properties *ret_meta, bool *ret_whole)
{
    CLEANUP(freep) char *path = xstrdup(operand);
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    if (is_partition_dir(path)) {
        dirs_add(dirs, path, base_name(path), partition_topic_length(base_name(path)));
        return parent_check(v, path) ? CLI_OK : CLI_FAILED;
    }
    int rc = dirs_list(path, dirs);
    if (rc < 0) {
        complain(v->args, "%s: %s", path, strerror(-rc));
        return CLI_FAILED;
    }
    *ret_whole = true;
    return directory_check(v, path, ret_meta) ? CLI_OK : CLI_FAILED;
}

static void verify_dirs(struct verify *v, struct partition_dirs *dirs)
{
    int64_t total = 0;

    for (size_t i = 0; i < dirs->n; i++)
        total += verify_partition_bytes(dirs->v[i].path);
    progress_init(&v->progress, stderr, isatty(STDERR_FILENO) && !args_has(v->args, "no-progress"), total);
    for (size_t i = 0; i < dirs->n; i++)
        verify_partition(v, &dirs->v[i]);
    topic_ids_check(v, dirs);
}

static int run(const struct args *a)
{
    struct verify v = { .args = a, .json = args_has(a, "json"), .quick = args_has(a, "quick") };
    struct partition_dirs dirs = { 0 };
    struct meta_properties meta;
    bool whole = false;
    int rc = verify_path(&v, a->operands[0], &dirs, &meta, &whole);

    if (rc == CLI_OK) {
        verify_dirs(&v, &dirs);
        if (whole) {
            verify_registers(&v, a->operands[0], &meta, dirs.v, dirs.n);
            verify_leftovers(&v, a->operands[0], dirs.v, dirs.n);
        }
        summary_print(&v);
    }
    dirs_done(&dirs);
    return rc != CLI_OK || v.errors > 0 ? CLI_FAILED : CLI_OK;
}

const struct command cmd_verify = {
    .name = "verify",
    .operands = "DIRECTORY",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Checks a stopped broker's data directory, or one partition's; changes nothing",
    .text = "It reads every segment: checksums, order of offsets and epochs, the records of each batch, the "
            "three\n"
            "indexes against the log, producer snapshots, epochs, checkpoints, identities, and whether the\n"
            "registers (in the directory that log.dirs names first) know the same partitions. An error is "
            "something that\n"
            "is wrong; a warning is something the next start of the broker repairs by itself. It fails when "
            "there is an\n"
            "error. On a terminal it shows how far it is.",
    .examples = "klog verify /var/lib/klog\n"
                "klog verify --quick /var/lib/klog/orders-0\n"
                "klog verify --json /var/lib/klog | jq 'select(.level == \"error\")'",
    .options = options,
    .run = run,
};
