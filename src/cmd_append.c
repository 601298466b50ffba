/* SPDX-License-Identifier: Apache-2.0 */
/*
 * klog append: lines of standard input become records, as lines that are appended to the mount's paths do. What was read at once is
 * sent at once and has to be committed before more is sent, so that the line that failed is known; of those behind it none is sent,
 * but where keys share lines out among partitions, lines of the same piece may be committed in others. One thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/murmur2.h"
#include "lib/client/producer.h"
#include "lib/view/parse.h"
#include "src/commands.h"
#include "src/paths.h"

enum {
    READ_BYTES = 1024 * 1024,
    LINE_BYTES_MAX = 256 * 1024 * 1024, /* what no topic takes, whatever its max.message.bytes */
    BATCH_BYTES = 1024 * 1024,
};

struct append {
    struct session *s;
    struct path path;
    struct producer *producer;
    struct line_parser parser;
    struct bytebuf in;   /* what was read and is not yet sent */
    int64_t line;        /* of standard input, of what stands at in's front; from 1 */
    uint32_t turn;       /* of records without a key */
    int64_t n_committed;
    size_t pending;
};

/* Records of one partition on their way. */
struct sending {
    struct append *a;
    struct producer_send send;
    int32_t partition;
    struct producer_record *records;
    int64_t *lines; /* of each record */
    int32_t n, committed;
    int32_t sent_from, sent; /* of the send on its way */
    int rc;
    enum kerr err;
    char text[160]; /* the broker's */
};

static void on_sent(struct producer_send *ps, int rc, enum kerr err, int64_t offset, int32_t n_committed, const char *text)
{
    struct sending *x = ps->user;
    (void)offset;
    x->rc = rc;
    x->err = err;
    x->committed = x->sent_from + (rc == 0 ? x->sent : n_committed);
    if (rc != 0)
        snprintf(x->text, sizeof x->text, "%s", text == NULL ? "" : text);
    x->a->pending--;
}

static int line_failed(const struct append *a, int64_t line, const char *why)
{
    complain(a->s->args, "line %" PRId64 ": %s; %" PRId64 " records are committed", line, why, a->n_committed);
    return CLI_FAILED;
}

/* ---- one piece ---- */

/* Its records [from, from + n). */
static void send_begin(struct sending *x, int32_t from, int32_t n)
{
    struct append *a = x->a;
    x->sent_from = from;
    x->sent = n;
    x->send = (struct producer_send){ .topic = a->path.at.topic,
                                      .topic_id = a->path.topic_id,
                                      .partition = x->partition,
                                      .records = x->records + from,
                                      .n_records = n,
                                      .flush = true,
                                      .cb = on_sent,
                                      .user = x };
    a->pending++;
    producer_send(a->producer, &x->send);
}

static void wait_all(struct append *a)
{
    while (a->pending > 0)
        loop_run_once(a->s->loop, -1);
}

static void send_all(struct append *a, struct sending *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].n > 0)
            send_begin(&all[i], 0, all[i].n);
    }
    wait_all(a);
}

/* The broker refuses a batch for one record in it, and none of it is in the log then: by halves, up to the one to blame. */
static void send_narrow(struct sending *x)
{
    int32_t high = x->n; /* the one to blame is before it */
    while (x->rc != 0 && high - x->committed > 1 &&
           (x->err == KERR_INVALID_RECORD || x->err == KERR_MESSAGE_TOO_LARGE || x->err == KERR_INVALID_TIMESTAMP)) {
        int32_t half = (high - x->committed) / 2;
        int rc = x->rc;
        enum kerr err = x->err;
        send_begin(x, x->committed, half);
        wait_all(x->a);
        if (x->rc != 0) {
            high = x->sent_from + half;
        } else {
            x->rc = rc;
            x->err = err;
        }
    }
}

/* The first line that is not committed, or CLI_OK. */
static int judge(struct append *a, struct sending *all, size_t n)
{
    const struct sending *bad = NULL;
    for (size_t i = 0; i < n; i++) {
        struct sending *x = &all[i];
        send_narrow(x);
        a->n_committed += x->committed;
        if (x->committed < x->n && (bad == NULL || x->lines[x->committed] < bad->lines[bad->committed]))
            bad = x;
    }
    if (bad == NULL)
        return CLI_OK;
    const char *why = bad->rc == -ETIMEDOUT ? "no answer within --timeout"
                      : bad->text[0] != '\0' ? bad->text
                      : bad->err != KERR_NONE ? kerr_text(bad->err) : bad->rc == -ENOENT ? "the topic is gone" : strerror(-bad->rc);
    return line_failed(a, bad->lines[bad->committed], why);
}

static size_t partition_of(struct append *a, struct kstr key, size_t own)
{
    if (a->path.at.leaf != LEAF_ANY || key.n < 0)
        return own;
    return (murmur2(key.p, (size_t)key.n) & 0x7fffffff) % (uint32_t)a->path.n_partitions;
}

static void sending_add(struct sending *x, const struct append *a, const struct line_record *r, int64_t now, int64_t line)
{
    if ((x->n & (x->n - 1)) == 0) { /* full at 0, 1, 2, 4, ... */
        size_t cap = x->n == 0 ? 1 : 2 * (size_t)x->n;
        x->records = xreallocarray(x->records, cap, sizeof *x->records);
        x->lines = xreallocarray(x->lines, cap, sizeof *x->lines);
    }
    x->lines[x->n] = line;
    x->records[x->n++] = (struct producer_record){ .timestamp = r->timed ? r->timestamp : now,
                                                  .key = r->key,
                                                  .value = r->value,
                                                  .headers = a->parser.headers,
                                                  .n_headers = r->n_headers };
}

