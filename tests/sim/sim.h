/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated world: its time, what happens next in it, its hosts, and the record of what happened. One thread; nothing in it
 * reads a real clock, random number or descriptor, so that a seed decides everything.
 *
 * A step is what one fiber does until it gives way (simexec.h), one delivery of bytes, one act of a client. It runs to
 * completion at one simulated instant; time moves between steps only. Steps of the same time come in a drawn order.
 *
 * A host's process can end at any call into its disk or network (sim_process_ends): the step is left at that place, nothing of
 * it runs any more, and what the process had in memory is lost (it is never freed: the program that runs seeds begins anew
 * often enough).
 */
#ifndef KLOG_SIM_SIM_H
#define KLOG_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/attr.h"
#include "tests/sim/rand.h"

#define SIM_US 1000LL
#define SIM_MS 1000000LL
#define SIM_S 1000000000LL

struct sim;

struct sim_step {
    void (*run)(struct sim_step *st);
    int64_t at_ns;
    uint64_t tie;
    size_t index; /* private: in the heap; 0 = not set */
};

/* ---- the world ---- */
struct sim *sim_new(uint64_t seed);
void sim_free(struct sim *s);
uint64_t sim_seed(const struct sim *s);
int64_t sim_now(const struct sim *s); /* ns since the world began */

void sim_at(struct sim *s, struct sim_step *st, int64_t at_ns); /* sets or moves it; the past is now */
void sim_in(struct sim *s, struct sim_step *st, int64_t in_ns);
void sim_cancel(struct sim *s, struct sim_step *st); /* fine when it is not set */
static inline bool sim_step_is_set(const struct sim_step *st)
{
    return st->index != 0;
}
/* Takes the next step. False: there is none before `until_ns`; it is that late then. */
bool sim_go_on(struct sim *s, int64_t until_ns);
uint64_t sim_steps(const struct sim *s);

/* ---- processes ---- */
struct sim_process {
    struct sim *sim;
    int host;
    int life; /* of this host: 0, 1, ... */
    bool is_up;
    void (*ended)(struct sim_process *p); /* its fibers, sockets and files go; does not return on one of its fibers */
};
/* The process ends here and now. Does not return when one of its fibers called. */
void sim_process_ends(struct sim_process *p);

/* ---- what happened ---- */
/* One event: into the hash of the run, and into the ring that a failure prints. what: a literal. */
void sim_note(struct sim *s, const char *what, int64_t a, int64_t b, int64_t c);
uint64_t sim_hash(const struct sim *s);
uint64_t sim_events(const struct sim *s);
/* The hash after each 1,000 events, to find the first difference of two runs. */
const uint64_t *sim_hashes(const struct sim *s, size_t *ret_n);
void sim_trace(struct sim *s, bool on); /* print each event as it happens */
/* Text, for the trace alone. */
void sim_say(struct sim *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sim_print_last(const struct sim *s);

/* Something is wrong: prints what (rule: as "C1", "S4"), the last events, and how to repeat it; ends the process with
 * SIM_EXIT_FAILED, or goes to the place that sim_on_failure named. */
enum { SIM_EXIT_FAILED = 70 };
NORETURN void sim_fail(struct sim *s, const char *rule, const char *fmt, ...) PRINTF_LIKE(3, 4);
void sim_on_failure(struct sim *s, void (*f)(void *arg, const char *rule), void *arg);

#endif
