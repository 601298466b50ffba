/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log directories (log.dirs): opened together, under one identity, each with its share of the descriptors; and the one
 * place that says that one has failed (S8). Whoever finds an error in a log asks logdirs_note_error(), which finds out
 * whether the directory itself is to blame and tells the owner, once a directory.
 *
 * Set once by logdirs_open(), any thread afterwards. A directory is named by its index in log.dirs.
 */
#ifndef KLOG_DAEMON_LOGDIRS_H
#define KLOG_DAEMON_LOGDIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/store/datadir.h"

struct broker_config;
struct logdirs;
struct world;

/* A directory has failed: what is in it is offline until klogd is started anew. all: no other is left. Any thread, once a
 * directory; not before logdirs_open() has returned. */
typedef void logdir_failed(void *arg, int dir, bool all);

/* Opens every one of them. 0, or -errno with one line in err, and then they are as they were. Blocks. */
int logdirs_open(const struct world *w, const struct broker_config *cfg, logdir_failed *failed, void *arg,
                 struct logdirs **ret, char *err, size_t err_size);
/* dir_clean[i]: every log in it was closed clean. Returns whether each has got its clean marker. Blocks. */
bool logdirs_close(struct logdirs *ld, const bool *dir_clean);

/* Does one of log.dirs know whose it is? Before they are opened. */
bool logdirs_have_identity(const struct world *w, const struct broker_config *cfg);

int logdirs_count(const struct logdirs *ld);
struct datadir *logdirs_at(const struct logdirs *ld, int dir);
/* Whose they are: the same in each. */
const struct datadir_identity *logdirs_identity(const struct logdirs *ld);
/* Descriptors that segments may take, in all of them: at rest, or until they are flushed. */
int logdirs_segment_files(const struct logdirs *ld);
/* Each was stopped clean the last time. */
bool logdirs_were_clean(const struct logdirs *ld);

/* Says that an operation on a log in directory dir ended with -errno. True when the directory itself has failed; the owner is
 * then told. dir -1, of a log that is nowhere: false. */
bool logdirs_note_error(struct logdirs *ld, int dir, int eno);
/* The same where it is known that it has failed. */
void logdirs_fail(struct logdirs *ld, int dir, int eno);

#endif
