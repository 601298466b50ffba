/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the files beside a log: the three indexes entry by entry, the producer snapshot, the
 * checkpoint and the small text files. Each is read whole and must decode as a whole.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/store/checkpoint.h"
#include "lib/store/epochs.h"
#include "lib/store/flush_mark.h"
#include "lib/store/metafiles.h"
#include "lib/store/producers.h"
#include "lib/store/start_mark.h"
#include "src/offline.h"

static int not_whole(const struct dump *d, const char *what)
{
    complain(d->args, "%s: this is no %s, or it is damaged", d->path, what);
    return CLI_FAILED;
}

/* ---- indexes ---- */
typedef json_t *entry_json(const struct dump *d, const uint8_t *entry);

/* The entries from `at` on, in rows of the given columns. */
static int entries_print(const struct dump *d, struct slice file, size_t at, size_t entry_bytes,
                         entry_json *f, const struct column *columns)
{
    json_t *rows = json_array();

    for (int64_t left = d->limit; at + entry_bytes <= file.n; at += entry_bytes) {
        json_t *row = f(d, file.p + at);
        if (json_integer_value(json_object_get(row, "offset")) < d->from_offset || left == 0) {
            json_decref(row);
            continue;
        }
        json_array_append_new(rows, row);
        left--;
    }
    out_rows(stdout, d->json, columns, rows);
    if (at != file.n) {
        complain(d->args, "%s: %zu bytes at the end are no whole entry", d->path, file.n - at);
        return CLI_FAILED;
    }
    return CLI_OK;
}

static json_t *index_entry(const struct dump *d, const uint8_t *e)
{
    return json_pack("{s:I, s:I}", "offset", (json_int_t)(d->base + entry_key_get(e, INDEX_OFFSET)),
                     "position", (json_int_t)entry_key_get(e, INDEX_POSITION));
}

int dump_index(const struct dump *d)
{
    static const struct column columns[] = { { "offset", "OFFSET", true },
                                             { "position", "POSITION", true },
                                             { NULL, NULL, false } };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    return entries_print(d, slice_of(b.p, b.n), 0, INDEX_ENTRY_BYTES, index_entry, columns);
}

static json_t *time_entry(const struct dump *d, const uint8_t *e)
{
    int64_t ms = entry_key_get(e, TIME_TIMESTAMP);
    char text[32];

    return json_pack("{s:I, s:s, s:I}", "timestamp", (json_int_t)ms, "time", time_text(ms, text, sizeof text),
                     "offset", (json_int_t)(d->base + entry_key_get(e, TIME_OFFSET)));
}

int dump_timeindex(const struct dump *d)
{
    static const struct column columns[] = { { "timestamp", "TIMESTAMP", true },
                                             { "time", "TIME", false },
                                             { "offset", "OFFSET", true },
                                             { NULL, NULL, false } };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    return entries_print(d, slice_of(b.p, b.n), 0, TIME_ENTRY_BYTES, time_entry, columns);
}

static json_t *text_entry(const struct dump *d, const uint8_t *e)
{
    return json_pack("{s:I, s:I, s:I, s:b}", "offset", (json_int_t)(d->base + entry_key_get(e, TEXT_OFFSET)),
                     "position", (json_int_t)entry_key_get(e, TEXT_POSITION), "text",
                     (json_int_t)entry_key_get(e, TEXT_TEXT), "crc_ok", text_entry_ok(e));
}

/* Of files of version 1, which the broker makes anew. */
static json_t *text_entry_v1(const struct dump *d, const uint8_t *e)
{
    return json_pack("{s:I, s:I, s:I}", "offset", (json_int_t)(d->base + entry_key_get(e, TEXT_OFFSET)),
                     "position", (json_int_t)entry_key_get(e, TEXT_POSITION), "text",
                     (json_int_t)entry_key_get(e, TEXT_TEXT));
}

static json_t *text_header_json(const struct text_header *h)
{
    json_t *o = json_object();

    json_object_set_new(o, "base_offset", json_integer(h->base));
    json_object_set_new(o, "text_base", json_integer(h->text_base));
    json_object_set_new(o, "sealed", json_boolean(h->sealed));
    if (h->sealed) {
        json_object_set_new(o, "end_offset", json_integer(h->sum.end_offset));
        json_object_set_new(o, "log_bytes", json_integer(h->sum.size));
        json_object_set_new(o, "text_bytes", json_integer(h->sum.text_bytes));
        json_object_set_new(o, "max_timestamp", json_integer(h->sum.max_timestamp));
    }
    return o;
}

/* The members of one object, a line each. */
static int object_print(const struct dump *d, json_t *o)
{
    const char *key;
    json_t *value;

    if (d->json) {
        out_json(stdout, o);
        return CLI_OK;
    }
    json_object_foreach(o, key, value)
    {
        if (json_is_string(value))
            printf("%s = %s\n", key, json_string_value(value));
        else if (json_is_boolean(value))
            printf("%s = %s\n", key, json_is_true(value) ? "yes" : "no");
        else
            printf("%s = %" JSON_INTEGER_FORMAT "\n", key, json_integer_value(value));
    }
    json_decref(o);
    return CLI_OK;
}

