/* SPDX-License-Identifier: Apache-2.0 */
/* One path that is read (lib/client/reading.h), driven by the command's loop; what goes wrong is said here. One thread. */
#ifndef KLOG_SRC_STREAM_H
#define KLOG_SRC_STREAM_H

#include "lib/base/buf.h"
#include "lib/client/reading.h"
#include "src/paths.h"

struct stream {
    struct session *s;
    const struct path *path;
    struct reading *reading;
    struct bytebuf text; /* what came last; the callee may take from it */
    bool woken;          /* there may be more */
    int error;           /* of writing, errno */
};

/* v: the path's own view, or another for it. */
void stream_open(struct session *s, const struct path *p, const struct view *v, struct stream *ret);
void stream_close(struct stream *st);

enum { STREAM_FAILED = -1, STREAM_END = 0, STREAM_SOME = 1, STREAM_NONE = 2 };
/* What is here: STREAM_SOME and text, STREAM_NONE, STREAM_END, or STREAM_FAILED after saying why. */
int stream_look(struct stream *st);
/* The same, but waits for something. */
int stream_next(struct stream *st);
/* Writes the text to standard output and empties it. False: errno is in error. */
bool stream_write(struct stream *st);
/* The exit status for how it ended; a failed write is told. */
int stream_status(const struct stream *st, int ended);

#endif
