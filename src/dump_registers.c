/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the files of the embedded register store entry by entry: the snapshot, which is all registers at one moment,
 * and the journal, which is what changed since. Each is printed as it is, whether or not the other belongs to it;
 * klog verify judges the two together. Entries are printed as they are read, so that what is whole before damage is.
 */
#include <inttypes.h>

#include "lib/base/mem.h"
#include "lib/store/register_files.h"
#include "src/offline.h"

struct printer {
    const struct dump *d;
    const struct register_files *file; /* being read; its head is known before the first entry */
    const char *what; /* it holds */
    bool began;
    int64_t change; /* that the entries belong to; -1 in a snapshot */
    int64_t left;
};

static void head_print(struct printer *p)
{
    char id[UUID_TEXT_LEN + 1];

    if (p->began)
        return;
    p->began = true;
    uuid_text(&p->file->id, id);
    if (p->d->json)
        out_json(stdout, json_pack("{s:s, s:I}", "store_id", id, "after_change", (json_int_t)p->file->sequence));
    else
        printf("store %s: %s after change %" PRId64 "\n", id, p->what, p->file->sequence);
}

/* Is the next entry to be printed? */
static bool entry_begin(struct printer *p)
{
    head_print(p);
    if (p->left == 0 || (p->change >= 0 && p->change < p->d->from_offset))
        return false;
    p->left--;
    return true;
}

/* klogd's values are JSON, and are shown as such. */
static void entry_json(const struct printer *p, const char *op, const char *path, int64_t version, const struct kstr *value)
{
    json_t *o = json_object();

    if (p->change >= 0)
        json_object_set_new(o, "change", json_integer(p->change));
    json_object_set_new(o, "op", json_string(op));
    json_set_bytes(o, "path", kstr_of(path));
    if (value != NULL) {
        json_t *parsed = value->n > 0 ? json_loadb(value->p, (size_t)value->n, JSON_REJECT_DUPLICATES, NULL) : NULL;
        json_object_set_new(o, "version", json_integer(version));
        if (parsed != NULL)
            json_object_set_new(o, "value", parsed);
        else
            json_set_bytes(o, "value", *value);
    }
    out_json(stdout, o);
}

static void entry_text(const struct printer *p, const char *op, const char *path, int64_t version, const struct kstr *value)
{
    if (p->change >= 0)
        printf("%" PRId64 " ", p->change);
    printf("%s ", op);
    out_escaped(stdout, kstr_of(path));
    if (value != NULL) {
        printf(" version %" PRId64 " ", version);
        out_escaped(stdout, *value);
    }
    putchar('\n');
}

static void change_begins(void *arg, int64_t sequence)
{
    struct printer *p = arg;

    head_print(p);
    p->change = sequence;
}

static int put_print(void *arg, const char *path, struct slice value, int64_t version)
{
    struct printer *p = arg;
    struct kstr v = { value.n > 0 ? (const char *)value.p : "", (int32_t)value.n };

    if (entry_begin(p))
        (p->d->json ? entry_json : entry_text)(p, "put", path, version, &v);
    return 0;
}

static int drop_print(void *arg, const char *path)
{
    struct printer *p = arg;

    if (entry_begin(p))
        (p->d->json ? entry_json : entry_text)(p, "drop", path, 0, NULL);
    return 0;
}

typedef int decode_fn(struct slice s, const struct register_sink *sink, struct register_files *ret, char *err,
                      size_t err_size);

static int registers_print(const struct dump *d, decode_fn *decode, const char *what)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct register_files f = { 0 };
    struct printer p = { .d = d, .file = &f, .what = what, .change = -1, .left = d->limit };
    const struct register_sink sink = { .arg = &p, .put = put_print, .drop = drop_print, .change = change_begins };
    char err[512] = "";

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (decode(slice_of(b.p, b.n), &sink, &f, err, sizeof err) < 0) {
        complain(d->args, "%s: %s", d->path, err);
        return CLI_FAILED;
    }
    head_print(&p);
    if (f.torn_bytes > 0)
        complain(d->args, "%s: %" PRId64 " bytes at the end are a change that was not finished", d->path, f.torn_bytes);
    return f.torn_bytes > 0 ? CLI_FAILED : CLI_OK;
}

int dump_registers_journal(const struct dump *d)
{
    return registers_print(d, register_journal_decode_alone, "what changed");
}

int dump_registers_snapshot(const struct dump *d)
{
    return registers_print(d, register_snapshot_decode, "all registers");
}
