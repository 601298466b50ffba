/* SPDX-License-Identifier: Apache-2.0 */
/* A path that is read; see stream.h. One thread. */
#include "src/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* Written at once. */
#define WRITE_BYTES (1024 * 1024)

static void on_ready(void *arg)
{
    struct stream *st = arg;
    st->woken = true;
}

void stream_open(struct session *s, const struct path *p, const struct view *v, struct stream *ret)
{
    size_t n;
    const int32_t *partitions = path_partitions(s, p, &n);
    *ret = (struct stream){ .s = s, .path = p, .woken = true };
    const struct reading_config cfg = { .topic = p->at.topic,
                                        .topic_id = p->topic_id,
                                        .partitions = partitions,
                                        .n_partitions = n,
                                        .view = *v,
                                        .now_ms = clock_wall_ms(),
                                        .timeout_ms = s->timeout_ms,
                                        .ready = on_ready,
                                        .arg = ret };
    ret->reading = reading_new(s->client, &cfg);
}

void stream_close(struct stream *st)
{
    reading_free(st->reading);
    bytebuf_done(&st->text);
}

static int stream_fail(const struct stream *st, int rc, int32_t partition)
{
    const struct path *p = st->path;
    const char *why = rc == -EIO         ? "damage on the broker's disk (klog verify tells more)"
                      : rc == -ENOENT    ? "the topic is gone"
                      : rc == -ETIMEDOUT ? "no answer within --timeout"
                                         : strerror(-rc);
    complain(st->s->args, "%s: p%" PRId32 ": %s", p->text, partition, why);
    return STREAM_FAILED;
}

int stream_look(struct stream *st)
{
    int32_t partition = -1;
    int rc = reading_next(st->reading, WRITE_BYTES, &st->text, &partition);
    st->woken = rc != READING_WAIT;
    switch (rc) {
    case READING_MORE:
        return STREAM_SOME;
    case READING_WAIT:
        return STREAM_NONE;
    case READING_END:
        return STREAM_END;
    default:
        return stream_fail(st, rc, partition);
    }
}

int stream_next(struct stream *st)
{
    int rc;
    while ((rc = stream_look(st)) == STREAM_NONE) {
        while (!st->woken)
            loop_run_once(st->s->loop, -1);
    }
    return rc;
}

bool stream_write(struct stream *st)
{
    for (size_t at = 0; at < st->text.n;) {
        ssize_t n = write(STDOUT_FILENO, st->text.p + at, st->text.n - at);
        if (n < 0 && errno != EINTR) {
            st->error = errno;
            return false;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    st->text.n = 0;
    return true;
}

int stream_status(const struct stream *st, int ended)
{
    if (st->error != 0)
        complain(st->s->args, "standard output: %s", strerror(st->error));
    return st->error != 0 || ended == STREAM_FAILED ? CLI_FAILED : CLI_OK;
}
