/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of a printed view (tsv/) while its log grows, is compacted and cut at its head, and what was printed is evicted at
 * any time: rules X1, X3, X6 and X7 of ptext.h. The broker is a model in memory, whose answers come in any order. What a reader gets, one read after the other, is whole lines of records in their order, none left out that is there
 * still; a position that it has read says the same when it is read again, or EIO; any other position has what stood there, or
 * EIO. SEED=N repeats a run, SEEDS=M tries so many.
 */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/file/pfile_read.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/clock.h"
#include "lib/client/fetch.h"
#include "lib/record/build.h"

enum { RECORDS_MAX = 3000, HANDLES = 4, EVENTS_MAX = 64, LINE_MAX_BYTES = 3000, FILE_MAX = 4 * 1024 * 1024 };

struct rec {
    int key;
    int pad;
    bool gone;
};

enum { EVENT_FETCH, EVENT_ENDS };
struct event {
    int kind;
    struct client_fetch *fetch;
    struct ends_wait *ends;
};

struct reader { /* an open file, and what was seen of it */
    struct handle h;
    bool open, busy;
    bool sequential, straight; /* the read goes on where the last such one ended; and nothing else was read in between */
    bool broken;               /* one of those was refused */
    int64_t at;      /* where it goes on */
    int64_t off;     /* of the read that is on its way */
    size_t size;
    char *seen;      /* bytes read one after the other */
    int64_t last;    /* the offset of the last whole line of them; -1: none */
    int64_t line_at; /* where the next line begins */
    bool ended;
};

static struct world_model {
    struct rec log[RECORDS_MAX];
    int64_t start, end, era;
    bool changed; /* compacted or cut since the beginning */
    struct event events[EVENTS_MAX];
    int n_events;
    struct mount m;
    struct pfile f;
    struct node *node;
    struct reader readers[HANDLES];
} w;

static uint64_t state_of_draw;
static unsigned draw(unsigned n)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_draw >> 33) % n;
}

/* ---- the log ---- */

static size_t value_print(char *to, int64_t offset)
{
    return (size_t)sprintf(to, "%" PRId64 ".%0*d", offset, w.log[offset].pad, 0);
}

static size_t line_print(char *to, int64_t offset)
{
    size_t n = (size_t)sprintf(to, "k%d\t", w.log[offset].key);
    n += value_print(to + n, offset);
    to[n++] = '\n';
    return n;
}

static void log_grow(int n)
{
    while (n-- > 0 && w.end < RECORDS_MAX)
        w.log[w.end++] = (struct rec){ (int)draw(30), 1 + (int)draw(draw(20) == 0 ? 2500 : 120), false };
}

/* Keeps the last record of each key below a point; the log's last record stays in any case. */
static void log_compact(void)
{
    bool seen[30] = { false };
    int64_t clean = w.start + (int64_t)draw((unsigned)(w.end - w.start));
    for (int64_t o = w.end - 1; o >= w.start; o--) {
        bool *s = &seen[w.log[o].key];
        w.log[o].gone |= *s && o < clean;
        *s = true;
    }
    w.era++;
    w.changed = true;
}

static void log_cut(void)
{
    w.start += (int64_t)draw((unsigned)(w.end - w.start));
    w.changed = true;
}

/* ---- the broker ---- */

static void event_add(struct event e)
{
    assert_true(w.n_events < EVENTS_MAX);
    w.events[w.n_events++] = e;
}

static void add_batch(struct bytebuf *out, int64_t offset)
{
    static const struct batch_producer none = { .id = -1, .epoch = -1, .base_sequence = -1 };
    char key[16], value[LINE_MAX_BYTES];
    struct batch_builder b;
    size_t at = out->n;
    snprintf(key, sizeof key, "k%d", w.log[offset].key);
    batch_builder_init(&b);
    struct kstr v = { value, (int32_t)value_print(value, offset) };
    batch_builder_add(&b, 1000, kstr_of(key), v, NULL, 0);
    assert_int_equal(batch_builder_finish(&b, CODEC_NONE, 0, &none, 0, out), 0);
    batch_set_base_offset(out->p + at, offset);
    batch_builder_done(&b);
}

static void answer_fetch(struct client_fetch *f)
{
    struct bytebuf out = { 0 };
    struct client_fetched got = { .high_watermark = w.end, .last_stable_offset = w.end, .log_start_offset = w.start };
    if (f->offset < w.start || f->offset > w.end)
        got.err = KERR_OFFSET_OUT_OF_RANGE;
    int n = 1 + (int)draw(60);
    for (int64_t o = f->offset; got.err == KERR_NONE && o < w.end && n > 0; o++) {
        if (w.log[o].gone)
            continue;
        add_batch(&out, o);
        n--;
    }
    got.frame = rcbuf_take(&out);
    got.batches = slice_of(got.frame->p, got.frame->n);
    f->cb(f, 0, &got);
    rcbuf_unref(got.frame);
}