int dump_text(const struct dump *d)
{
    static const struct column columns[] = { { "offset", "OFFSET", true },
                                             { "position", "POSITION", true },
                                             { "text", "TEXT-POSITION", true },
                                             { "crc_ok", "CRC-OK", false },
                                             { NULL, NULL, false } };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    static const struct column columns_v1[] = { { "offset", "OFFSET", true },
                                                { "position", "POSITION", true },
                                                { "text", "TEXT-POSITION", true },
                                                { NULL, NULL, false } };
    struct text_header h;

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!text_header_decode(b.p, (int64_t)b.n, &h))
        return not_whole(d, "text index");
    object_print(d, text_header_json(&h));
    if (h.version == 1)
        return entries_print(d, slice_of(b.p, b.n), TEXT_HEADER_BYTES, TEXT_ENTRY_BYTES_V1, text_entry_v1,
                             columns_v1);
    return entries_print(d, slice_of(b.p, b.n), TEXT_HEADER_BYTES, TEXT_ENTRY_BYTES, text_entry, columns);
}

/* ---- producers ---- */
static void producer_row(void *arg, const struct producer_state *p)
{
    const struct producer_batch *last = p->n > 0 ? &p->batches[p->n - 1] : NULL;
    json_t *row = json_object();

    json_object_set_new(row, "producer_id", json_integer(p->id));
    json_object_set_new(row, "epoch", json_integer(p->epoch));
    json_object_set_new(row, "batches", json_integer(p->n));
    json_object_set_new(row, "last_sequence", last != NULL ? json_integer(last->last_sequence) : json_null());
    json_object_set_new(row, "last_offset", last != NULL ? json_integer(last->last_offset) : json_null());
    json_object_set_new(row, "last_seen", json_integer(p->last_seen_ms));
    json_array_append_new(arg, row);
}

int dump_producers(const struct dump *d)
{
    static const struct column columns[] = {
        { "producer_id", "PRODUCER", true },
        { "epoch", "EPOCH", true },
        { "batches", "BATCHES", true },
        { "last_sequence", "LAST-SEQUENCE", true },
        { "last_offset", "LAST-OFFSET", true },
        { "last_seen", "LAST-SEEN", true },
        { NULL, NULL, false },
    };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct producers ps = { 0 };
    int64_t offset;
    uint32_t identity;

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!producers_decode(slice_of(b.p, b.n), &ps, &offset, &identity))
        return not_whole(d, "producer snapshot");
    json_t *rows = json_array();
    producers_each(&ps, producer_row, rows);
    producers_clear(&ps);
    out_rows(stdout, d->json, columns, rows);
    return CLI_OK;
}

/* ---- small files ---- */
int dump_checkpoint(const struct dump *d)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct checkpoint c;

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!checkpoint_decode(slice_of(b.p, b.n), &c))
        return not_whole(d, "partition checkpoint");
    json_t *o = json_object();
    json_object_set_new(o, "start_offset", json_integer(c.start_offset));
    json_object_set_new(o, "high_watermark", json_integer(c.hw));
    json_object_set_new(o, "flushed_offset", json_integer(c.flushed.sum.end_offset));
    json_object_set_new(o, "flushed_segment", json_integer(c.flushed.segment));
    json_object_set_new(o, "flushed_position", json_integer(c.flushed.sum.size));
    json_object_set_new(o, "producers_offset", json_integer(c.producers_offset));
    return object_print(d, o);
}

int dump_flush_mark(const struct dump *d)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct flush_mark m;

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!mark_decode(slice_of(b.p, b.n), &m))
        return not_whole(d, "flush mark");
    json_t *o = json_pack("{s:I}", "flushed_offset", (json_int_t)m.offset);
    if (m.segment >= 0) { /* version 1 did not say where */
        json_object_set_new(o, "flushed_segment", json_integer(m.segment));
        json_object_set_new(o, "flushed_position", json_integer(m.position));
    }
    return object_print(d, o);
}

int dump_start(const struct dump *d)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct start_mark m;

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!start_decode(slice_of(b.p, b.n), &m)) /* its name is enough */
        return object_print(d, json_pack("{s:I}", "start_offset", (json_int_t)d->base));
    return object_print(d, json_pack("{s:I, s:I}", "start_offset", (json_int_t)m.offset, "identity", (json_int_t)m.identity));
}

int dump_epochs(const struct dump *d)
{
    static const struct column columns[] = { { "epoch", "EPOCH", true },
                                             { "start_offset", "START-OFFSET", true },
                                             { NULL, NULL, false } };
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    CLEANUP(epochs_done) struct epochs e = { 0 };

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!epochs_decode(slice_of(b.p, b.n), &e))
        return not_whole(d, "leader epoch checkpoint");
    json_t *rows = json_array();
    for (int32_t i = 0; i < e.n; i++)
        json_array_append_new(
            rows, json_pack("{s:i, s:I}", "epoch", e.v[i].epoch, "start_offset", (json_int_t)e.v[i].start));
    out_rows(stdout, d->json, columns, rows);
    return CLI_OK;
}

int dump_meta(const struct dump *d)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct meta_properties m;
    char id[UUID_TEXT_LEN + 1];

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (!meta_decode(slice_of(b.p, b.n), &m))
        return not_whole(d, META_FILE);
    uuid_text(&m.directory_id, id);
    return object_print(d, json_pack("{s:s, s:i, s:s}", "cluster_id", m.cluster_id, "broker_id", m.broker_id,
                                     "directory_id", id));
}

int dump_partition_metadata(const struct dump *d)
{
    CLEANUP(bytebuf_done) struct bytebuf b = { 0 };
    struct uuid topic_id;
    char id[UUID_TEXT_LEN + 1];

    if (!offline_read(d->args, d->path, &b))
        return CLI_FAILED;
    if (partition_metadata_decode(slice_of(b.p, b.n), &topic_id) < 0)
        return not_whole(d, PARTITION_FILE);
    uuid_text(&topic_id, id);
    return object_print(d, json_pack("{s:s}", "topic_id", id));
}
