/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a data directory says as a whole: its registers, whether they and the partitions' directories know the same
 * topics, the cleaner's marks, and what was left or set aside. Nothing is written. A registered partition may be in
 * another of log.dirs, which this cannot know: it is told as an error, with that said.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include <jansson.h>
#include <uthash.h>

#include "lib/base/fsutil.h"
#include "lib/base/mem.h"
#include "lib/store/clean_marks.h"
#include "lib/store/metafiles.h"
#include "lib/store/register_files.h"
#include "src/verify.h"

/* ---- the registers in memory ---- */
struct node {
    char *path;
    char *value;
    UT_hash_handle hh;
};

static struct node *node_find(struct node *const *all, const char *path)
{
    struct node *n;

    HASH_FIND_STR(*all, path, n);
    return n;
}

static void node_free(struct node **all, struct node *n)
{
    HASH_DEL(*all, n);
    free(n->path);
    free(n->value);
    free(n);
}

static int node_put(void *arg, const char *path, struct slice value, int64_t version)
{
    struct node **all = arg, *n = node_find(all, path);

    (void)version;
    if (n != NULL)
        node_free(all, n);
    n = xcalloc(1, sizeof *n);
    n->path = xstrdup(path);
    n->value = xstrndup(value.n > 0 ? (const char *)value.p : "", value.n);
    HASH_ADD_KEYPTR(hh, *all, n->path, strlen(n->path), n);
    return 0;
}

static int node_drop(void *arg, const char *path)
{
    struct node **all = arg, *n = node_find(all, path);

    if (n == NULL)
        return -EBADMSG;
    node_free(all, n);
    return 0;
}

static void nodes_done(struct node **all)
{
    struct node *n, *next;

    HASH_ITER (hh, *all, n, next)
        node_free(all, n);
}

static json_t *node_json(const struct node *n)
{
    return n == NULL ? NULL : json_loads(n->value, JSON_REJECT_DUPLICATES, NULL);
}

/* ---- topics and partitions ---- */
struct comparison {
    struct verify *v;
    const char *path; /* of the data directory */
    struct node *all;
    const struct verify_dir *dirs;
    size_t n;
};

/* False: there is no such topic, or its register cannot be read. */
static bool topic_id_of(struct comparison *c, const char *topic, struct uuid *ret)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s", topic);
    json_t *j = node_json(node_find(&c->all, path));
    const char *text = json_string_value(json_object_get(j, "topic_id"));
    bool good = text != NULL && uuid_parse(text, ret) && !uuid_is_zero(ret);

    json_decref(j);
    return good;
}

static bool was_deleted(struct comparison *c, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_text(id, text);
    CLEANUP(freep) char *path = xasprintf("/admin/delete_topics/%s", text);
    return node_find(&c->all, path) != NULL;
}

static void epoch_check(struct comparison *c, const struct verify_dir *d, const struct node *state)
{
    json_t *j = node_json(state), *epoch = json_object_get(j, "leader_epoch");

    if (!json_is_integer(epoch))
        verify_report(c->v, FINDING_ERROR, d->path, -1, "its register is malformed");
    else if (d->epoch > json_integer_value(epoch))
        verify_report(c->v, FINDING_ERROR, d->path, -1,
                      "it has leader epoch %d, its register only %lld: the registers are an older copy", d->epoch,
                      (long long)json_integer_value(epoch));
    json_decref(j);
}

static void directory_compare(struct comparison *c, const struct verify_dir *d)
{
    CLEANUP(freep) char *path = xasprintf("/brokers/topics/%s/partitions/%d/state", d->topic, d->partition);
    const struct node *state = node_find(&c->all, path);
    struct uuid id;
    bool known = topic_id_of(c, d->topic, &id);

    if (!uuid_is_zero(&d->topic_id) && was_deleted(c, &d->topic_id))
        verify_report(c->v, FINDING_WARNING, d->path, -1, "its topic was deleted; the next start removes it");
    else if (state == NULL)
        verify_report(c->v, FINDING_ERROR, d->path, -1, "the registers do not know it; the next start sets it aside");
    else if (known && !uuid_is_zero(&d->topic_id) && !uuid_eq(&id, &d->topic_id))
        verify_report(c->v, FINDING_ERROR, d->path, -1, "it belongs to another topic than the one registered; it is not served");
    else
        epoch_check(c, d, state);
}

static bool has_directory(const struct comparison *c, const char *topic, size_t topic_n, int32_t partition)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->dirs[i].partition == partition && strlen(c->dirs[i].topic) == topic_n &&
            memcmp(c->dirs[i].topic, topic, topic_n) == 0)
            return true;
    return false;
}

/* "/brokers/topics/T/partitions/N/state" */
static void register_compare(struct comparison *c, const struct node *n)
{
    static const char top[] = "/brokers/topics/", middle[] = "/partitions/";
    const char *topic = n->path + sizeof top - 1, *slash = strchr(topic, '/');
    char *end;

    if (slash == NULL || strncmp(slash, middle, sizeof middle - 1) != 0)
        return;
    long partition = strtol(slash + sizeof middle - 1, &end, 10);
    if (strcmp(end, "/state") != 0 || has_directory(c, topic, (size_t)(slash - topic), (int32_t)partition))
        return;
    verify_report(c->v, FINDING_ERROR, c->path, -1,
                  "%.*s-%ld is registered, but its directory is not here: lost, if it is in no other of log.dirs",
                  (int)(slash - topic), topic, partition);
}

static void topic_check(struct comparison *c, const struct node *n)
{
    struct uuid id;
    const char *topic = n->path + strlen("/brokers/topics/");

    if (strchr(topic, '/') == NULL && !topic_id_of(c, topic, &id))
        verify_report(c->v, FINDING_ERROR, c->path, -1, "the register of the topic %s is malformed", topic);
}

