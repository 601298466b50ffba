/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lasting watches over a server that has ZooKeeper's: one-shot, of one node, told in order with the answers. A reader that reads
 * what he is told of, and nothing else, has to end with what the server has, whatever happens in between; a seed decides that.
 * SEED=N repeats one.
 */
#include "unit.h"

#include "daemon/meta/register_tree.h"
#include "daemon/meta/register_watches.h"
#include "lib/base/attr.h"
#include "lib/base/mem.h"
#include "tests/sim/rand.h"

static const char *const paths[] = { "/t",       "/t/a",   "/t/a/p",     "/t/a/p/0", "/t/a/p/0/s", "/t/a/p/1", "/t/a/p/1/s",
                                     "/t/b",     "/t/b/p", "/t/b/p/0",   "/t/b/p/0/s", "/c",       "/c/d",     "/c/d/x",
                                     "/c/d/x/y", "/tt",    "/elsewhere" };
enum { N = ARRAY_LEN(paths), SEEDS = 3000, STEPS = 300, QUEUE = 4096 };

enum what { ARM_DATA, ARM_CHILDREN, READ, EVENT };
struct message {
    enum what what;
    int node; /* index in paths; -1: one that is not there */
    struct watch_ask ask;
    enum register_watch_event event;
    int rc;
    int64_t version;
    char **names;
    int n_names;
};
struct queue {
    struct message m[QUEUE];
    int from, n;
};

struct scene {
    struct rnd rnd;
    struct register_tree tree;
    bool data[N], child[N]; /* what is armed at the server */
    struct queue out, in;
    struct register_watches ws;
    struct register_watch *w[2];
    bool connected, was_connected;
    int64_t known[N]; /* the reader's: version, -1 not there */
    int n_told, n_disarmed;
};

static int node_of(const char *path)
{
    for (int i = 0; i < N; i++)
        if (strcmp(paths[i], path) == 0)
            return i;
    fail_msg("%s", path);
    return -1;
}

static bool is_watched(int i)
{
    return register_path_is_under(paths[i], "/t") || register_path_is_under(paths[i], "/c/d");
}

static void put(struct queue *q, struct message m)
{
    assert_in_range(q->n, 0, QUEUE - 1);
    q->m[(q->from + q->n++) % QUEUE] = m;
}

static struct message take_first(struct queue *q)
{
    struct message m = q->m[q->from];
    q->from = (q->from + 1) % QUEUE;
    q->n--;
    return m;
}

static void free_names(struct message *m)
{
    for (int i = 0; i < m->n_names; i++)
        free(m->names[i]);
    free(m->names);
}

static void drop(struct queue *q)
{
    while (q->n > 0) {
        struct message m = take_first(q);
        free_names(&m);
    }
}

/* ---- the reader ---- */

static void read_below(struct scene *s, const char *path)
{
    for (int i = 0; i < N; i++)
        if (register_path_is_under(paths[i], path) && is_watched(i))
            put(&s->out, (struct message){ .what = READ, .node = i });
}

/* Which there are, as a list of them would say. */
static void read_children(struct scene *s, const char *path)
{
    for (int i = 0; i < N; i++)
        if (strncmp(paths[i], path, strlen(path)) == 0 && strchr(paths[i] + strlen(path), '/') == NULL && is_watched(i))
            put(&s->out, (struct message){ .what = READ, .node = i });
}

static void told(void *arg, const char *path)
{
    struct scene *s = arg;
    s->n_told++;
    if (path[strlen(path) - 1] == '/')
        read_children(s, path);
    else
        read_below(s, path);
}

static void swept(void *arg)
{
    struct scene *s = arg;
    assert_true(s->connected);
    if (s->was_connected) {
        register_watches_tell_all(&s->ws);
    } else {
        read_below(s, "/t");
        read_below(s, "/c/d");
    }
    s->was_connected = true;
}

static void arm_data(void *arg, const char *path, struct watch_ask ask)
{
    struct scene *s = arg;
    put(&s->out, (struct message){ .what = ARM_DATA, .node = node_of(path), .ask = ask });
}

static void arm_children(void *arg, const char *path, struct watch_ask ask)
{
    struct scene *s = arg;
    put(&s->out, (struct message){ .what = ARM_CHILDREN, .node = node_of(path), .ask = ask });
}

static void disarm(void *arg, const char *path)
{
    struct scene *s = arg;
    assert_false(s->connected);
    s->data[node_of(path)] = s->child[node_of(path)] = false;
    s->n_disarmed++;
}

/* ---- the server ---- */

static void event(struct scene *s, int node, enum register_watch_event ev)
{
    if (s->connected)
        put(&s->in, (struct message){ .what = EVENT, .node = node, .event = ev });
}

static void parent_changed(struct scene *s, int node)
{
    CLEANUP(freep) char *path = xstrdup(paths[node]);
    *strrchr(path, '/') = '\0';
    int parent = path[0] == '\0' ? -1 : node_of(path);
    if (parent >= 0 && s->child[parent]) {
        s->child[parent] = false;
        event(s, parent, WATCH_CHILD);
    }
}

