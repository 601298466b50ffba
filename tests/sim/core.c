/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core simulator's world: time, the register store, the network, and a broker that is little more than klogd's state
 * machines and an array of records; see core.h.
 */
#include "tests/sim/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/check.h"

enum event_kind {
    EV_FAULT,        /* x: which */
    EV_HEAL,
    EV_START,        /* a process begins */
    EV_STOPPED,      /* a clean stop ends it */
    EV_ENLIST,       /* it asks to be registered */
    EV_ENLISTED,     /* and is; x: broker epoch */
    EV_SESSION_OVER, /* x: which session */
    EV_READ,         /* a watch fired: the store is asked */
    EV_VIEW,         /* and answers; x: which view */
    EV_TICK,
    EV_ELECT,
    EV_WRITE,        /* a request reaches the store; x: which */
    EV_WRITTEN,      /* its outcome; y: the version, or one of those: */
    EV_CLAIM,        /* x: index of a broker */
    EV_ASK,
    EV_FETCH,        /* x: which message */
    EV_ANSWER,
    EV_SYNCED,       /* x: up to where, y: cuts when it began */
    EV_PRODUCE,
};
enum { WRITE_FAILED = -1, WRITE_UNKNOWN = -2 };

const char *core_bug;
struct core_failure core_failure;
static int64_t own_marks[CORE_N_MARKS];
int64_t *core_marks = own_marks;
const char *const core_mark_names[CORE_N_MARKS] = {
#define X(name) #name,
    CORE_MARKS(X)
#undef X
};
static jmp_buf failed;

bool bug_is(const char *name);
bool bug_is(const char *name)
{
    return core_bug != NULL && strcmp(core_bug, name) == 0;
}

void core_fail(const struct core *c, const char *rule, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(core_failure.rule, sizeof core_failure.rule, "%s", rule);
    snprintf(core_failure.text, sizeof core_failure.text, "at %lld ms: %s", c == NULL ? -1 : (long long)c->now_ms, text);
    longjmp(failed, 1);
}

/* In place of lib/base/check.c: an invariant of the machines that broke is a failure like others. */
void check_failed(const char *file, int line, const char *func, const char *cond, const char *number)
{
    core_fail(NULL, number[0] == '\0' ? "check" : number, "%s:%d: %s: %s", file, line, func, cond);
}