static int by_path(const struct node *a, const struct node *b)
{
    return strverscmp(a->path, b->path);
}

static void compare(struct comparison *c, const struct meta_properties *meta)
{
    const struct node *cluster = node_find(&c->all, "/cluster/id");
    CLEANUP(freep) char *epoch = xasprintf("/klog/broker_epoch/%d", meta->broker_id);

    if (cluster != NULL && strcmp(cluster->value, meta->cluster_id) != 0)
        verify_report(c->v, FINDING_ERROR, c->path, -1, "the registers belong to cluster %.64s, " META_FILE " says %s",
                      cluster->value, meta->cluster_id);
    if (node_find(&c->all, "/klog/broker_epoch") != NULL && node_find(&c->all, epoch) == NULL)
        verify_report(c->v, FINDING_ERROR, c->path, -1, "the registers do not know broker %d of " META_FILE,
                      meta->broker_id);
    HASH_SRT(hh, c->all, by_path);
    for (const struct node *n = c->all; n != NULL; n = n->hh.next) {
        if (strncmp(n->path, "/brokers/topics/", strlen("/brokers/topics/")) != 0)
            continue;
        topic_check(c, n);
        register_compare(c, n);
    }
    for (size_t i = 0; i < c->n; i++)
        directory_compare(c, &c->dirs[i]);
}

static void missing_check(struct verify *v, const char *path, size_t n)
{
    CLEANUP(freep) char *file = xasprintf("%s/" REGISTERS_JOURNAL, path);

    if (v->clean && v->clean_note >= 0)
        verify_report(v, FINDING_ERROR, file, -1, "it is missing: klogd does not start without it");
    else if (!v->clean && n > 0)
        verify_report(v, FINDING_WARNING, file, -1,
                      "it is missing, which is right only where log.dirs names another directory first");
}

void verify_registers(struct verify *v, const char *path, const struct meta_properties *meta,
                      const struct verify_dir *dirs, size_t n)
{
    CLEANUP(closep) int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(register_files_done) struct register_files f = { 0 };
    struct comparison c = { .v = v, .path = path, .dirs = dirs, .n = n };
    struct register_sink sink = { .arg = &c.all, .put = node_put, .drop = node_drop };
    char err[512];

    if (dirfd < 0)
        return;
    int rc = register_files_read(&store_io_real, dirfd, v->clean ? v->clean_note : REGISTERS_NOT_CLEAN, &sink, &f, err,
                                 sizeof err);
    if (rc < 0)
        verify_report(v, FINDING_ERROR, path, -1, "%s", err);
    else if (!f.have_journal)
        missing_check(v, path, n);
    else {
        if (f.torn_bytes > 0)
            verify_report(v, FINDING_WARNING, REGISTERS_JOURNAL, f.end, "%" PRId64 " bytes are no whole change",
                          f.torn_bytes);
        compare(&c, meta);
    }
    nodes_done(&c.all);
}

/* ---- marks and leftovers ---- */
struct marks {
    struct verify *v;
    const char *file;
    const struct verify_dir *dirs;
    size_t n;
};

static void mark_check(void *arg, const struct clean_mark *m)
{
    const struct marks *k = arg;

    for (size_t i = 0; i < k->n; i++) {
        const struct verify_dir *d = &k->dirs[i];
        if (d->partition == m->partition && strcmp(d->topic, m->topic) == 0 && d->end_offset >= 0 &&
            m->value > d->end_offset)
            verify_report(k->v, FINDING_WARNING, k->file, -1,
                          "%s-%d is said to be clean up to %" PRId64 ", but ends at %" PRId64
                          "; it is cleaned from its front again",
                          m->topic, m->partition, m->value, d->end_offset);
    }
}

static void no_check(void *arg, const struct clean_mark *m)
{
    (void)arg, (void)m;
}

static void marks_check(struct verify *v, const char *path, const char *name, clean_mark_fn *check,
                        const struct verify_dir *dirs, size_t n)
{
    CLEANUP(freep) char *file = xasprintf("%s/%s", path, name);
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct marks k = { v, file, dirs, n };
    int rc = fs_read_file(AT_FDCWD, file, OFFLINE_FILE_MAX, &b);

    if (rc == -ENOENT)
        return;
    if (rc < 0 || !clean_marks_decode(slice_of(b.p, b.n), check, &k))
        verify_report(v, FINDING_WARNING, file, -1, "%s; logs are cleaned from their front again",
                      rc < 0 ? strerror(-rc) : "it is damaged");
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n > m && strcmp(s + n - m, tail) == 0;
}

void verify_leftovers(struct verify *v, const char *path, const struct verify_dir *dirs, size_t n)
{
    DIR *d = opendir(path);
    const struct dirent *de;

    marks_check(v, path, CLEAN_OFFSETS_FILE, mark_check, dirs, n);
    marks_check(v, path, CLEAN_HORIZONS_FILE, no_check, dirs, n);
    while (d != NULL && (de = readdir(d)) != NULL) {
        CLEANUP(freep) char *child = xasprintf("%s/%s", path, de->d_name);
        if (ends_with(de->d_name, "-delete"))
            verify_report(v, FINDING_WARNING, child, -1, "a deletion was not finished; the next start removes it if it is klog's");
        else if (ends_with(de->d_name, "-stray"))
            verify_report(v, FINDING_WARNING, child, -1,
                          "a start set it aside, since no topic was known for it; look at it, then delete it");
    }
    if (d != NULL)
        closedir(d);
}