static void answer_ends(struct ends_wait *e)
{
    struct ends now = { .start_offset = w.start, .end_offset = w.end, .era = w.era };
    if (w.f.ends_known && w.f.ends.era != w.era)
        ptexts_moved(&w.f, 0);
    w.f.ends = now;
    w.f.ends_known = true;
    w.f.ends_ns = clock_mono_ns();
    e->cb(e, 0);
}

static void answer_any(void)
{
    int i = (int)draw((unsigned)w.n_events);
    struct event e = w.events[i];
    w.events[i] = w.events[--w.n_events];
    if (e.kind == EVENT_FETCH)
        answer_fetch(e.fetch);
    else
        answer_ends(e.ends);
}

/* ---- what the code under test calls (the linker's --wrap) ---- */

void __wrap_client_fetch(struct client *c, struct client_fetch *f);
void __wrap_client_fetch(struct client *c, struct client_fetch *f)
{
    (void)c;
    event_add((struct event){ .kind = EVENT_FETCH, .fetch = f });
}

void __wrap_client_fetch_cancel(struct client *c, struct client_fetch *f);
void __wrap_client_fetch_cancel(struct client *c, struct client_fetch *f)
{
    (void)c;
    for (int i = 0; i < w.n_events; i++) {
        if (w.events[i].kind == EVENT_FETCH && w.events[i].fetch == f)
            w.events[i--] = w.events[--w.n_events];
    }
}

void __wrap_ends_ask(struct pfile *f, struct ends_wait *e);
void __wrap_ends_ask(struct pfile *f, struct ends_wait *e)
{
    assert_ptr_equal(f, &w.f);
    event_add((struct event){ .kind = EVENT_ENDS, .ends = e });
}

int64_t __wrap_mount_deadline_ms(struct mount *m);
int64_t __wrap_mount_deadline_ms(struct mount *m)
{
    (void)m;
    return INT64_MAX;
}

void __wrap_fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data);
void __wrap_fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    (void)req;
    (void)func;
    (void)data;
}

/* ---- judging ---- */

static void judge_line(struct reader *r, const char *line, size_t n)
{
    char want[LINE_MAX_BYTES];
    const char *tab = memchr(line, '\t', n);
    assert_non_null(tab);
    int64_t offset = strtoll(tab + 1, NULL, 10);
    assert_true(offset > r->last && offset < w.end);
    for (int64_t o = MAX(r->last + 1, w.start); r->last >= 0 && o < offset; o++)
        assert_true(w.log[o].gone); /* else it was left out */
    assert_int_equal(line_print(want, offset), n);
    assert_memory_equal(line, want, n);
    r->last = offset;
}

static void judge_sequential(struct reader *r, const char *p, size_t n)
{
    const char *nl;
    assert_true(r->at + (int64_t)n < FILE_MAX);
    memcpy(r->seen + r->at, n > 0 ? p : "", n);
    r->at += (int64_t)n;
    while ((nl = memchr(r->seen + r->line_at, '\n', (size_t)(r->at - r->line_at))) != NULL) {
        size_t len = (size_t)(nl + 1 - (r->seen + r->line_at));
        judge_line(r, r->seen + r->line_at, len);
        r->line_at += (int64_t)len;
    }
    r->ended = n == 0;
    if (n == 0)
        assert_int_equal(r->line_at, r->at); /* no half line at the end */
}

/* Whole lines in it are records', in order. */
static void judge_elsewhere(struct reader *r, const char *p, size_t n)
{
    struct reader one = { .last = -1 };
    const char *end = p + n, *nl = memchr(p, '\n', n), *next;
    if (r->off + (int64_t)n <= r->at)
        assert_memory_equal(r->seen + r->off, p, n);
    while (nl != NULL && (next = memchr(nl + 1, '\n', (size_t)(end - nl - 1))) != NULL) {
        char want[LINE_MAX_BYTES];
        const char *tab = memchr(nl + 1, '\t', (size_t)(next - nl));
        assert_non_null(tab);
        int64_t offset = strtoll(tab + 1, NULL, 10);
        assert_true(offset > one.last && offset < w.end);
        assert_int_equal(line_print(want, offset), next - nl);
        assert_memory_equal(nl + 1, want, (size_t)(next - nl));
        one.last = offset;
        nl = next;
    }
}

static void answered(fuse_req_t req, const char *p, size_t n, int err)
{
    struct reader *r = (struct reader *)req;
    assert_true(r->busy);
    r->busy = false;
    if (err != 0) /* of what does not go straight on, and was not there any more */
        assert_true(!r->straight && err == EIO && w.changed);
    r->broken |= err != 0 && r->sequential;
    assert_true(n <= r->size);
    if (err == 0 && r->sequential)
        judge_sequential(r, p, n);
    else if (err == 0 && n > 0)
        judge_elsewhere(r, p, n);
}

int __wrap_fuse_reply_err(fuse_req_t req, int err);
int __wrap_fuse_reply_err(fuse_req_t req, int err)
{
    answered(req, NULL, 0, err);
    return 0;
}

