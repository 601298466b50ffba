/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and contents of a data directory's files; see offline.h. Nothing here changes a file or takes a
 * lock, so that it may be used beside a running broker. A file is read whole, up to OFFLINE_FILE_MAX; what
 * is longer is refused before memory is taken for it. One thread.
 */
#include "src/offline.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fsutil.h"
#include "lib/store/segment.h"

enum { BASE_DIGITS = 20 };

bool segment_name_parse(const char *name, int64_t *ret_base, const char **ret_suffix)
{
    char digits[BASE_DIGITS + 1];

    for (int i = 0; i < BASE_DIGITS; i++) {
        if (!isdigit((unsigned char)name[i]))
            return false;
        digits[i] = name[i];
    }
    digits[BASE_DIGITS] = '\0';
    *ret_suffix = name + BASE_DIGITS;
    return args_int(digits, 0, INT64_MAX, ret_base);
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

bool offline_read(const struct args *a, const char *path, struct bytebuf *ret)
{
    int rc = fs_read_file(AT_FDCWD, path, OFFLINE_FILE_MAX, ret);

    if (rc < 0)
        complain(a, "%s: %s", path, strerror(-rc));
    return rc >= 0;
}
