/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges what clients saw of a cluster under faults. Reads a history, from files or standard input, prints one line a kind of anomaly
 * and some figures, and exits 1 when there was one, 2 when the history cannot be read. It knows nothing of klog.
 *
 *   send PROC PART N TS             record N of process PROC is handed to a producer for PART; N rises by one for each PROC
 *   ok PROC N OFFSET TS             it was acknowledged
 *   fail PROC N TS                  it was refused, and nobody may ever see it
 *   info PROC N TS                  nobody knows
 *   poll READER RUN PART OFFSET PROC N TS   a reader was given it; a reader that begins anew has another RUN
 *   dump NODE PART OFFSET EPOCH PROC N      at the end, all healed: a record in a replica's log
 *   end NODE PART HW                and all of that log below HW has been told
 *
 * TS is in nanoseconds of one monotonic clock. Lines of one file are in the order in which they happened; files are not.
 * One thread; everything is kept in memory, some 100 bytes a record.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/attr.h"
#include "lib/base/mem.h"

enum { PARTS_MAX = 4096, NODES_MAX = 64, PROCS_MAX = 1 << 20, SHOWN = 3 };

enum anomaly {
    LOST,         /* acknowledged, and not in a replica's log */
    TWICE,        /* one record at two offsets, of which one may be in its acknowledgement only */
    PHANTOM,      /* seen, and never sent */
    REFUSED_SEEN, /* refused, and seen */
    TWO_AT_ONE,   /* two records seen at one offset */
    SEND_ORDER,   /* a producer's records in another order than it sent them */
    READ_AGAIN,   /* a reader went back */
    READ_SKIPPED, /* a reader passed over a record */
    READ_GONE,    /* a reader was given what is in no replica's log */
    TIME_ORDER,   /* sent after another's acknowledgement, stored before it */
    DIVERGED,     /* two replicas differ below the high watermark of both */
    ANOMALIES,
};

static const char *const names[ANOMALIES] = {
    "lost", "twice", "phantom", "refused-seen", "two-at-one", "send-order", "read-again", "read-skipped", "read-gone",
    "time-order", "diverged",
};

struct record {
    uint64_t key; /* PROC and N, never 0 */
    int64_t sent_ns, acked_ns;
    int64_t offset; /* acknowledged at; -1 not */
    int64_t seen;   /* first seen at; -1 not */
    int32_t part;
    bool refused;
};

struct slot {
    uint64_t key; /* 0: nobody is known to be here */
    int32_t epoch;
};

struct log {
    struct slot *v;
    int64_t n;
    int64_t hw; /* -1: not told whole */
};

struct part {
    struct log all; /* what was seen by anybody, at its offset */
    struct log *nodes[NODES_MAX];
    int64_t last_ack_ns, gap_ns;
};

struct reader {
    uint64_t id;
    int64_t last[8];
};

static struct record *records;
static size_t n_records, cap_records;
static uint32_t *table; /* index + 1 of a record */
static size_t table_size;
static struct part *parts[PARTS_MAX];
static uint64_t found[ANOMALIES];
static uint64_t n_polls, n_acked, n_info, n_refused, n_dumped;