int __wrap_fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count);
int __wrap_fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
    struct bytebuf b = { 0 };
    for (int i = 0; i < count; i++)
        bytebuf_add(&b, iov[i].iov_base, iov[i].iov_len);
    answered(req, (const char *)b.p, b.n, 0);
    bytebuf_done(&b);
    return 0;
}

/* ---- open files ---- */

static void reader_open(struct reader *r)
{
    const struct view view = { .parts = VIEW_TSV };
    struct lens *l = lens_get(&w.f, &view);
    char *seen = r->seen != NULL ? r->seen : malloc(FILE_MAX);
    *r = (struct reader){ .open = true, .seen = seen, .last = -1 };
    r->h = (struct handle){ .mount = &w.m, .node = w.node, .refs = 1, .place = { .at = -1, .edge = TEXT_EDGE_NONE } };
    struct ptext *t = ptext_now(l);
    place_lead(&r->h.place, t);
    ptext_opened(t);
    w.node->lens = l;
}

static void reader_close(struct reader *r)
{
    struct lens *l = r->h.place.text->lens;
    ptext_closed(r->h.place.text);
    place_done(&r->h.place);
    r->open = false;
    lens_unref(l);
}

static void reader_read(struct reader *r, int64_t off, size_t size)
{
    r->busy = true;
    r->off = off;
    r->size = size;
    r->sequential = off == r->at;
    r->straight = r->sequential && off == r->h.next_off;
    pfile_read(&r->h, (fuse_req_t)r, size, off);
    struct text_map *map = r->h.place.text->map;
    if (map->n == 1)
        map->step = 4000;
}

static size_t some_size(void)
{
    static const unsigned sizes[] = { 1, 40, 700, 4096, 20000, 131072 };
    return 1 + draw(sizes[draw(6)]);
}

static void reader_go(struct reader *r)
{
    if (!r->open)
        reader_open(r);
    else if (r->busy)
        return;
    else if (r->broken || draw(60) == 0)
        reader_close(r);
    else if (draw(3) > 0)
        reader_read(r, r->at, some_size());
    else if (draw(2) == 0) /* as a shell that goes back to the end of its line */
        reader_read(r, r->line_at - (int64_t)draw((unsigned)MIN(r->line_at, 2000) + 1), some_size());
    else
        reader_read(r, (int64_t)draw((unsigned)MAX(2 * r->at, (int64_t)100000)), some_size());
}

static void step(void)
{
    unsigned what = draw(1000);
    if (what < 8)
        log_grow((int)draw(60));
    else if (what < 12 && w.end > w.start + 1)
        log_compact();
    else if (what < 14 && w.end > w.start + 1)
        log_cut();
    else if (what < 30 && w.readers[0].open)
        chunk_list_cut(&w.m.texts, &w.readers[0].h.place.text->chunks, (int64_t)draw(200000));
    else if (what < 600 && w.n_events > 0)
        answer_any();
    else
        reader_go(&w.readers[draw(HANDLES)]);
}

static void settle(void)
{
    while (w.n_events > 0)
        answer_any();
}

static void run(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    state_of_draw = seed * 7919 + 1;
    w.f = (struct pfile){ .mount = &w.m, .refs = 1 };
    w.f.plain.file = &w.f;
    static char name[] = "t";
    struct topic topic = { .name = name };
    w.f.key.topic = &topic;
    w.node = calloc(1, sizeof *w.node + 1);
    w.node->kind = NODE_PARTITION;
    w.node->refs = 1;
    w.node->pfile = &w.f;
    text_cache_init(&w.m.texts, (size_t)700 * 1024 << draw(3)); /* less than a read each, and nobody gets on */
    TAILQ_INIT(&w.m.requests);
    log_grow(200 + (int)draw(800));
    reader_open(&w.readers[0]);
    for (int i = 0; i < 3000; i++)
        step();
    settle();
    for (int i = 0; i < HANDLES; i++) { /* each goes on to the end, and has the last record */
        struct reader *r = &w.readers[i];
        for (int n = 0; r->open && !r->broken && (n == 0 || !r->ended); n++) {
            assert_true(n < 100000);
            reader_read(r, r->at, some_size());
            settle();
            assert_false(r->busy);
        }
        if (r->open && !r->broken)
            assert_int_equal(r->last, w.end - 1);
        if (r->open)
            reader_close(r);
        free(r->seen);
    }
    free(w.node);
    text_cache_done(&w.m.texts);
}

static void readers_get_whole_lines_in_order_whatever_becomes_of_the_log(void **state)
{
    (void)state;
    const char *one = getenv("SEED"), *many = getenv("SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t n = many != NULL ? strtoull(many, NULL, 10) : one != NULL ? 1 : 60;
    for (uint64_t seed = first; seed < first + n; seed += one != NULL ? 1 : (uint64_t)test_step()) {
        char text[64];
        snprintf(text, sizeof text, "SEED=%" PRIu64 "\n", seed);
        fputs(text, stderr);
        run(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_get_whole_lines_in_order_whatever_becomes_of_the_log),
    };
    return RUN(tests);
}