/* Headers move while lines are read: they are where they stay now. first: of the first record's among all. */
static void place_headers(struct sending *all, size_t n, const struct append *a, const size_t *first)
{
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < all[i].n; k++)
            all[i].records[k].headers = a->parser.headers + first[all[i].lines[k] - a->line];
    }
}

/* The lines in p, each with its end, and whether the last has none. */
static int piece_send(struct append *a, const char *p, size_t size)
{
    size_t parts = a->path.at.leaf == LEAF_ANY ? (size_t)a->path.n_partitions : 1, n_lines = 0, cap = 0;
    size_t own = a->path.at.leaf == LEAF_ANY ? a->turn++ % parts : 0, *first = NULL;
    CLEANUP(freep) struct sending *all = xcalloc(parts, sizeof *all);
    int64_t now = clock_wall_ms();
    int rc = CLI_OK;
    for (size_t i = 0; i < parts; i++)
        all[i] = (struct sending){ .a = a, .partition = parts == 1 ? MAX(a->path.at.partition, 0) : (int32_t)i };
    line_parser_begin(&a->parser, size);
    for (const char *s = p, *end = p + size; s < end; n_lines++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *stop = nl == NULL ? end : nl;
        struct line_record r;
        if (n_lines == cap)
            first = xreallocarray(first, cap = cap == 0 ? 64 : 2 * cap, sizeof *first);
        if (!line_parse(&a->parser, view_form(&a->path.at.view), s, (size_t)(stop - s), &r)) {
            rc = CLI_FAILED;
            break;
        }
        first[n_lines] = r.first_header;
        sending_add(&all[partition_of(a, r.key, own)], a, &r, now, a->line + (int64_t)n_lines);
        s = stop + (nl != NULL);
    }
    const char *why = a->parser.why; /* static */
    place_headers(all, parts, a, first);
    send_all(a, all, parts);
    int sent = judge(a, all, parts);
    if (sent == CLI_OK && rc != CLI_OK)
        line_failed(a, a->line + (int64_t)n_lines, why);
    a->line += (int64_t)n_lines;
    for (size_t i = 0; i < parts; i++) {
        free(all[i].records);
        free(all[i].lines);
    }
    free(first);
    return sent != CLI_OK ? sent : rc;
}

/* ---- standard input ---- */

/* Sends the whole lines that are here; at the end of input the last one, too. */
static int append_send(struct append *a, bool at_end)
{
    const uint8_t *nl = a->in.n > 0 ? memrchr(a->in.p, '\n', a->in.n) : NULL;
    size_t n = at_end ? a->in.n : nl == NULL ? 0 : (size_t)(nl - a->in.p) + 1;
    if (n == 0)
        return a->in.n > LINE_BYTES_MAX ? line_failed(a, a->line, "the line is too long") : CLI_OK;
    int rc = piece_send(a, (const char *)a->in.p, n);
    bytebuf_consume(&a->in, n);
    return rc;
}

static int append_input(struct append *a)
{
    int rc = CLI_OK;
    while (rc == CLI_OK) {
        uint8_t *room = bytebuf_room(&a->in, READ_BYTES);
        ssize_t n = read(STDIN_FILENO, room, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            complain(a->s->args, "standard input: %s", strerror(errno));
            return CLI_FAILED;
        }
        a->in.n += (size_t)n;
        rc = append_send(a, n == 0);
        if (n == 0)
            break;
    }
    return rc;
}

static int append_to(struct session *s, const char *text)
{
    struct append a = { .s = s, .line = 1 };
    int rc = path_find(s, text, &a.path);
    if (rc == CLI_OK)
        rc = path_may_append(s, &a.path);
    if (rc != CLI_OK)
        return rc;
    const struct producer_config cfg = { .acks = -1, .batch_size = BATCH_BYTES, .delivery_timeout_ms = s->timeout_ms };
    a.producer = producer_new(s->client, &cfg);
    line_parser_init(&a.parser);
    rc = append_input(&a);
    producer_free(a.producer);
    line_parser_done(&a.parser);
    bytebuf_done(&a.in);
    return rc;
}

static int run(const struct args *a)
{
    CLEANUP(session_close) struct session s = { 0 };
    int rc = session_init(&s, a);
    if (rc == CLI_OK)
        rc = session_connect(&s);
    return rc == CLI_OK ? append_to(&s, a->operands[0]) : rc;
}

const struct command cmd_append = {
    .name = "append",
    .operands = "PATH",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Appends lines of standard input as records",
    .text = "PATH is one of the mount's, below its root: TOPIC, views, and p0, p1, ..., or any. Below json/ and tsv/ lines are what these "
            "print.\n"
            "Status 0 means that all is committed. Else it says at which line it failed; no line behind that is sent, but where any "
            "shares lines out by keys.",
    .examples = "echo hello | klog append orders/p0\n"
                "printf 'k1\\tv1\\n' | klog append orders/tsv/any\n"
                "klog cat a/json/p0 | klog append b/json/any",
    .online = true,
    .run = run,
};