static PRINTF_LIKE(2, 3) void tell(enum anomaly a, const char *fmt, ...)
{
    va_list ap;

    if (found[a]++ >= SHOWN)
        return;
    printf("%s: ", names[a]);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* "7-123" */
static const char *name_of(uint64_t key, char ret[48])
{
    snprintf(ret, 48, "%" PRIu64 "-%" PRIu64, key >> 40, (key & ((UINT64_C(1) << 40) - 1)) - 1);
    return ret;
}

/* ---- records by their key ---- */
static size_t hash(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    return (size_t)key & (table_size - 1);
}

static void table_grow(void)
{
    free(table);
    table_size = table_size == 0 ? 1 << 16 : table_size * 2;
    table = xcalloc(table_size, sizeof *table);
    for (size_t i = 0; i < n_records; i++) {
        size_t at = hash(records[i].key);
        while (table[at] != 0)
            at = (at + 1) & (table_size - 1);
        table[at] = (uint32_t)i + 1;
    }
}

static struct record *record_find(uint64_t key)
{
    if (table_size == 0)
        return NULL;
    for (size_t at = hash(key); table[at] != 0; at = (at + 1) & (table_size - 1)) {
        if (records[table[at] - 1].key == key)
            return &records[table[at] - 1];
    }
    return NULL;
}

static struct record *record_add(uint64_t key)
{
    if ((n_records + 1) * 2 > table_size)
        table_grow();
    if (n_records == cap_records) {
        cap_records = cap_records == 0 ? 1 << 14 : cap_records * 2;
        records = xreallocarray(records, cap_records, sizeof *records);
    }
    size_t at = hash(key);
    while (table[at] != 0)
        at = (at + 1) & (table_size - 1);
    table[at] = (uint32_t)++n_records;
    records[n_records - 1] = (struct record){ .key = key, .offset = -1, .seen = -1, .part = -1 };
    return &records[n_records - 1];
}

/* ---- logs ---- */
static struct slot *log_at(struct log *l, int64_t offset)
{
    if (offset >= l->n) {
        int64_t n = MAX(offset + 1, l->n * 2);
        l->v = xreallocarray(l->v, (size_t)n, sizeof *l->v);
        memset(&l->v[l->n], 0, (size_t)(n - l->n) * sizeof *l->v);
        l->n = n;
    }
    return &l->v[offset];
}

static struct part *part_of(int64_t id)
{
    if (parts[id] == NULL)
        parts[id] = xcalloc(1, sizeof *parts[id]);
    return parts[id];
}

static struct log *node_of(int64_t part, int64_t node)
{
    struct log **l = &part_of(part)->nodes[node];

    if (*l == NULL) {
        *l = xcalloc(1, sizeof **l);
        (*l)->hw = -1;
    }
    return *l;
}

/* Somebody saw the record there. */
static void see(int64_t part, int64_t offset, uint64_t key, const char *who)
{
    char a[48], b[48];
    struct slot *s = log_at(&part_of(part)->all, offset);
    struct record *r = record_find(key);

    if (s->key != 0 && s->key != key)
        tell(TWO_AT_ONE, "partition %" PRId64 " offset %" PRId64 ": %s and, by %s, %s", part, offset, name_of(s->key, a), who,
             name_of(key, b));
    else
        s->key = key;
    if (r == NULL || r->part != part) {
        tell(PHANTOM, "partition %" PRId64 " offset %" PRId64 ": %s, by %s", part, offset, name_of(key, a), who);
        return;
    }
    if (r->refused)
        tell(REFUSED_SEEN, "partition %" PRId64 " offset %" PRId64 ": %s, by %s", part, offset, name_of(key, a), who);
    if (r->seen < 0)
        r->seen = offset;
    else if (r->seen != offset)
        tell(TWICE, "partition %" PRId64 ": %s at %" PRId64 " and, by %s, at %" PRId64, part, name_of(key, a), r->seen, who, offset);
}

/* ---- reading: first what was sent, then what was seen ---- */
static uint64_t key_of(int64_t proc, int64_t n)
{
    return (uint64_t)proc << 40 | (uint64_t)(n + 1);
}

struct poll_at {
    int64_t reader, run, part, last;
};
static struct poll_at *polls;
static size_t n_polls_at;

static int64_t *reader_at(int64_t reader, int64_t run, int64_t part)
{
    for (size_t i = n_polls_at; i-- > 0;) {
        if (polls[i].reader == reader && polls[i].part == part && polls[i].run == run)
            return &polls[i].last;
    }
    polls = xreallocarray(polls, n_polls_at + 1, sizeof *polls);
    polls[n_polls_at] = (struct poll_at){ reader, run, part, -1 };
    return &polls[n_polls_at++].last;
}

/* What was passed over is known when all has been read. */
struct gap {
    int64_t reader, part, from, to;
};
static struct gap *gaps;
static size_t n_gaps;

static void take_poll(const int64_t *v)
{
    int64_t *last = reader_at(v[0], v[1], v[2]), offset = v[3];

    n_polls++;
    see(v[2], offset, key_of(v[4], v[5]), "a reader");
    if (*last >= 0 && offset <= *last) {
        tell(READ_AGAIN, "partition %" PRId64 ": reader %" PRId64 " was given %" PRId64 " after %" PRId64, v[2], v[0], offset, *last);
    } else if (*last >= 0 && offset > *last + 1) {
        gaps = xreallocarray(gaps, n_gaps + 1, sizeof *gaps);
        gaps[n_gaps++] = (struct gap){ v[0], v[2], *last + 1, offset };
    }
    *last = offset;
}

static void take_send(const int64_t *v)
{
    uint64_t key = key_of(v[0], v[2]);
    struct record *r = record_find(key);

    r = r != NULL ? r : record_add(key);
    r->part = (int32_t)v[1];
    r->sent_ns = v[3];
}

static void take_ok(const int64_t *v)
{
    char a[48];
    struct record *r = record_find(key_of(v[0], v[1]));

    n_acked++;
    if (r == NULL || r->part < 0) {
        tell(PHANTOM, "%s was acknowledged", name_of(key_of(v[0], v[1]), a));
        return;
    }
    struct part *p = part_of(r->part);
    r->offset = v[2];
    r->acked_ns = v[3];
    see(r->part, v[2], r->key, "its producer");
    if (p->last_ack_ns > 0)
        p->gap_ns = MAX(p->gap_ns, v[3] - p->last_ack_ns);
    p->last_ack_ns = MAX(p->last_ack_ns, v[3]);
}

static void take_fail(const int64_t *v)
{
    struct record *r = record_find(key_of(v[0], v[1]));

    n_refused++;
    if (r != NULL)
        r->refused = true;
}

static void take_info(const int64_t *v)
{
    (void)v;
    n_info++;
}

static void take_dump(const int64_t *v)
{
    struct slot *s = log_at(node_of(v[1], v[0]), v[2]);

    n_dumped++;
    see(v[1], v[2], key_of(v[4], v[5]), "a replica");
    *s = (struct slot){ key_of(v[4], v[5]), (int32_t)v[3] };
}

static void take_end(const int64_t *v)
{
    node_of(v[1], v[0])->hw = v[2];
}

static const struct line_kind {
    const char *name;
    int n, part, proc, node; /* numbers behind it; which is a partition, a process, a node; -1 none */
    bool second;             /* read in the second pass */
    void (*read)(const int64_t *v);
} kinds[] = {
    { "send", 4, 1, 0, -1, false, take_send }, { "fail", 3, -1, 0, -1, true, take_fail },
    { "ok", 4, -1, 0, -1, true, take_ok },     { "info", 3, -1, 0, -1, true, take_info },
    { "poll", 7, 2, 4, -1, true, take_poll },  { "dump", 6, 1, 4, 0, true, take_dump },
    { "end", 3, 1, -1, 0, true, take_end },
};

/* False when the line is none of a history. */
static bool take_line(const char *line, bool second)
{
    size_t n = strcspn(line, " ");
    int64_t v[8];

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct line_kind *k = &kinds[i];
        if (strlen(k->name) != n || memcmp(line, k->name, n) != 0)
            continue;
        const char *p = line + n;
        for (int j = 0; j < k->n; j++) {
            char *end;
            errno = 0;
            v[j] = strtoll(p, &end, 10);
            if (end == p || errno != 0 || v[j] < 0)
                return false;
            p = end;
        }
        if (p[strspn(p, " \n")] != '\0' || (k->part >= 0 && v[k->part] >= PARTS_MAX) || (k->proc >= 0 && v[k->proc] >= PROCS_MAX) ||
            (k->node >= 0 && v[k->node] >= NODES_MAX))
            return false;
        if (k->second == second)
            k->read(v);
        return true;
    }
    return false;
}

