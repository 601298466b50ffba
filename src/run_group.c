/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run as a whole: membership in the group, workers, signals, and the end. Whatever changes stirs `turn`,
 * which looks at the end of the loop's round what is to be done. One thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/check.h"
#include "lib/base/mem.h"
#include "src/out.h"
#include "src/run.h"

enum { LEAVE_MS = 10000, DELIVERY_TIMEOUT_MS = 120000, LETTERS_BATCH_BYTES = 512 * 1024 };

void run_stir(struct run *r)
{
    loop_defer(r->s->loop, &r->turn);
}

bool run_goes_on(const struct run *r)
{
    return r->owns && !r->releasing && !r->stopping;
}

static void parts_give_back(struct run *r)
{
    struct run_part *p;
    TAILQ_FOREACH (p, &r->parts, entry)
        part_give_back(p);
}

void run_stop(struct run *r, int status)
{
    r->stopping = true;
    if (r->status == CLI_OK)
        r->status = status;
    parts_give_back(r);
    run_stir(r);
}

/* ---- what is to be done ---- */
static bool any_is_busy(const struct run *r)
{
    const struct run_part *p;
    TAILQ_FOREACH (p, &r->parts, entry) {
        if (part_is_busy(p))
            return true;
    }
    return false;
}

static bool all_are_done(const struct run *r)
{
    const struct run_part *p;
    TAILQ_FOREACH (p, &r->parts, entry) {
        if (p->state != PART_DONE && p->state != PART_AWAY)
            return false;
    }
    return true;
}

static void on_turn(struct deferred *d)
{
    struct run *r = container_of(d, struct run, turn);
    struct run_part *p;

    while (run_goes_on(r) && r->n_working < r->set.workers && (p = TAILQ_FIRST(&r->ready)) != NULL)
        part_work(p);
    if (run_goes_on(r) && !r->set.follow && all_are_done(r))
        run_stop(r, CLI_OK);
    if (any_is_busy(r))
        return;
    if (r->releasing && !r->ended && !r->closing) {
        r->owns = r->releasing = false;
        member_released(r->m);
    }
    if (r->stopping && r->ended) {
        r->over = true;
    } else if (r->stopping && !r->closing) {
        r->closing = true;
        member_close(r->m, loop_now_ms(r->s->loop) + LEAVE_MS);
    }
}

/* ---- membership ---- */
static struct run_part *part_of(struct run *r, const char *topic, int32_t partition)
{
    struct run_part *p;
    TAILQ_FOREACH (p, &r->parts, entry) {
        if (p->partition == partition && strcmp(p->topic, topic) == 0)
            return p;
    }
    p = xcalloc(1, sizeof *p);
    part_init(p, r, topic, partition);
    TAILQ_INSERT_TAIL(&r->parts, p, entry);
    return p;
}

static void on_assigned(struct member *m, const struct position *parts, size_t n)
{
    struct run *r = member_user(m);

    r->owns = true;
    run_stir(r);
    for (size_t i = 0; i < n && !r->stopping; i++) {
        if (parts[i].err != KERR_NONE) {
            complain(r->args, "%s partition %d: %s", parts[i].topic, parts[i].partition,
                     kerr_text(parts[i].err));
            run_stop(r, CLI_FAILED);
            return;
        }
        part_take(part_of(r, parts[i].topic, parts[i].partition), &parts[i]);
    }
}

static void on_revoked(struct member *m, bool lost)
{
    struct run *r = member_user(m);

    (void)lost; /* commits that are refused say so themselves */
    r->releasing = true;
    parts_give_back(r);
    run_stir(r);
}

static void on_ended(struct member *m, int rc, enum kerr err)
{
    struct run *r = member_user(m);

    r->ended = true;
    r->owns = r->releasing = false;
    if (rc != 0)
        complain(r->args, "group %s: %s", r->set.group, err != KERR_NONE ? kerr_text(err) : strerror(-rc));
    run_stop(r, rc != 0 ? CLI_FAILED : CLI_OK);
}

static void run_join(struct run *r)
{
    static const struct member_ops ops = { .assigned = on_assigned,
                                           .revoked = on_revoked,
                                           .ended = on_ended };
    const struct member_config cfg = {
        .group = r->set.group,
        .topics = r->set.topics,
        .n_topics = r->set.n_topics,
        .instance_id = r->set.instance,
        .session_timeout_ms = (int32_t)r->set.session_timeout_ms,
    };

    r->m = member_new(r->s->client, &cfg, &ops, r);
    member_join(r->m);
}

/* ---- signals ---- */
/* The first signal asks to end well; later ones are passed on to COMMAND, or, where none runs, end the waiting. */
static void on_signal(struct loop_fd *w, uint32_t events)
{
    struct run *r = container_of(w, struct run, signals);
    struct signalfd_siginfo si;
    struct run_part *p;

    (void)events;
    if (read(w->fd, &si, sizeof si) != sizeof si)
        return;
    if (++r->n_signals == 1) {
        run_stop(r, CLI_OK);
        return;
    }
    TAILQ_FOREACH (p, &r->parts, entry) {
        if (p->child.pid > 0)
            child_signal(&p->child, SIGTERM);
    }
    if (r->n_working == 0) {
        run_stop(r, CLI_FAILED);
        r->over = true;
    }
}

/* SIGPIPE would come from sockets; COMMAND gets the mask as it was. */
static int signals_take(struct run *r)
{
    sigset_t ours, blocked;
    struct sigaction hup;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup wants it ignored */
        sigaddset(&ours, SIGHUP);
    blocked = ours;
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, &r->old_mask);
    int fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    r->signals = (struct loop_fd){ .fd = fd, .events = EPOLLIN, .cb = on_signal };
    int rc = loop_fd_add(r->s->loop, &r->signals);
    if (rc < 0)
        close(fd);
    return rc;
}

static void signals_give_back(struct run *r)
{
    loop_fd_del(r->s->loop, &r->signals);
    close(r->signals.fd);
    sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* ---- from begin to end ---- */
static void run_free(struct run *r)
{
    struct run_part *p;

    member_free(r->m);
    producer_free(r->letters);
    parts_give_back(r);
    while ((p = TAILQ_FIRST(&r->parts)) != NULL) {
        TAILQ_REMOVE(&r->parts, p, entry);
        part_free(p);
    }
    loop_defer_cancel(r->s->loop, &r->turn);
    signals_give_back(r);
}

static void run_tell(const struct run *r)
{
    if (args_has(r->args, "json"))
        out_json(stdout,
                 json_pack("{s:s, s:I, s:I, s:I}", "group", r->set.group, "records", (json_int_t)r->n_records,
                           "dead_letters", (json_int_t)r->n_buried, "failures", (json_int_t)r->n_refusals));
}

int run_records(struct session *s, const struct run_settings *set)
{
    struct run r = { .args = s->args, .s = s, .set = *set, .turn.cb = on_turn };
    const struct producer_config letters = { .acks = -1,
                                             .batch_size = LETTERS_BATCH_BYTES,
                                             .delivery_timeout_ms = DELIVERY_TIMEOUT_MS };

    TAILQ_INIT(&r.parts);
    TAILQ_INIT(&r.ready);
    int rc = signals_take(&r);
    if (rc < 0) {
        complain(s->args, "cannot take signals: %s", strerror(-rc));
        return CLI_FAILED;
    }
    if (set->dead_letters != NULL)
        r.letters = producer_new(s->client, &letters);
    run_join(&r);
    while (!r.over)
        loop_run_once(s->loop, -1);
    run_free(&r);
    run_tell(&r);
    return r.status;
}
