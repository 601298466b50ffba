/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated network and threads under lib/loop: an echoing server and a client, two processes of a simulated world, exchange
 * frames over connections that deliver in pieces, are clogged and break. What arrives is what was sent, in its order; and the
 * same seed gives the same run.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "lib/base/mem.h"
#include "lib/base/varint.h"
#include "lib/base/world.h"
#include "lib/loop/conn.h"
#include "lib/loop/loop.h"
#include "lib/loop/workers.h"
#include "tests/sim/fiber.h"
#include "tests/sim/simclock.h"
#include "tests/sim/simexec.h"
#include "tests/sim/simnet.h"

enum { FRAMES = 40, PORT = 4711 };

struct machine_fake {
    struct sim_process process; /* first */
    struct simclock clock;
    struct simexec exec;
    struct simnic nic;
    struct world world;
    struct loop *loop;
    struct conn *conn;
    struct loop_fd listener;
    struct workers *workers;
    struct job job;
    int n_jobs;
    int32_t sent, received;
    int n_closed;
    bool done;
    struct rnd rnd;
};

static void on_ended(struct sim_process *p)
{
    struct machine_fake *m = container_of(p, struct machine_fake, process);
    simnic_ended(&m->nic, false);
    fibers_drop(&m->exec.fibers);
}

static void machine_start(struct machine_fake *m, struct sim *s, struct simnet *nw, int host, void (*main)(void *arg))
{
    struct rnd clock = rnd_of(sim_seed(s), RND_CLOCK, (uint64_t)host);
    memset(m, 0, sizeof *m);
    m->process = (struct sim_process){ .sim = s, .host = host, .is_up = true, .ended = on_ended };
    m->rnd = rnd_of(sim_seed(s), RND_CLIENT, (uint64_t)host);
    simclock_init(&m->clock, s, &clock, 0);
    simexec_init(&m->exec, s, &m->clock, rnd_of(sim_seed(s), RND_JOBS, (uint64_t)host));
    simnic_init(&m->nic, nw, &m->process, &m->exec.fibers, NULL);
    m->world = (struct world){ .clock = &m->clock.clock, .exec = &m->exec.exec, .net = &m->nic.net };
    fiber_detach(fiber_start(&m->exec.fibers, main, m, "main"));
}

static struct sockaddr_in address(int host)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(PORT),
                                 .sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)host) };
}

static const struct conn_limits limits = { .frame_max = 1 << 20, .idle_ms = 600000, .sndbuf = -1, .rcvbuf = -1 };

/* ---- the server ---- */
static void echo(struct conn *c, struct rcbuf *frame)
{
    struct rcbuf *head = rcbuf_new(4);
    put_be32(head->p, (uint32_t)frame->n);
    head->n = 4;
    conn_send(c, head, 0, 4);
    conn_send(c, frame, 0, frame->n);
    rcbuf_unref(head);
    rcbuf_unref(frame);
}

static void server_closed(struct conn *c, const char *why)
{
    struct machine_fake *m = conn_user(c);
    (void)why;
    m->n_closed++;
}

static void on_acceptable(struct loop_fd *w, uint32_t events)
{
    static const struct conn_ops ops = { .frame = echo, .closed = server_closed };
    struct machine_fake *m = container_of(w, struct machine_fake, listener);
    (void)events;
    int fd = m->world.net->accept(m->world.net, w->fd);
    if (fd >= 0)
        conn_new(m->loop, fd, &ops, &limits, m);
}

static void server_main(void *arg)
{
    struct machine_fake *m = arg;
    struct sockaddr_in in = address(0);
    m->loop = loop_new(&m->world);
    m->listener = (struct loop_fd){ .events = EPOLLIN, .cb = on_acceptable };
    m->listener.fd = m->world.net->bind(m->world.net, (struct sockaddr *)&in, sizeof in);
    assert_true(m->listener.fd >= 0);
    assert_int_equal(m->world.net->listen(m->world.net, m->listener.fd), 0);
    assert_int_equal(loop_fd_add(m->loop, &m->listener), 0);
    loop_run(m->loop);
}

/* ---- the client ---- */
static void client_connect(struct machine_fake *m);

/* Frame k: its number, and as many bytes as a hash of that says. */
static size_t frame_bytes(int32_t k)
{
    return 4 + rnd_mix((uint64_t)k) % (k % 7 == 0 ? 100000 : 300);
}

