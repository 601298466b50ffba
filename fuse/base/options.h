/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of klogfs and mount.klogfs. Read once at start; constant afterwards. */
#ifndef KLOG_FUSE_OPTIONS_H
#define KLOG_FUSE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

struct options {
    char *brokers;    /* "host:port,host:port" */
    char *mountpoint; /* absolute */
    bool foreground, debug;
    char *log_file, *pid_file; /* absolute; NULL: none */
    bool fake; /* mount -f: check everything, mount nothing */

    /* -o */
    bool ro, allow_other, async, delete_topics;
    char *uid_text, *gid_text, *umask_text;
    char *http_listener; /* HOST:PORT; "": none */
    int acks;        /* index into acks_choices */
    int compression; /* enum codec */
    double timeout_s, session_s;
    int32_t linger_ms;
    int32_t batch_size_bytes;
    struct bytebuf kernel_options; /* ",nosuid,nodev": what the kernel itself judges */

    /* worked out */
    uint32_t uid, gid; /* of everything in the mount */
    unsigned umask;
    bool modes_matter; /* the kernel is to check them: default_permissions */
    int64_t timeout_ms;
    int32_t session_timeout_ms;
    int16_t required_acks; /* -1, 0, 1 */
};

enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_BAD };

/* err gets one line for OPTIONS_BAD. */
enum options_result options_parse(int argc, char **argv, struct options *ret, char *err, size_t err_size);
void options_done(struct options *o);
void options_usage(void); /* on standard output */

#endif
