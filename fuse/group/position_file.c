/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOPIC/.groups/G/pN: a group's committed offset as digits and a newline. A write moves it; it is one word,
 * written whole, wherever in the file the kernel believes it to be. Nothing is kept from write to write, so
 * an error always belongs to the write that asked for it. Loop's thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/base/missed.h"
#include "fuse/base/mount.h"
#include "fuse/cluster/groups.h"
#include "fuse/group/group_files.h"
#include "fuse/page/page.h"
#include "fuse/partition/pfile.h"
#include "fuse/tree/file.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#define POSITION_WORD_MAX 64

/* ---- reading ---- */

struct position_get {
    struct page *page;
    struct group_ask ask;
};

static void on_position(struct group_ask *a, int rc, const struct position *p, size_t n)
{
    struct position_get *g = container_of(a, struct position_get, ask);
    struct page *page = g->page;
    struct bytebuf text = { 0 };
    if (n == 1 && p[0].offset >= 0) /* else it was deleted while somebody has it open */
        bytebuf_printf(&text, "%" PRId64 "\n", p[0].offset);
    free(g);
    page_made(page, rc, &text);
    bytebuf_done(&text);
}

static void position_make(struct page *p)
{
    const struct node *n = page_node(p);
    struct position_get *g = xcalloc(1, sizeof *g);
    g->page = p;
    g->ask = (struct group_ask){
        .group = n->view.group, .topic = n->topic->name, .first = n->partition, .n = 1, .cb = on_position
    };
    group_ask(page_mount(p), &g->ask);
}

/* ---- writing ---- */

struct position_set {
    struct request r;
    struct topics_wait metadata;
    struct handle *h; /* owned reference */
    size_t size;
    struct bound to;
    struct group_wait wait;
    struct ends_wait ends;
    struct position_find find;
    struct position position;
    struct positions_commit commit;
};

static void set_end(struct position_set *s, int err)
{
    if (err != 0)
        request_err(&s->r, err);
    else
        request_written(&s->r, s->size);
    handle_unref(s->h);
    free(s);
}

static void on_committed(struct positions_commit *pc, int rc, enum kerr err)
{
    struct position_set *s = container_of(pc, struct position_set, commit);
    if (rc == 0)
        page_touch(s->h->node->page);
    set_end(s, group_errno(rc, err));
}

static void set_commit(struct position_set *s, int64_t offset)
{
    const struct node *n = s->h->node;
    struct mount *m = s->r.mount;
    s->position = (struct position){
        .topic = n->topic->name,
        .topic_id = n->topic->id,
        .partition = n->partition,
        .offset = offset,
        .leader_epoch = -1,
    };
    s->commit = (struct positions_commit){ .group = n->view.group,
                                           .member_id = "",
                                           .generation = -1,
                                           .positions = &s->position,
                                           .n = 1,
                                           .deadline_ms = mount_deadline_ms(m),
                                           .cb = on_committed };
    positions_commit(m->writer, &s->commit);
}

static void on_set_ends(struct ends_wait *w, int rc)
{
    struct position_set *s = container_of(w, struct position_set, ends);
    const struct ends *e = &s->h->node->pfile->ends;
    int64_t room = e->end_offset - e->start_offset;
    if (rc != 0)
        set_end(s, request_errno(rc));
    else if (s->to.kind == BOUND_START)
        set_commit(s, e->start_offset);
    else if (s->to.kind == BOUND_FIRST)
        set_commit(s, e->start_offset + MIN(s->to.value, room));
    else if (s->to.kind == BOUND_LAST)
        set_commit(s, e->end_offset - MIN(s->to.value, room));
    else
        set_commit(s, e->end_offset);
}

/* No record is that young: the position is where the next one will come. */
static void on_set_found(struct position_find *f, int rc, enum kerr err, int64_t offset)
{
    struct position_set *s = container_of(f, struct position_set, find);
    (void)err;
    if (rc != 0)
        set_end(s, request_errno(rc));
    else if (offset < 0)
        ends_ask(s->h->node->pfile, &s->ends); /* kind is a time: the end */
    else
        set_commit(s, offset);
}

static void set_find(struct position_set *s)
{
    const struct node *n = s->h->node;
    int64_t at = when_ms(s->to.when, clock_wall_ms());
    s->find = (struct position_find){ .topic = n->topic->name,
                                      .partition = n->partition,
                                      .at = MAX(at, 0), /* below are names of ends */
                                      .deadline_ms = mount_deadline_ms(s->r.mount),
                                      .cb = on_set_found };
    position_find(s->r.mount->client, &s->find);
}

/* "0", "start", "@-1h", ...: a range without an end, and the white space that echo puts behind it. */
static bool position_parse(const char *buf, size_t size, struct bound *ret)
{
    char word[POSITION_WORD_MAX];
    struct range range;
    while (size > 0 && strchr(" \t\r\n", buf[size - 1]) != NULL && buf[size - 1] != '\0')
        size--;
    if (size == 0 || size >= sizeof word || memchr(buf, '\0', size) != NULL)
        return false;
    memcpy(word, buf, size);
    word[size] = '\0';
    if (!range_parse(word, &range) || range.to.kind != BOUND_NONE || word[size - 1] == ':')
        return false;
    *ret = range.from;
    return ret->kind != BOUND_NONE;
}

static void on_set_settled(struct group_wait *w, int rc)
{
    struct position_set *s = container_of(w, struct position_set, wait);
    if (rc != 0)
        set_end(s, EIO);
    else
        topics_ask(s->r.mount, &s->metadata, s->h->node->topic->name, 0);
}

/* The commit names the topic, and another one may have got the name. */
static void on_set_sure(struct topics_wait *w, int rc)
{
    struct position_set *s = container_of(w, struct position_set, metadata);
    const struct node *n = s->h->node;
    enum bound_kind kind = s->to.kind;
    if (n->topic->gone || rc != 0)
        set_end(s, n->topic->gone ? ESTALE : request_errno(rc));
    else if (group_is_read(s->r.mount, n->view.group, n->topic, n->partition))
        set_end(s, EBUSY);
    else if (kind == BOUND_OFFSET)
        set_commit(s, s->to.value);
    else if (kind == BOUND_TIME)
        set_find(s);
    else
        ends_ask(s->h->node->pfile, &s->ends);
}

static void position_write(struct handle *h, fuse_req_t req, const char *buf, size_t size,
                           struct fuse_file_info *fi)
{
    struct bound to;
    (void)fi;
    if (!position_parse(buf, size, &to)) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    struct position_set *s = xcalloc(1, sizeof *s);
    s->h = handle_ref(h);
    s->size = size;
    s->to = to;
    s->ends.cb = on_set_ends;
    s->metadata.cb = on_set_sure;
    request_begin(&s->r, h->mount, req);
    s->wait = (struct group_wait){ .group = h->node->view.group, .cb = on_set_settled };
    group_wait(h->mount, &s->wait);
}

static int position_may_open(struct mount *m, struct node *n, int flags)
{
    (void)m;
    (void)flags; /* O_TRUNC is fine: a position is always written whole */
    return n->topic->gone ? ESTALE : 0;
}

/* A position is never told from what was known before. */
static void position_made(struct mount *m, struct node *n)
{
    page_attach(m, n, position_make, 0);
}

const struct file_ops position_ops = {
    .made = position_made,
    .freed = page_detach,
    .fill_stat = page_fill_stat,
    .getattr = page_getattr,
    .may_open = position_may_open,
    .open = page_open,
    .read = page_read,
    .write = position_write,
};
