/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time-out of what is asked of brokers, for everybody together: it counts from when they were first missed, so that calls
 * which wait for each other (appends into one file, the questions of one open) do not wait for a time-out each. They are
 * missed since the first question, or append, that nothing has come for: one moment for the whole mount, whichever of its two
 * clients that was. Loop's thread. Rules:
 *   M1  Who asks while they are missed waits until the time-out of the first is over.
 *   M2  Who comes later is a probe: it waits a moment, together with all that come meanwhile.
 *   M3  Who comes right after a probe that failed has its answer.
 *   M4  An answer of any broker ends all that, whichever client it was for: what the writer has heard, the readers need not
 *       find out by failing once more, and the other way round.
 */
#include "fuse/base/missed.h"

#include "fuse/base/mount.h"

#define PROBE_MS       1000 /* as long as a broker may need that has come back */
#define PROBE_FRESH_MS 200  /* so long one that failed answers for those behind it */
#define AT_ONCE_MS     20
#define KNOWN_MS       1000 /* missed for so long: what is known has to do */
/* Programs that set O_NONBLOCK for the descriptor of a log (haproxy) drop what gets EAGAIN, so one that only waits for a
 * connection or a busy machine is waited for; not while the brokers are missed. */
#define NONBLOCK_WAIT_MS        500
#define NONBLOCK_WAIT_MISSED_MS 20

/* Since when brokers are missed; 0: they are not. */
static int64_t missed_since_ms(const struct mount *m)
{
    int64_t asked = client_missing_since_ms(m->client), wrote = client_missing_since_ms(m->writer);
    int64_t heard = MAX(client_heard_ms(m->client), client_heard_ms(m->writer)); /* M4 */
    if (asked == 0 && wrote == 0)
        return 0;
    int64_t first = asked == 0 || wrote == 0 ? asked + wrote : MIN(asked, wrote);
    return MAX(first, heard);
}

static bool missed_for(const struct mount *m, int64_t ms)
{
    int64_t since = missed_since_ms(m);
    return since != 0 && since + ms <= loop_now_ms(m->loop);
}

int64_t mount_deadline_ms(struct mount *m)
{
    int64_t since = missed_since_ms(m);
    int64_t now = loop_now_ms(m->loop), timeout = m->opt->timeout_ms, end = since + timeout;
    if (since == 0)
        return now + timeout;
    if (end > now) { /* M1 */
        m->probe_end_ms = end;
        return end;
    }
    if (m->probe_end_ms > now)
        return m->probe_end_ms;
    if (m->probe_end_ms + PROBE_FRESH_MS > now) { /* M3 */
        m->probe_end_ms = now;
        return now + AT_ONCE_MS;
    }
    m->probe_end_ms = now + MIN(PROBE_MS, timeout); /* M2 */
    return m->probe_end_ms;
}

int64_t mount_nonblock_wait_ms(const struct mount *m)
{
    return missed_for(m, NONBLOCK_WAIT_MS) ? NONBLOCK_WAIT_MISSED_MS : NONBLOCK_WAIT_MS;
}

/* An append may wait long for a slow disk, and says nothing of questions: as long as none is open, the next one is asked. */
bool mount_misses_brokers(const struct mount *m)
{
    return client_missing_since_ms(m->client) != 0 && missed_for(m, KNOWN_MS);
}