static void send_frame(struct machine_fake *m)
{
    size_t n = frame_bytes(m->sent);
    struct rcbuf *b = rcbuf_new(4 + n);
    memset(b->p, (int)(m->sent & 0x7f), 4 + n);
    put_be32(b->p, (uint32_t)n);
    put_be32(b->p + 4, (uint32_t)m->sent++);
    b->n = 4 + n;
    conn_send(m->conn, b, 0, b->n);
    rcbuf_unref(b);
}

static void client_connected(struct conn *c)
{
    struct machine_fake *m = conn_user(c);
    m->sent = m->received; /* what had no answer is sent again */
    for (int i = 0; i < 3 && m->sent < FRAMES; i++)
        send_frame(m);
}

static void job_run_here(struct job *j)
{
    struct machine_fake *m = container_of(j, struct machine_fake, job);
    fiber_sleep(rnd_range(&m->rnd, 0, 10 * SIM_MS));
}

static void job_done_here(struct job *j)
{
    struct machine_fake *m = container_of(j, struct machine_fake, job);
    m->n_jobs++;
    if (m->sent < FRAMES && m->conn != NULL)
        send_frame(m);
}

static void client_frame(struct conn *c, struct rcbuf *frame)
{
    struct machine_fake *m = conn_user(c);
    assert_int_equal(get_be32(frame->p), m->received);
    assert_int_equal(frame->n, frame_bytes(m->received));
    for (size_t i = 4; i < frame->n; i++)
        assert_int_equal(frame->p[i], m->received & 0x7f);
    rcbuf_unref(frame);
    m->received++;
    sim_note(m->process.sim, "received", m->received, 0, 0);
    if (m->received == FRAMES) {
        m->done = true;
        loop_stop(m->loop);
        return;
    }
    if (m->sent >= FRAMES)
        return;
    if (m->received % 5 == 0 && m->n_jobs * 5 < m->received)
        workers_submit(m->workers, &m->job);
    else
        send_frame(m);
}

static void client_closed(struct conn *c, const char *why)
{
    struct machine_fake *m = conn_user(c);
    (void)why;
    m->n_closed++;
    client_connect(m);
}

static void client_connect(struct machine_fake *m)
{
    static const struct conn_ops ops = { .frame = client_frame, .closed = client_closed, .connected = client_connected };
    struct sockaddr_in in = address(0);
    m->conn = conn_connect(m->loop, (struct sockaddr *)&in, sizeof in, &ops, &limits, m);
}

static void client_main(void *arg)
{
    struct machine_fake *m = arg;
    m->loop = loop_new(&m->world);
    m->workers = workers_new(&m->world, 2, "test");
    m->job = (struct job){ .run = job_run_here, .done = job_done_here, .loop = m->loop };
    client_connect(m);
    loop_run(m->loop);
}

/* ---- a run ---- */
struct result {
    uint64_t hash;
    int n_closed;
    bool done;
};

static struct result run(uint64_t seed)
{
    static struct machine_fake server, client;
    struct sim *s = sim_new(seed);
    struct simnet *nw = simnet_new(s);
    struct rnd plan = rnd_of(seed, RND_PLAN, 0);
    machine_start(&server, s, nw, 0, server_main);
    machine_start(&client, s, nw, 1, client_main);
    int64_t next_ns = 0;
    while (!client.done && sim_now(s) < 3600 * SIM_S) {
        sim_go_on(s, sim_now(s) + SIM_MS);
        if (seed % 3 == 0 || sim_now(s) < next_ns || next_ns > 3 * SIM_S)
            continue;
        next_ns = sim_now(s) + rnd_log(&plan, SIM_MS, 50 * SIM_MS);
        if (rnd_one_in(&plan, 3))
            simnet_cut_one(nw, (int)rnd_below(&plan, 2));
        else if (rnd_one_in(&plan, 3))
            simnet_clog(nw, 0, 1, rnd_log(&plan, SIM_MS, 300 * SIM_MS));
        else if (rnd_one_in(&plan, 6))
            simnet_refuse(nw, 0, rnd_log(&plan, SIM_MS, 100 * SIM_MS));
    }
    struct result r = { sim_hash(s), client.n_closed, client.done };
    sim_process_ends(&server.process);
    sim_process_ends(&client.process);
    simnet_free(nw);
    sim_free(s);
    return r;
}

static void what_is_sent_arrives_in_its_order(void **state)
{
    int n_closed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct result r = run(seed);
        if (!r.done)
            fail_msg("seed %d does not come to its end", (int)seed);
        n_closed += r.n_closed;
    }
    assert_true(n_closed > 100); /* connections did break */
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++)
        assert_true(run(seed).hash == run(seed).hash);
    assert_false(run(1).hash == run(2).hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_arrives_in_its_order),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
    };
    return RUN(tests);
}