static bool read_file(const char *name, bool second)
{
    FILE *f = fopen(name, "r");
    char *line = NULL;
    size_t size = 0, at = 0;
    bool ok = f != NULL;

    if (!ok)
        fprintf(stderr, "history: %s: %s\n", name, strerror(errno));
    while (ok && getline(&line, &size, f) > 0) {
        at++;
        ok = take_line(line, second);
        if (!ok)
            fprintf(stderr, "history: %s:%zu: this is no line of a history: %s", name, at, line);
    }
    free(line);
    if (f != NULL)
        fclose(f);
    return ok;
}

/* ---- judging at the end ---- */
static bool is_at(const struct log *l, int64_t offset, uint64_t key)
{
    return offset >= 0 && offset < l->n && l->v[offset].key == key;
}

static void judge_record(const struct record *r)
{
    char a[48];
    struct part *p = r->part >= 0 ? parts[r->part] : NULL;
    bool dumped = false, there = false;

    for (int node = 0; p != NULL && node < NODES_MAX; node++) {
        const struct log *l = p->nodes[node];
        if (l == NULL || l->hw < 0)
            continue;
        dumped = true;
        bool here = is_at(l, r->seen, r->key) || is_at(l, r->offset, r->key);
        there = there || here;
        if (r->offset >= 0 && !here)
            tell(LOST, "partition %d: %s, acknowledged at %" PRId64 ", is not in the log of node %d, which ends at %" PRId64, (int)r->part,
                 name_of(r->key, a), r->offset, node, l->hw);
    }
    if (dumped && !there && r->seen >= 0 && r->offset < 0)
        tell(READ_GONE, "partition %d: %s was read at %" PRId64 " and is in no log", (int)r->part, name_of(r->key, a), r->seen);
}

static void judge_gaps(void)
{
    char a[48];

    for (size_t i = 0; i < n_gaps; i++) {
        const struct gap *g = &gaps[i];
        const struct log *all = &part_of(g->part)->all;
        for (int64_t at = g->from; at < MIN(g->to, all->n); at++) {
            if (all->v[at].key == 0)
                continue;
            tell(READ_SKIPPED, "partition %" PRId64 ": reader %" PRId64 " went from %" PRId64 " to %" PRId64 " over %s", g->part, g->reader,
                 g->from - 1, g->to, name_of(all->v[at].key, a));
            break;
        }
    }
}

