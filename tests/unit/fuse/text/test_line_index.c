/* SPDX-License-Identifier: Apache-2.0 */
/* Which record stands where in a piece of text: against a plain list, forwards, backwards and joined. */
#include "unit.h"

#include <stdlib.h>

#include "fuse/text/line_index.h"

struct lines {
    int n;
    struct line_place l[2000];
};

static unsigned seed = 1;
static unsigned draw(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % n;
}

static void fill(struct line_index *x, struct lines *all, int n, int64_t *offset)
{
    for (int i = 0; i < n; i++) {
        int64_t at = all->n > 0 ? all->l[all->n - 1].end : 0;
        size_t bytes = 1 + draw(i % 7 == 0 ? 70000 : 200);
        *offset += i % 5 == 0 ? draw(1000) : 0;
        line_index_add(x, *offset, bytes);
        all->l[all->n++] = (struct line_place){ at, at + (int64_t)bytes, *offset };
        ++*offset;
    }
}

static void check(struct line_index *x, const struct lines *all, int i)
{
    struct line_place got;
    const struct line_place *want = &all->l[i];
    int64_t at[] = { want->begin, want->begin + draw((unsigned)(want->end - want->begin)), want->end - 1 };
    for (int j = 0; j < 3; j++) {
        assert_true(line_index_find(x, at[j], &got));
        assert_int_equal(got.begin, want->begin);
        assert_int_equal(got.end, want->end);
        assert_int_equal(got.offset, want->offset);
    }
}

static void finds_every_record(void **state)
{
    (void)state;
    struct line_index x = { 0 }, more = { 0 };
    struct lines *all = calloc(1, sizeof *all);
    struct line_place got;
    int64_t offset = 1000;
    line_index_begin(&x, offset);
    assert_false(line_index_find(&x, 0, &got));
    fill(&x, all, 300, &offset);
    for (int part = 0; part < 3; part++) { /* one that goes straight on, and two with offsets left out between */
        offset += part * 100;
        line_index_begin(&more, offset - part * 50);
        fill(&more, all, 100, &offset);
        line_index_join(&x, &more);
        assert_int_equal(x.next, offset);
    }
    for (int i = 0; i < all->n; i++)
        check(&x, all, i);
    for (int i = 0; i < 2000; i++)
        check(&x, all, (int)draw((unsigned)all->n));
    assert_false(line_index_find(&x, all->l[all->n - 1].end, &got));
    line_index_done(&x);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_record),
    };
    return RUN(tests);
}
