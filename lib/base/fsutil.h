/* SPDX-License-Identifier: Apache-2.0 */
/* Files, read and written whole. All return 0 or a count, or -errno; EINTR is retried. Any thread; all may block. */
#ifndef KLOG_BASE_FSUTIL_H
#define KLOG_BASE_FSUTIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lib/base/buf.h"

int fs_write_all(int fd, const void *p, size_t n);
int fs_pread_full(int fd, void *p, size_t n, off_t at);      /* count read, short only at the end of the file */
int fs_read_file(int dirfd, const char *name, size_t max, struct bytebuf *ret); /* -EFBIG when larger than max */
int fs_remove_tree(int dirfd, const char *name);             /* rm -r; 0 if it is not there */
/* Opens those of the descriptors 0 to 2 that are closed, before a file or a connection gets such a number and log lines
 * are written into it. Writing to them fails as before. */
void fs_hold_std_fds(void);

#endif