void core_say(const struct core *c, const char *fmt, ...)
{
    va_list ap;
    if (!c->trace)
        return;
    printf("%6lld ", (long long)c->now_ms);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* ---- time ---- */
static bool comes_before(const struct core_event *a, const struct core_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct core *c, int64_t in_ms, enum event_kind kind, int who, uint32_t life, int32_t x, int32_t y)
{
    struct core_event e = { .at = c->now_ms + in_ms, .order = rnd_u64(&c->order), .kind = kind, .who = who, .life = life, .x = x, .y = y };
    int i = c->n_events++;
    if (i >= CORE_EVENTS)
        core_fail(c, "simulator", "too many events");
    for (; i > 0 && comes_before(&e, &c->events[(i - 1) / 2]); i = (i - 1) / 2)
        c->events[i] = c->events[(i - 1) / 2];
    c->events[i] = e;
}

static struct core_event pop(struct core *c)
{
    struct core_event first = c->events[0], last = c->events[--c->n_events];
    int i = 0;
    for (;;) {
        int k = 2 * i + 1;
        if (k >= c->n_events)
            break;
        if (k + 1 < c->n_events && comes_before(&c->events[k + 1], &c->events[k]))
            k++;
        if (!comes_before(&c->events[k], &last))
            break;
        c->events[i] = c->events[k];
        i = k;
    }
    c->events[i] = last;
    return first;
}

/* For the process that is there now. */
static void push_own(struct core *c, int64_t in_ms, enum event_kind kind, int who, int32_t x, int32_t y)
{
    push(c, in_ms, kind, who, c->b[who].life, x, y);
}

/* Most messages are fast, some are overtaken by others. */
static int64_t delay(struct rnd *r)
{
    return rnd_one_in(r, 40) ? rnd_log(r, 10, 500) : rnd_range(r, 1, 6);
}

/* ---- the register store ---- */
static void changed(struct core *c)
{
    for (int i = 0; i < c->n_brokers; i++)
        if (c->b[i].up)
            push_own(c, delay(&c->store), EV_READ, i, 0, 0);
}

static void on_read(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (b->away_until > c->now_ms) {
        push_own(c, b->away_until - c->now_ms, EV_READ, who, 0, 0);
        return;
    }
    uint32_t at = c->n_views++ % CORE_VIEWS;
    struct core_view *v = &c->views[at];
    v->version = c->version;
    v->live_sequence = c->live_sequence;
    v->n_live = 0;
    for (int i = 0; i < c->n_brokers; i++)
        if (c->registered[i])
            v->live[v->n_live++] = (struct live_broker){ i + 1, c->be[i], c->base[i] };
    memcpy(v->claims, c->claims, sizeof v->claims);
    v->n_claims = c->n_claims;
    push_own(c, delay(&c->store), EV_VIEW, who, (int32_t)at, 0);
}

static bool checks_hold(const struct core *c, const struct state_change *ch)
{
    if (ch->to.version != c->version)
        return false;
    for (int32_t i = 0; i < ch->n_checks; i++)
        if (c->be[ch->check[i].id - 1] != ch->check[i].be)
            return false;
    return true;
}

/* The version, or WRITE_FAILED. */
static int32_t take_effect(struct core *c, struct core_request *q)
{
    q->under_way = false;
    c->n_under_way--;
    if (!checks_hold(c, &q->change))
        return WRITE_FAILED;
    if (c->version + 1 >= CORE_VERSIONS || q->change.to.leader_epoch >= CORE_EPOCHS - 1) {
        c->full = true;
        return WRITE_FAILED;
    }
    struct partition_state *to = &c->history[c->version + 1];
    *to = q->change.to;
    to->version = c->version + 1;
    c->version++;
    if (q->is_late)
        core_mark(CORE_MARK_late_write_took_effect);
    core_say(c, "register: version %d leader %d be %lld epoch %d isr of %d recovery %d, written by %d", c->version, to->leader,
             (long long)to->leader_be, to->leader_epoch, to->n_isr, to->recovery, q->from + 1);
    if (to->leader_epoch > c->history[c->version - 1].leader_epoch)
        c->n_claims = 0;
    core_truth_written(c, q, &c->history[c->version - 1]);
    changed(c);
    return c->version;
}

static void on_write(struct core *c, int32_t at, bool answered)
{
    struct core_request *q = &c->requests[at];
    int32_t version = take_effect(c, q);
    if (answered)
        push_own(c, delay(&c->store), EV_WRITTEN, q->from, at, version);
}

static void on_enlist(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (c->registered[who] || b->away_until > c->now_ms) { /* by a session that is not over yet */
        push_own(c, 20, EV_ENLIST, who, 0, 0);
        return;
    }
    c->be[who]++;
    if (b->is_unproven)
        c->base[who] = c->be[who];
    b->is_unproven = false;
    c->registered[who] = true;
    c->session[who]++;
    c->live_sequence++;
    core_say(c, "broker %d is registered: be %lld base %lld", b->id, (long long)c->be[who], (long long)c->base[who]);
    changed(c);
    push_own(c, delay(&c->store), EV_ENLISTED, who, (int32_t)c->be[who], 0);
}

static void on_session_over(struct core *c, int who, uint32_t session)
{
    if (!c->registered[who] || c->session[who] != session)
        return;
    c->registered[who] = false;
    c->live_sequence++;
    core_say(c, "broker %d is not registered any more", c->b[who].id);
    changed(c);
}

static void on_claim(struct core *c, int who)
{
    const struct core_broker *b = &c->b[who];
    bool damaged = b->r.role == REPLICA_DAMAGED;
    size_t i = 0;
    while (i < c->n_claims && c->claims[i].id != b->id)
        i++;
    if (i == c->n_claims)
        c->n_claims++;
    c->claims[i] = (struct election_claim){ .id = b->id,
                                            .be = b->r.be,
                                            .last_epoch = damaged || b->log.n == 0 ? -1 : b->log.at[b->log.n - 1].epoch,
                                            .leo = damaged ? -1 : b->log.n };
    changed(c);
}

/* ---- a broker writes ---- */
static void send_change(struct core *c, int who, const struct state_change *ch, enum election_what why)
{
    struct core_broker *b = &c->b[who];
    if (!replica_proposal_sent(&b->r, ch))
        return;
    uint32_t at = c->n_requests++ % CORE_REQUESTS;
    struct core_request *q = &c->requests[at];
    q->change = *ch;
    q->from = who;
    q->be = b->r.be;
    q->is_late = false;
    q->why = why;
    int how = b->next_write;
    b->next_write = -1;
    if (b->away_until > c->now_ms)
        how = (int)rnd_below(&c->store, 3);
    q->under_way = how != 0;
    c->n_under_way += how != 0;
    if (how < 0) {
        push(c, delay(&c->store), EV_WRITE, who, 0, (int32_t)at, 1);
        return;
    }
    push_own(c, 1 + delay(&c->store), EV_WRITTEN, who, (int32_t)at, WRITE_UNKNOWN);
    core_mark(how == 0 ? CORE_MARK_unknown_not_written : how == 1 ? CORE_MARK_unknown_written : CORE_MARK_unknown_written_late);
    q->is_late = how == 2;
    if (how != 0)
        push(c, how == 1 ? 1 : b->late_ms, EV_WRITE, who, 0, (int32_t)at, 0);
}

static void elect(struct core *c, int who);
static void ask_soon(struct core *c, int who, int64_t in_ms);

/* The replica may have been told a new state. */
static void look(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (replica_follows(&b->r))
        ask_soon(c, who, 1);
    elect(c, who);
}

static void on_written(struct core *c, int who, int32_t at, int32_t version)
{
    struct core_broker *b = &c->b[who];
    const struct core_request *q = &c->requests[at];
    bool unsettled = b->r.unsettled;
    if (version == WRITE_UNKNOWN) {
        replica_proposal_unknown(&b->r);
    } else if (version == WRITE_FAILED) {
        core_mark(CORE_MARK_write_refused);
        replica_proposal_failed(&b->r);
    } else {
        replica_proposal_confirmed(&b->r, &q->change, version);
        if (unsettled && !b->r.unsettled)
            core_mark(CORE_MARK_settled);
    }
    if (version < 0)
        push_own(c, 1, EV_READ, who, 0, 0);
    look(c, who);
}

static void decide_more(struct core *c, int who, const struct election *e)
{
    static const enum core_mark marks[] = { [ELECTION_TAKE] = CORE_MARK_elected,
                                            [ELECTION_HAND_OVER] = CORE_MARK_handed_over };
    switch (e->what) {
    case ELECTION_NOTHING:
        break;
    case ELECTION_WAIT:
        core_mark(CORE_MARK_waited_its_turn);
        push_own(c, e->wait_ms, EV_ELECT, who, 0, 0);
        break;
    case ELECTION_CLAIM:
        push_own(c, delay(&c->store), EV_CLAIM, who, 0, 0);
        break;
    case ELECTION_TAKE_LOSS:
        core_mark(c->recovery == RECOVERY_BALANCED ? CORE_MARK_recovered_balanced : CORE_MARK_recovered_proactively);
        send_change(c, who, &e->change, e->what);
        break;
    case ELECTION_TAKE:
    case ELECTION_HAND_OVER:
        core_mark(marks[e->what]);
        if (e->what == ELECTION_TAKE && c->b[who].ails)
            core_mark(CORE_MARK_ailing_elected);
        send_change(c, who, &e->change, e->what);
        break;
    }
}

static struct election_input input_of(struct core_broker *b, const struct core *c)
{
    return (struct election_input){ .state = &b->r.state,
                                    .live = b->live,
                                    .n_live = b->n_live,
                                    .me = b->id,
                                    .be = b->r.be,
                                    .damaged = b->r.role == REPLICA_DAMAGED,
                                    .ails = b->r.ails,
                                    .draining = b->draining,
                                    .recovery = c->recovery,
                                    .claims = b->claims,
                                    .n_claims = b->n_claims };
}

static void elect(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    struct election_input in = input_of(b, c);
    struct election e;
    if (b->r.state.version < 0)
        return;
    if (state_is_led(&b->r.state, b->live, b->n_live)) {
        b->leaderless_version = -1;
    } else if (b->leaderless_version != b->r.state.version) {
        b->leaderless_version = b->r.state.version;
        b->leaderless_since = c->now_ms;
    }
    in.leaderless_ms = b->leaderless_version < 0 ? 0 : c->now_ms - b->leaderless_since;
    election_decide(&in, &e);
    decide_more(c, who, &e);
}

static void on_view(struct core *c, int who, int32_t at)
{
    struct core_broker *b = &c->b[who];
    const struct core_view *v = &c->views[at];
    if (b->enlisting && c->registered[who]) { /* the answer to that comes first */
        push_own(c, 1, EV_VIEW, who, at, 0);
        return;
    }
    if (v->live_sequence >= b->live_sequence) {
        memcpy(b->live, v->live, sizeof b->live);
        b->n_live = v->n_live;
        b->live_sequence = v->live_sequence;
    }
    memcpy(b->claims, v->claims, sizeof b->claims);
    b->n_claims = v->n_claims;
    if (replica_set_state(&b->r, &c->history[v->version]) == REPLICA_OLD)
        core_mark(CORE_MARK_old_state_refused);
    look(c, who);
}

/* ---- the log ---- */
static void sync_soon(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (!c->commit) {
        replica_flushed(&b->r, b->log.n);
        return;
    }
    if (b->syncing || b->log.synced == b->log.n)
        return;
    b->syncing = true;
    push_own(c, rnd_log(&c->disk, 1, 40), EV_SYNCED, who, b->log.n, (int32_t)b->cuts);
}

static void on_synced(struct core *c, int who, int32_t to, uint32_t cuts)
{
    struct core_broker *b = &c->b[who];
    b->syncing = false;
    if (cuts == b->cuts) {
        b->log.synced = to;
        replica_flushed(&b->r, to);
    }
    sync_soon(c, who);
    if (replica_follows(&b->r))
        ask_soon(c, who, 1);
}

static void append(struct core *c, int who, struct core_record r, bool is_leader)
{
    struct core_broker *b = &c->b[who];
    b->log.at[b->log.n] = r;
    b->log.n++;
    if (is_leader)
        core_truth_made(c, who, b->log.n - 1);
    else
        core_truth_copied(c, who, b->log.n - 1);
}

static void on_produce(struct core *c)
{
    int leaders[CORE_BROKERS], n = 0;
    if (c->now_ms < c->heal_ms + CORE_LAG_MS / 2)
        push(c, rnd_log(&c->client, 5, 120), EV_PRODUCE, 0, 0, 0, 0);
    for (int i = 0; i < c->n_brokers; i++)
        if (c->b[i].running && c->b[i].paused_until <= c->now_ms && replica_leads(&c->b[i].r))
            leaders[n++] = i;
    if (n == 0)
        return;
    int who = leaders[rnd_below(&c->client, (uint64_t)n)];
    struct core_broker *b = &c->b[who];
    if (!replica_has_min_isr(&b->r)) {
        core_mark(CORE_MARK_not_enough_replicas);
        if (rnd_one_in(&c->client, 2)) /* else it comes with acks=1 */
            return;
    }
    for (int k = (int)rnd_range(&c->client, 1, 2); k > 0 && b->log.n < CORE_LOG; k--)
        append(c, who, (struct core_record){ b->r.state.leader_epoch, ++c->n_ids }, true);
    replica_appended(&b->r, b->log.n);
    sync_soon(c, who);
}

static int32_t last_epoch_of(const struct core_log *l)
{
    return l->n == 0 ? -1 : l->at[l->n - 1].epoch;
}

/* Where the records of epochs up to `epoch` end, and the last of those epochs; -1 none. */
static int32_t end_of_epoch(const struct core_log *l, int32_t epoch, int32_t *ret_epoch)
{
    int32_t n = l->n;
    while (n > 0 && l->at[n - 1].epoch > epoch)
        n--;
    *ret_epoch = n == 0 ? -1 : l->at[n - 1].epoch;
    return n;
}

static void cut_log(struct core *c, int who, int32_t n)
{
    struct core_log *l = &c->b[who].log;
    core_truth_cut(c, who, n, l->n);
    l->n = n;
    l->synced = MIN(l->synced, n);
    c->b[who].cuts++;
}

/* ---- fetching ---- */
static void ask_soon(struct core *c, int who, int64_t in_ms)
{
    if (!c->b[who].asking)
        push_own(c, in_ms, EV_ASK, who, 0, 0);
}

static void send_message(struct core *c, const struct core_message *m, bool is_answer)
{
    int from = is_answer ? m->to : m->from, to = is_answer ? m->from : m->to;
    if (c->link_cut_until[from][to] > c->now_ms || !c->b[to].up)
        return;
    uint32_t at = c->n_messages++ % CORE_MESSAGES;
    c->messages[at] = *m;
    int64_t in_ms = delay(&c->net);
    if (in_ms > 100)
        core_mark(CORE_MARK_message_overtaken);
    push_own(c, in_ms, is_answer ? EV_ANSWER : EV_FETCH, to, (int32_t)at, 0);
}

static void ask(struct core *c, int who, bool is_repair)
{
    struct core_broker *b = &c->b[who];
    struct core_message m;
    if (b->r.state.leader < 1 || b->r.state.leader == b->id)
        return;
    m.from = who;
    m.to = b->r.state.leader - 1;
    m.be = b->r.be;
    m.epoch = b->r.state.leader_epoch;
    m.offset = b->log.n;
    m.last_epoch = last_epoch_of(&b->log);
    m.is_repair = is_repair;
    m.n = 0;
    b->asking = !is_repair;
    b->asked_ms = c->now_ms;
    send_message(c, &m, false);
}

static void on_ask(struct core *c, int who)
{
    const struct core_broker *b = &c->b[who];
    if (replica_follows(&b->r) && !b->asking && b->r.fleo == b->r.leo)
        ask(c, who, false);
}

static void on_fetch(struct core *c, int who, int32_t at)
{
    struct core_broker *b = &c->b[who];
    struct core_message m = c->messages[at];
    int32_t own_epoch;
    if (!b->running)
        return;
    enum kerr err = replica_fetch_check(&b->r, m.from + 1, m.be, m.epoch);
    if (err == KERR_FENCED_LEADER_EPOCH)
        core_mark(CORE_MARK_fetch_of_an_old_epoch);
    if (err == KERR_UNKNOWN_LEADER_EPOCH)
        core_mark(CORE_MARK_fetch_of_a_new_epoch);
    if (err == KERR_STALE_BROKER_EPOCH)
        core_mark(CORE_MARK_fetch_of_an_old_incarnation);
    m.bad = err != KERR_NONE;
    m.diverges = false;
    m.hw = (int32_t)b->r.hw;
    m.n = 0;
    m.bad = m.bad || (m.is_repair && b->ails);
    if (!m.bad && m.is_repair) {
        m.n = b->log.n;
        memcpy(m.records, b->log.at, (size_t)m.n * sizeof m.records[0]);
    } else if (!m.bad) {
        m.their_end = end_of_epoch(&b->log, m.last_epoch, &own_epoch);
        m.their_epoch = own_epoch;
        m.diverges = m.offset > b->log.n || (m.offset > 0 && b->log.at[m.offset - 1].epoch != m.last_epoch);
    }
    if (!m.bad && !m.is_repair && !m.diverges) {
        core_truth_fetched(c, who, &m);
        int64_t hw = b->r.hw;
        replica_follower_fetched(&b->r, m.from + 1, m.be, m.offset, c->now_ms);
        if (b->r.hw > hw && b->r.state.leader_epoch < core_register(c)->leader_epoch)
            core_mark(CORE_MARK_zombie_moves_hw);
        m.n = (int32_t)rnd_range(&c->net, 1, CORE_BATCH);
        m.n = MIN(m.n, b->log.n - m.offset);
        if (b->ails && m.offset <= b->ails_at)
            m.n = MIN(m.n, b->ails_at - m.offset);
        memcpy(m.records, &b->log.at[m.offset], (size_t)m.n * sizeof m.records[0]);
    }
    send_message(c, &m, true);
}

static void follow_cut(struct core *c, int who, const struct core_message *m)
{
    struct core_broker *b = &c->b[who];
    int32_t own_epoch, own_end = end_of_epoch(&b->log, m->their_epoch, &own_epoch), cut_epoch = -1;
    int32_t n = (int32_t)replica_cut_at(&b->r, own_end, m->their_end);
    if (n >= b->log.n) /* nothing is left to part from */
        return;
    for (int32_t i = n; i < b->log.n; i++)
        cut_epoch = MAX(cut_epoch, b->log.at[i].epoch);
    core_say(c, "broker %d cuts its log from %d to %d", b->id, b->log.n, n);
    core_mark(CORE_MARK_cut);
    if (b->cut_in == b->r.state.leader_epoch)
        core_mark(CORE_MARK_cut_twice_in_an_epoch);
    b->cut_in = b->r.state.leader_epoch;
    bool below = n < b->r.hw;
    cut_log(c, who, n);
    if (!replica_truncated(&b->r, n, cut_epoch))
        core_fail(c, "R13", "broker %d was told to cut at %d, below its watermark", b->id, n);
    if (below)
        core_mark(CORE_MARK_cut_below_hw_after_recovery);
}

static void follow_append(struct core *c, int who, const struct core_message *m)
{
    struct core_broker *b = &c->b[who];
    replica_agreed(&b->r);
    for (int32_t i = 0; i < m->n && b->log.n < CORE_LOG; i++)
        append(c, who, m->records[i], false);
    replica_appended(&b->r, b->log.n);
    sync_soon(c, who);
    replica_learn_hw(&b->r, m->hw);
}

static void take_repaired(struct core *c, int who, const struct core_message *m)
{
    struct core_broker *b = &c->b[who];
    if (m->bad || b->r.state.leader_epoch != m->epoch || !replica_repaired(&b->r, m->n, m->n, m->hw))
        return;
    memcpy(b->log.at, m->records, (size_t)m->n * sizeof m->records[0]);
    b->log.n = b->log.synced = m->n;
    b->cuts++;
    b->is_damaged = false;
    core_mark(CORE_MARK_repaired);
    core_say(c, "broker %d has a new log of %d records", b->id, m->n);
    ask_soon(c, who, 1);
}

/* Or with none, or what is left of its own. */
static void begin_anew(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    int32_t n = b->id == 2 ? 0 : b->log.n; /* what is left is a beginning of what there was */
    if (!replica_repaired(&b->r, n, n, 0))
        return;
    b->log.n = b->log.synced = n;
    b->cuts++;
    b->is_damaged = false;
    core_mark(CORE_MARK_began_anew);
    if (b->n_claims > 0) /* what it said of its log is not so any more */
        push_own(c, delay(&c->store), EV_CLAIM, who, 0, 0);
    ask_soon(c, who, 1);
}

/* Inside it was bad: from there on it is copied. */
static void mend(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (!replica_may_be_repaired(&b->r) || b->r.state.leader < 1 || b->r.state.leader == b->id)
        return;
    core_truth_mended(c, who);
    if (!replica_repaired(&b->r, b->ails_at, b->ails_at, b->r.hw))
        return;
    b->log.n = b->log.synced = b->ails_at;
    b->cuts++;
    b->ails = false;
    core_mark(CORE_MARK_mended);
    ask_soon(c, who, 1);
}

static void on_answer(struct core *c, int who, int32_t at)
{
    struct core_broker *b = &c->b[who];
    const struct core_message *m = &c->messages[at];
    if (!b->running)
        return;
    if (m->is_repair) {
        take_repaired(c, who, m);
        return;
    }
    b->asking = false;
    if (m->bad) {
        ask_soon(c, who, 30);
        return;
    }
    if (!(m->diverges ? replica_may_cut : replica_may_use_answer)(&b->r, m->epoch, m->offset)) {
        core_mark(CORE_MARK_answer_of_no_use);
        ask_soon(c, who, 1);
        return;
    }
    core_truth_used(c, who, m);
    if (m->diverges)
        follow_cut(c, who, m);
    else
        follow_append(c, who, m);
    ask_soon(c, who, m->diverges || m->n > 0 ? 1 : rnd_log(&c->net, 8, 100));
}

/* ---- a broker's life ---- */
static void enlist_soon(struct core *c, int who, int64_t in_ms)
{
    if (!c->b[who].enlisting)
        push_own(c, in_ms, EV_ENLIST, who, 0, 0);
    c->b[who].enlisting = true;
}

static void end_life(struct core *c, int who, int64_t session_ms, int64_t down_ms)
{
    struct core_broker *b = &c->b[who];
    b->up = b->running = b->asking = b->syncing = b->draining = b->enlisting = false;
    b->life++;
    b->cuts++;
    push(c, session_ms, EV_SESSION_OVER, who, 0, (int32_t)c->session[who], 0);
    push(c, down_ms, EV_START, who, 0, 0, 0);
}

static void on_start(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (b->up || (who == c->dead_for_ever && c->now_ms >= c->heal_ms))
        return;
    b->up = true;
    b->life++;
    b->live_sequence = -1;
    b->n_live = b->n_claims = 0;
    b->leaderless_version = -1;
    b->cut_in = -1;
    b->log.synced = b->log.n; /* recovery syncs what it has found */
    enlist_soon(c, who, 1);
}

static void on_enlisted(struct core *c, int who, int64_t be)
{
    struct core_broker *b = &c->b[who];
    b->enlisting = false;
    push_own(c, 1, EV_READ, who, 0, 0);
    if (!c->registered[who]) /* that session is over already */
        enlist_soon(c, who, 1);
    if (b->running) { /* a new session of the same process */
        replica_set_broker_epoch(&b->r, be);
        return;
    }
    int32_t n = b->is_damaged ? 0 : b->log.n;
    replica_init(&b->r, b->id, be, n, n, b->is_damaged ? 0 : b->hw_saved);
    replica_set_min_isr(&b->r, c->min_isr);
    if (b->is_damaged)
        replica_damage(&b->r);
    if (b->ails)
        replica_ail(&b->r);
    b->running = true;
    push_own(c, rnd_range(&c->disk, 1, CORE_LAG_MS / 4), EV_TICK, who, 0, 0);
}

static void note_proposal(const struct core_broker *b, const struct state_change *ch)
{
    const struct partition_state *was = &b->r.state;
    bool joined = false, left = false;
    for (int32_t i = 0; i < ch->to.n_isr; i++) {
        int32_t at = state_isr_index(was, ch->to.isr[i]);
        joined |= at < 0;
        if (at >= 0 && was->isr_be[at] != ch->to.isr_be[i])
            core_mark(ch->to.isr_be[i] == 0 ? CORE_MARK_confessed : CORE_MARK_believed_again);
    }
    for (int32_t i = 0; i < was->n_isr; i++)
        left |= state_isr_index(&ch->to, was->isr[i]) < 0;
    if (b->ails && replica_leads(&b->r) && ch->to.leader != b->id)
        core_mark(CORE_MARK_ailing_leader_stepped_down);
    if (joined)
        core_mark(CORE_MARK_isr_expanded);
    if (left)
        core_mark(CORE_MARK_isr_shrunk);
    if (joined && left && ch->to.n_isr == b->min_isr_floor)
        core_mark(CORE_MARK_swapped_at_the_floor);
}

static void on_tick(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    struct replica_tick t = { .now_ms = c->now_ms, .lag_max_ms = CORE_LAG_MS, .live = b->live, .n_live = b->n_live };
    struct state_change ch;
    push_own(c, rnd_range(&c->disk, CORE_LAG_MS / 8, CORE_LAG_MS / 4), EV_TICK, who, 0, 0);
    if (replica_tick(&b->r, &t, &ch)) {
        note_proposal(b, &ch);
        send_change(c, who, &ch, ELECTION_NOTHING);
    }
    if (replica_leads(&b->r) && b->r.dead_mask != 0 && b->r.state.n_isr == b->min_isr_floor)
        core_mark(CORE_MARK_a_dead_member_at_the_floor);
    if (replica_leads(&b->r) && !replica_hw_is_current(&b->r))
        core_mark(CORE_MARK_hw_not_current);
    if (b->asking && c->now_ms - b->asked_ms > 200)
        b->asking = false; /* the answer does not come, or comes late */
    if (b->r.role == REPLICA_DAMAGED && b->ails && !b->is_damaged)
        mend(c, who);
    else if (b->r.role == REPLICA_DAMAGED && b->id % 2 == 0)
        begin_anew(c, who);
    else if (b->r.role == REPLICA_DAMAGED)
        ask(c, who, true);
    else
        on_ask(c, who);
    if (rnd_one_in(&c->disk, 3) && b->r.role != REPLICA_DAMAGED)
        b->hw_saved = (int32_t)b->r.hw;
    elect(c, who);
}

/* ---- faults ---- */
static void lose_power(struct core *c, int who, int64_t down_ms)
{
    struct core_broker *b = &c->b[who];
    struct core_log *l = &b->log;
    if (c->commit) {
        int32_t n = (int32_t)rnd_range(&c->disk, l->synced, l->n);
        if (n < l->n)
            core_mark(CORE_MARK_unsynced_records_lost);
        l->n = n;
    } else if (core_may_lose(c, who)) {
        int32_t n = (int32_t)rnd_range(&c->disk, rnd_one_in(&c->disk, 2) ? 0 : MAX(0, l->n - 6), l->n);
        if (n < l->n)
            core_mark(CORE_MARK_unsynced_records_lost);
        l->n = n;
        b->is_unproven = true;
        core_mark(CORE_MARK_restarted_unproven);
    }
    l->synced = MIN(l->synced, l->n);
    b->ails = b->ails && b->ails_at < l->n;
    end_life(c, who, CORE_SESSION_MS, down_ms);
}

static void be_killed(struct core *c, int who, int64_t down_ms)
{
    struct core_broker *b = &c->b[who];
    if (!c->commit && rnd_one_in(&c->disk, 2) && core_may_lose(c, who)) { /* all is there, which nobody can prove */
        b->is_unproven = true;
        core_mark(CORE_MARK_restarted_unproven);
    }
    end_life(c, who, CORE_SESSION_MS, down_ms);
}

static void get_damaged(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (b->is_damaged || !core_may_lose(c, who))
        return;
    b->is_damaged = true;
    b->owned_up = false;
    b->log.n = b->log.synced = (int32_t)rnd_below(&c->disk, (uint64_t)b->log.n + 1);
    b->ails = false; /* it is all one */
    b->cuts++;
    core_mark(CORE_MARK_synced_records_lost);
    if (!b->running)
        return; /* found at the start */
    core_mark(replica_leads(&b->r) ? CORE_MARK_damaged_leader : CORE_MARK_damaged_follower);
    replica_damage(&b->r);
    c->hw_seen[who] = b->r.hw;
}

static void begin_to_ail(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    if (b->is_damaged || b->ails || b->log.n == 0 || c->lossy || !core_may_lose(c, who))
        return;
    b->ails = true;
    b->ails_at = (int32_t)rnd_below(&c->disk, (uint64_t)b->log.n);
    if (!b->running)
        return; /* found at the start */
    core_mark(replica_leads(&b->r) ? CORE_MARK_ailing_leader : CORE_MARK_ailing_follower);
    replica_ail(&b->r);
}

static void be_preferred(struct core *c, int who)
{
    struct core_broker *b = &c->b[who];
    struct election_input in = input_of(b, c);
    struct state_change ch;
    if (!replica_leads(&b->r) || !election_to_preferred(&in, &ch) || !replica_has_all(&b->r, ch.to.leader))
        return;
    core_mark(CORE_MARK_given_to_the_preferred);
    send_change(c, who, &ch, ELECTION_HAND_OVER);
}

static void expire(struct core *c, int who, int64_t heard_ms)
{
    if (!c->registered[who])
        return;
    core_mark(CORE_MARK_session_expired);
    on_session_over(c, who, c->session[who]);
    enlist_soon(c, who, heard_ms);
}

static void on_fault(struct core *c, int at)
{
    const struct core_fault *f = &c->plan.faults[at];
    int who = (int)f->a % c->n_brokers;
    struct core_broker *b = &c->b[who];
    core_say(c, "fault: %s %d %lld %lld", core_fault_names[f->kind], who + 1, (long long)f->b, (long long)f->c);
    if (f->kind == CORE_LINK) {
        c->link_cut_until[who][f->c % c->n_brokers] = c->now_ms + f->b;
        return;
    }
    if (f->kind == CORE_AIL) {
        begin_to_ail(c, who);
        return;
    }
    if (f->kind == CORE_DAMAGE) {
        get_damaged(c, who);
        return;
    }
    if (!b->up || !b->running)
        return;
    switch (f->kind) {
    case CORE_KILL:
        be_killed(c, who, f->b);
        break;
    case CORE_CUT:
        lose_power(c, who, f->b);
        break;
    case CORE_STOP:
        b->draining = true;
        elect(c, who);
        push_own(c, 100, EV_STOPPED, who, (int32_t)f->b, 0);
        break;
    case CORE_PAUSE:
        b->paused_until = c->now_ms + f->b;
        if (f->b > CORE_SESSION_MS)
            expire(c, who, f->b);
        break;
    case CORE_EXPIRE:
        expire(c, who, f->b);
        break;
    case CORE_AWAY:
        b->away_until = c->now_ms + f->b;
        if (f->b > CORE_SESSION_MS)
            expire(c, who, f->b);
        break;
    case CORE_UNKNOWN:
        b->next_write = (int)f->c % 3;
        b->late_ms = f->b;
        break;
    case CORE_PREFER:
        be_preferred(c, who);
        break;
    default:
        break;
    }
}

static void on_heal(struct core *c)
{
    memset(c->link_cut_until, 0, sizeof c->link_cut_until);
    for (int i = 0; i < c->n_brokers; i++) {
        struct core_broker *b = &c->b[i];
        b->next_write = -1;
        b->away_until = MIN(b->away_until, c->now_ms);
        b->paused_until = MIN(b->paused_until, c->now_ms);
        if (i == c->dead_for_ever && b->up)
            end_life(c, i, CORE_SESSION_MS, c->end_ms);
        else if (!b->up)
            push(c, 1, EV_START, i, 0, 0, 0);
    }
    if (c->dead_for_ever >= 0)
        core_mark(CORE_MARK_a_broker_never_came_back);
}

/* ---- a run ---- */
static void handle(struct core *c, const struct core_event *e)
{
    struct core_broker *b = &c->b[e->who];
    if (e->life != 0 && (e->life != b->life || !b->up))
        return;
    if (e->life != 0 && b->paused_until > c->now_ms) {
        push(c, b->paused_until - c->now_ms, (enum event_kind)e->kind, e->who, e->life, e->x, e->y);
        return;
    }
    switch ((enum event_kind)e->kind) {
    case EV_FAULT:
        on_fault(c, e->x);
        break;
    case EV_HEAL:
        on_heal(c);
        break;
    case EV_START:
        on_start(c, e->who);
        break;
    case EV_STOPPED:
        end_life(c, e->who, 1, e->x);
        break;
    case EV_ENLIST:
        on_enlist(c, e->who);
        break;
    case EV_ENLISTED:
        on_enlisted(c, e->who, e->x);
        break;
    case EV_SESSION_OVER:
        on_session_over(c, e->who, (uint32_t)e->x);
        break;
    case EV_READ:
        on_read(c, e->who);
        break;
    case EV_WRITE:
        on_write(c, e->x, e->y != 0);
        break;
    case EV_FETCH:
        on_fetch(c, e->who, e->x);
        break;
    case EV_ANSWER:
        on_answer(c, e->who, e->x);
        break;
    case EV_SYNCED:
        on_synced(c, e->who, e->x, (uint32_t)e->y);
        break;
    case EV_PRODUCE:
        on_produce(c);
        break;
    case EV_VIEW:
    case EV_TICK:
    case EV_ELECT:
    case EV_WRITTEN:
    case EV_CLAIM:
    case EV_ASK:
        if (!b->running)
            break;
        if (e->kind == EV_VIEW)
            on_view(c, e->who, e->x);
        else if (e->kind == EV_TICK)
            on_tick(c, e->who);
        else if (e->kind == EV_ELECT)
            elect(c, e->who);
        else if (e->kind == EV_WRITTEN)
            on_written(c, e->who, e->x, e->y);
        else if (e->kind == EV_CLAIM)
            on_claim(c, e->who);
        else
            on_ask(c, e->who);
        break;
    }
}

static void begin_broker(struct core *c, int i)
{
    struct core_broker *b = &c->b[i];
    *b = (struct core_broker){ .id = i + 1, .life = 1, .up = true, .running = true, .next_write = -1, .leaderless_version = -1, .cut_in = -1 };
    c->be[i] = c->base[i] = 1;
    c->registered[i] = true;
    c->session[i] = 1;
    c->hw_seen[i] = 0;
    replica_init(&b->r, b->id, 1, 0, 0, 0);
    replica_set_min_isr(&b->r, c->min_isr);
    b->min_isr_floor = MIN(c->min_isr, c->n_brokers);
    push_own(c, rnd_range(&c->disk, 1, CORE_LAG_MS / 4), EV_TICK, i, 0, 0);
}

static void begin_register(struct core *c)
{
    struct partition_state *s = &c->history[0];
    memset(s, 0, sizeof *s);
    s->leader = 1;
    s->leader_be = 1;
    s->n_replicas = s->n_isr = c->n_brokers;
    for (int i = 0; i < c->n_brokers; i++) {
        s->replicas[i] = s->isr[i] = i + 1;
        s->isr_be[i] = 1;
    }
    c->version = 0;
}

static void draw_settings(struct core *c, uint64_t seed)
{
    struct rnd r = rnd_of(seed, RND_SWARM, 0);
    static const int sizes[] = { 3, 3, 3, 4, 5 };
    static const enum recovery recoveries[] = { RECOVERY_MANUAL, RECOVERY_BALANCED, RECOVERY_BALANCED, RECOVERY_PROACTIVE };
    c->n_brokers = sizes[rnd_below(&r, 5)];
    c->min_isr = (int32_t)(rnd_one_in(&r, 3) ? rnd_range(&r, 1, 3) : 2);
    c->commit = rnd_one_in(&r, 2);
    c->lossy = rnd_one_in(&r, 6);
    c->recovery = recoveries[rnd_below(&r, 4)];
    c->heal_ms = rnd_range(&r, 1000, 4000);
    c->end_ms = c->heal_ms + 20 * CORE_LAG_MS;
    c->dead_for_ever = rnd_one_in(&r, 6) && c->min_isr < c->n_brokers ? (int)rnd_below(&r, (uint64_t)c->n_brokers) : -1;
}

void core_plan_of(uint64_t seed, struct core_plan *ret)
{
    static struct core c;
    draw_settings(&c, seed);
    core_plan_draw(ret, seed, c.n_brokers, c.heal_ms - 1);
}

static void begin(struct core *c, const struct core_plan *plan, bool trace)
{
    uint64_t seed = plan->seed;
    c->plan = *plan;
    c->trace = trace;
    c->now_ms = 0;
    c->n_events = 0;
    c->n_messages = c->n_requests = c->n_views = 0;
    c->n_under_way = 0;
    c->n_claims = 0;
    c->live_sequence = 0;
    c->full = false;
    memset(c->link_cut_until, 0, sizeof c->link_cut_until);
    for (int i = 0; i < CORE_REQUESTS; i++)
        c->requests[i].under_way = false;
    c->net = rnd_of(seed, RND_LINK, 0);
    c->store = rnd_of(seed, RND_SOCKETS, 0);
    c->disk = rnd_of(seed, RND_DISK, 0);
    c->client = rnd_of(seed, RND_CLIENT, 0);
    c->order = rnd_of(seed, RND_ORDER, 0);
    draw_settings(c, seed);
    begin_register(c);
    for (int i = 0; i < c->n_brokers; i++)
        begin_broker(c, i);
    core_truth_begin(c);
    changed(c);
    push(c, 20, EV_PRODUCE, 0, 0, 0, 0);
    push(c, c->heal_ms, EV_HEAL, 0, 0, 0, 0);
    for (int i = 0; i < plan->n; i++)
        push(c, plan->faults[i].at_ms, EV_FAULT, 0, 0, i, 0);
    core_say(c, "%d brokers, min.insync.replicas %d, policy %s, recovery %d%s, healed at %lld ms", c->n_brokers, c->min_isr,
             c->commit ? "commit" : "async", (int)c->recovery, c->lossy ? ", everybody may lose" : "", (long long)c->heal_ms);
}

bool core_run(struct core *c, const struct core_plan *plan, bool trace)
{
    if (setjmp(failed) != 0)
        return false;
    begin(c, plan, trace);
    while (c->n_events > 0 && !c->full) {
        struct core_event e = pop(c);
        if (e.at > c->end_ms)
            break;
        c->now_ms = e.at;
        handle(c, &e);
        core_truth_step(c);
        if (c->steps % 32 == 0 && c->now_ms > c->heal_ms + CORE_LAG_MS && core_truth_is_settled(c))
            break;
    }
    if (!c->full)
        core_truth_end(c);
    return true;
}