static void judge_replicas(int64_t id)
{
    char a[48], b[48];
    struct log *const *nodes = parts[id]->nodes, *first = NULL;

    for (int node = 0; node < NODES_MAX; node++) {
        struct log *l = nodes[node];
        if (l == NULL || l->hw < 0)
            continue;
        if (first == NULL) {
            first = l;
            continue;
        }
        for (int64_t at = 0; at < MIN(first->hw, l->hw); at++) {
            struct slot x = *log_at(first, at), y = *log_at(l, at);
            if (x.key == y.key && x.epoch == y.epoch)
                continue;
            tell(DIVERGED, "partition %" PRId64 " offset %" PRId64 ": %s of epoch %d, and on node %d %s of epoch %d", id, at, name_of(x.key, a),
                 (int)x.epoch, node, name_of(y.key, b), (int)y.epoch);
            break;
        }
    }
}

static int by_proc(const void *a, const void *b)
{
    const struct record *x = *(const struct record *const *)a, *y = *(const struct record *const *)b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int by_ack(const void *a, const void *b)
{
    const struct record *x = *(const struct record *const *)a, *y = *(const struct record *const *)b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->acked_ns < y->acked_ns ? -1 : x->acked_ns > y->acked_ns;
}

static int by_sent(const void *a, const void *b)
{
    const struct record *x = *(const struct record *const *)a, *y = *(const struct record *const *)b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->sent_ns < y->sent_ns ? -1 : x->sent_ns > y->sent_ns;
}

static void judge_send_order(struct record **acked, size_t n)
{
    char a[48], b[48];

    qsort(acked, n, sizeof *acked, by_proc);
    for (size_t i = 1; i < n; i++) {
        const struct record *x = acked[i - 1], *y = acked[i];
        if (x->part == y->part && x->key >> 40 == y->key >> 40 && x->offset >= y->offset)
            tell(SEND_ORDER, "partition %d: %s at %" PRId64 ", %s at %" PRId64, (int)x->part, name_of(x->key, a), x->offset, name_of(y->key, b),
                 y->offset);
    }
}

/* Of all that were acknowledged before one was sent, none may lie behind it. */
static void judge_time_order(struct record **acked, size_t n)
{
    char a[48], b[48];
    struct record **sent = xcalloc(n + 1, sizeof(struct record *));
    const struct record *highest = NULL;
    size_t k = 0;

    memcpy(sent, acked, n * sizeof *sent);
    qsort(sent, n, sizeof *sent, by_sent);
    qsort(acked, n, sizeof *acked, by_ack);
    for (size_t i = 0; i < n; i++) {
        const struct record *r = sent[i];
        if (i == 0 || sent[i - 1]->part != r->part) {
            highest = NULL;
            while (k < n && acked[k]->part != r->part)
                k++;
        }
        for (; k < n && acked[k]->part == r->part && acked[k]->acked_ns < r->sent_ns; k++)
            highest = highest == NULL || acked[k]->offset > highest->offset ? acked[k] : highest;
        if (highest != NULL && highest->offset > r->offset)
            tell(TIME_ORDER, "partition %d: %s at %" PRId64 " was sent after %s at %" PRId64 " had been acknowledged", (int)r->part,
                 name_of(r->key, a), r->offset, name_of(highest->key, b), highest->offset);
    }
    free(sent);
}

static void judge(void)
{
    struct record **acked = xcalloc(n_records + 1, sizeof(struct record *));
    size_t n = 0;

    for (size_t i = 0; i < n_records; i++) {
        judge_record(&records[i]);
        if (records[i].offset >= 0)
            acked[n++] = &records[i];
    }
    judge_gaps();
    for (int64_t id = 0; id < PARTS_MAX; id++) {
        if (parts[id] != NULL)
            judge_replicas(id);
    }
    judge_send_order(acked, n);
    judge_time_order(acked, n);
    free(acked);
}

int main(int argc, char **argv)
{
    int64_t gap_ns = 0;
    uint64_t sum = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 1; i < argc; i++) {
            if (!read_file(argv[i], pass == 1))
                return 2;
        }
    }
    judge();
    for (size_t i = 0; i < PARTS_MAX; i++)
        gap_ns = parts[i] != NULL ? MAX(gap_ns, parts[i]->gap_ns) : gap_ns;
    for (size_t i = 0; i < ANOMALIES; i++) {
        if (found[i] > 0)
            printf("ANOMALY %s: %" PRIu64 "\n", names[i], found[i]);
        sum += found[i];
    }
    printf("%zu sent, %" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64 " unknown, %" PRIu64 " polled, %" PRIu64
           " in replicas; longest time without an acknowledgement in a partition %" PRId64 " ms; %" PRIu64 " anomalies\n",
           n_records, n_acked, n_refused, n_info, n_polls, n_dumped, gap_ns / 1000000, sum);
    return sum > 0;
}
