/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One who does not keep to the protocol: begins a frame and does not go on, sends bytes that are no frame, asks for much and
 * reads nothing, leaves in the middle. The broker owes it nothing, and everybody else as much as before.
 */
#include <string.h>

#include "tests/sim/play.h"

struct rude {
    struct rawclient c; /* first */
    int64_t holds_on_until_ns; /* asks for much, reads nothing and does not go */
};

static void start(struct rawclient *c)
{
    c->gets_nothing = true;
}

static void opened(struct rawclient *c)
{
    uint8_t junk[64];
    c->reads_nothing = false;
    switch (rnd_below(&c->rnd, 5)) {
    case 0: /* a size, and a part of what it promises */
        memcpy(junk, "\0\1\0\0\0\3\0\14", 8);
        client_send_bytes(c, junk, (size_t)rnd_range(&c->rnd, 1, 8));
        return;
    case 1:
        for (size_t i = 0; i < sizeof junk; i++)
            junk[i] = (uint8_t)rnd_u64(&c->rnd);
        client_send_bytes(c, junk, sizeof junk);
        return;
    case 2:
        for (int i = 0; i < 20 && c->is_open; i++)
            client_ask_metadata(c);
        return;
    case 3:
        c->reads_nothing = true;
        container_of(c, struct rude, c)->holds_on_until_ns = sim_now(client_sim(c)) + 60 * SIM_S;
        for (int i = 0; i < 200 && c->is_open; i++)
            client_ask_metadata(c);
        return;
    default:
        return;
    }
}

static void answered(struct rawclient *c, struct asked *q, void *answer, struct arena *a)
{
    (void)q;
    (void)answer;
    (void)a;
    if (rnd_one_in(&c->rnd, 8))
        client_close(c);
}

static void tick(struct rawclient *c)
{
    if (c->end == NULL && !c->stops)
        client_connect(c);
    else if (sim_now(client_sim(c)) >= container_of(c, struct rude, c)->holds_on_until_ns && (rnd_one_in(&c->rnd, 4) || c->stops))
        client_close(c);
    client_tick_in(c, rnd_log(&c->rnd, 10 * SIM_MS, 4 * SIM_S));
}

const struct client_kind client_rude = {
    .name = "rude",
    .size = sizeof(struct rude),
    .start = start,
    .opened = opened,
    .answered = answered,
    .tick = tick,
};
