/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time-out of what is asked of brokers, for everybody together: it counts from when they were first missed, so that calls
 * which wait for each other (appends into one file, the questions of one open) do not wait for a time-out each.
 *
 *   M1  Who asks while they are missed waits until the time-out of the first is over.
 *   M2  Who comes later is a probe: it waits a moment, together with all that come meanwhile.
 *   M3  Who comes right after a probe that failed has its answer.
 *   M4  An answer of any broker ends all that, whichever of the mount's two clients it was for: what that of the writer
 *       has heard, that of the readers need not find out by failing once more.
 * Loop's thread.
 */
#include "fuse/base/mount.h"

#define PROBE_MS       1000 /* as long as a broker may need that has come back */
#define PROBE_FRESH_MS 200  /* so long one that failed answers for those behind it */
#define AT_ONCE_MS     20
#define KNOWN_MS       1000 /* missed for so long: what is known has to do */

static int64_t deadline_ms(struct mount *m, int64_t missed_since_ms)
{
    int64_t now = loop_now_ms(m->loop), timeout = m->opt->timeout_ms, end = missed_since_ms + timeout;
    if (missed_since_ms == 0)
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

/* Of one client: since when it misses brokers that the other has not heard either; 0: not. */
static int64_t missed_since_ms(const struct mount *m, const struct client *c)
{
    int64_t since = client_missing_since_ms(c);
    return since == 0 ? 0 : MAX(since, MAX(client_heard_ms(m->client), client_heard_ms(m->writer)));
}

int64_t mount_deadline_ms(struct mount *m)
{
    return deadline_ms(m, missed_since_ms(m, m->client));
}

int64_t mount_append_deadline_ms(struct mount *m)
{
    int64_t writer = missed_since_ms(m, m->writer), reader = missed_since_ms(m, m->client);
    return deadline_ms(m, writer == 0 || reader == 0 ? writer + reader : MIN(writer, reader));
}

bool mount_misses_brokers(const struct mount *m)
{
    int64_t since = missed_since_ms(m, m->client);
    return since != 0 && since + KNOWN_MS < loop_now_ms(m->loop);
}