static void change(struct scene *s)
{
    static const enum register_op_kind kinds[] = { REGISTER_CREATE, REGISTER_CREATE, REGISTER_SET, REGISTER_DELETE };
    int i = (int)rnd_below(&s->rnd, N);
    struct register_op op = { .kind = kinds[rnd_below(&s->rnd, 4)], .path = paths[i], .version = REGISTER_ANY_VERSION };
    struct register_undo undo = { 0 };
    int rc = register_tree_multi(&s->tree, &op, 1, &undo);
    register_undo_commit(&undo);
    if (rc < 0)
        return;
    bool armed = s->data[i] || (op.kind == REGISTER_DELETE && s->child[i]);
    s->data[i] = false;
    if (op.kind == REGISTER_DELETE)
        s->child[i] = false;
    if (armed)
        event(s, i, op.kind == REGISTER_CREATE ? WATCH_CREATED : op.kind == REGISTER_SET ? WATCH_CHANGED : WATCH_DELETED);
    if (op.kind != REGISTER_SET)
        parent_changed(s, i);
}

static void serve(struct scene *s)
{
    struct message m = take_first(&s->out);
    struct slice value;
    const char **names = NULL;

    m.rc = register_tree_get(&s->tree, paths[m.node], &value, &m.version);
    if (m.what == ARM_DATA)
        s->data[m.node] = true; /* of one that is not there, too */
    if (m.what == ARM_CHILDREN && m.rc == 0) {
        s->child[m.node] = true;
        register_tree_children(&s->tree, paths[m.node], &names, &m.n_names);
        m.names = xcalloc((size_t)m.n_names + 1, sizeof *m.names);
        for (int i = 0; i < m.n_names; i++)
            m.names[i] = xstrdup(names[i]);
        free(names);
    }
    put(&s->in, m);
}

static void hear(struct scene *s)
{
    struct message m = take_first(&s->in);

    switch (m.what) {
    case ARM_DATA:
        register_watches_on_data(&s->ws, paths[m.node], m.ask, m.rc);
        break;
    case ARM_CHILDREN:
        register_watches_on_children(&s->ws, paths[m.node], m.ask, m.rc, (const char *const *)m.names, m.n_names);
        break;
    case READ:
        s->known[m.node] = m.rc == 0 ? m.version : -1;
        break;
    case EVENT:
        register_watches_on_event(&s->ws, m.event, paths[m.node]);
        break;
    }
    free_names(&m);
}

static void connect_again(struct scene *s)
{
    while (register_watches_disarm(&s->ws, (int)rnd_range(&s->rnd, 1, 3)))
        if (rnd_one_in(&s->rnd, 8))
            break; /* faster than all could be disarmed: the rest is armed still, with a watch that tells of the past */
    s->connected = true;
    register_watches_connected(&s->ws);
}

static void lose_connection(struct scene *s)
{
    bool session = rnd_one_in(&s->rnd, 3);
    s->connected = false;
    drop(&s->out);
    drop(&s->in);
    register_watches_disconnected(&s->ws, session);
    if (session)
        memset(s->data, 0, sizeof s->data), memset(s->child, 0, sizeof s->child);
}

static void step(struct scene *s)
{
    int dice = (int)rnd_below(&s->rnd, 100);

    if (dice < 15)
        change(s);
    else if (dice == 15 && s->connected)
        lose_connection(s);
    else if (!s->connected && dice < 40)
        connect_again(s);
    else if (s->connected && dice < 60 && s->out.n > 0)
        serve(s);
    else if (s->connected && s->in.n > 0)
        hear(s);
}

static void check(struct scene *s, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        struct slice value;
        int64_t version;
        int rc = register_tree_get(&s->tree, paths[i], &value, &version);
        int64_t want = !is_watched(i) ? -2 : rc < 0 ? -1 : version;
        if (s->known[i] != want)
            fail_msg("SEED=%llu: %s is at %lld, the reader has %lld", (unsigned long long)seed, paths[i], (long long)want,
                     (long long)s->known[i]);
    }
    assert_false(register_watches_sweeping(&s->ws));
}

static void play(uint64_t seed)
{
    struct scene *s = xcalloc(1, sizeof *s);
    struct register_watches_env env = { s, arm_data, arm_children, disarm, swept };

    s->rnd = rnd_of(seed, RND_PLAN, 0);
    for (int i = 0; i < N; i++)
        s->known[i] = is_watched(i) ? -1 : -2;
    for (uint64_t n = rnd_below(&s->rnd, 100); n > 0; n--)
        change(s);
    register_watches_init(&s->ws, &env);
    s->w[0] = register_watches_add(&s->ws, "/t", told, s);
    s->w[1] = register_watches_add(&s->ws, "/c/d", told, s);
    for (int i = 0; i < STEPS; i++)
        step(s);
    if (!s->connected)
        connect_again(s);
    while (s->out.n > 0 || s->in.n > 0) {
        if (s->out.n > 0 && rnd_one_in(&s->rnd, 2))
            serve(s);
        else if (s->in.n > 0)
            hear(s);
    }
    check(s, seed);
    register_watches_remove(&s->ws, s->w[0]);
    int n = s->n_told;
    for (int i = 0; i < 100; i++) {
        change(s);
        while (s->in.n > 0)
            hear(s);
        drop(&s->out);
    }
    register_watches_remove(&s->ws, s->w[1]);
    assert_true(s->n_told >= n);
    n = s->n_told;
    for (int i = 0; i < 100; i++) {
        change(s);
        while (s->in.n > 0)
            hear(s);
    }
    assert_int_equal(s->n_told, n); /* no call after it was taken away */
    register_watches_done(&s->ws);
    drop(&s->out);
    drop(&s->in);
    register_tree_done(&s->tree);
    free(s);
}

static void who_reads_what_he_is_told_of_ends_with_the_truth(void **state)
{
    const char *one = getenv("SEED");
    (void)state;

    if (one != NULL) {
        play(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_reads_what_he_is_told_of_ends_with_the_truth),
    };
    return RUN(tests);
}
