/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes of the kernel. Any thread; no state. */
#include <errno.h>
#include <sys/random.h>

#include "lib/base/check.h"
#include "lib/base/world.h"

static void real_fill(struct random *r, void *p, size_t n)
{
    (void)r;
    for (size_t done = 0; done < n;) {
        ssize_t k = getrandom((char *)p + done, n - done, 0);
        KCHECK(k > 0 || (k < 0 && errno == EINTR));
        done += k > 0 ? (size_t)k : 0;
    }
}

struct random random_real = { .fill = real_fill };
