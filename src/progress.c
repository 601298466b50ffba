/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bar on standard error, drawn over itself; see progress.h. It is drawn at most every REDRAW_MS, however
 * often there is news, and not at all without a stream: then each call costs a comparison. Sizes are in
 * powers of 1000, three digits. Whoever prints a line meanwhile clears the bar first. One thread.
 */
#include "src/progress.h"

#include "lib/base/attr.h"
#include "lib/base/clock.h"

enum { BAR = 30, REDRAW_MS = 100 };

void progress_init(struct progress *p, FILE *f, bool show, int64_t total)
{
    *p = (struct progress){ .f = show ? f : NULL, .total = total };
}

const char *size_text(int64_t bytes, char *ret, size_t size)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    double v = (double)bytes;
    size_t unit = 0;

    for (; v >= 999.5 && unit + 1 < ARRAY_LEN(units); unit++)
        v /= 1000;
    snprintf(ret, size, unit == 0 || v >= 99.5 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return ret;
}

static void draw(struct progress *p, const char *what)
{
    int filled = p->total > 0 ? (int)(p->done * BAR / p->total) : BAR;
    char bar[BAR + 1], done[16], total[16];

    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(p->f, "\r\033[K[%s] %3d %% of %s (%s) %.40s", bar,
            p->total > 0 ? (int)(p->done * 100 / p->total) : 100, size_text(p->total, total, sizeof total),
            size_text(p->done, done, sizeof done), what);
    fflush(p->f);
    p->on_screen = true;
}

void progress_add(struct progress *p, int64_t n, const char *what)
{
    p->done = MIN(p->done + n, p->total);
    if (p->f == NULL)
        return;
    int64_t now_ms = clock_mono_ms();
    if (now_ms - p->drawn_ms < REDRAW_MS)
        return;
    p->drawn_ms = now_ms;
    draw(p, what);
}

void progress_clear(struct progress *p)
{
    if (!p->on_screen)
        return;
    fprintf(p->f, "\r\033[K");
    fflush(p->f);
    p->on_screen = false;
    p->drawn_ms = 0;
}
