/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of a partition and the places in them (rules X1 and X2 of ptext.h): what open files share, what they keep, and where
 * they go on when the log has moved under them.
 */
#include "unit.h"

#include "fuse/base/mount.h"
#include "fuse/partition/pfile.h"

struct fixture {
    struct mount m;
    struct pfile f;
};

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);

    text_cache_init(&x->m.texts, TEXT_CACHE_MAX);
    x->f = (struct pfile){ .mount = &x->m, .ends_known = true, .ends = { .start_text = 100, .end_text = 500 } };
    x->f.plain.file = &x->f;
    LIST_INIT(&x->f.texts);
    LIST_INIT(&x->f.lenses);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;

    ptext_unref(x->f.plain.text);
    assert_true(LIST_EMPTY(&x->f.texts));
    text_cache_done(&x->m.texts);
    free(x);
    return 0;
}

static struct text_place place_at(int64_t at, int64_t offset)
{
    return (struct text_place){ .at = at, .edge = { at, offset } };
}

static void a_base_that_is_held_stays_and_others_are_led_to_a_new_text(void **state)
{
    struct fixture *x = *state;
    struct ptext *t = ptext_ref(ptext_now(&x->f.plain));

    ptext_opened(t);
    assert_int_equal(ptext_base(t), 100);
    x->f.ends.start_text = 200; /* retention */
    assert_int_equal(ptext_base(t), 100);
    assert_int_equal(ptext_size(t), 400);
    struct ptext *now = ptext_now(&x->f.plain);
    assert_ptr_not_equal(now, t);
    assert_int_equal(ptext_base(now), 200);
    assert_int_equal(ptext_size(now), 300);
    ptext_closed(t);
    ptext_unref(t);
}

static void a_text_that_nobody_holds_begins_where_the_log_does(void **state)
{
    struct fixture *x = *state;
    struct ptext *t = ptext_now(&x->f.plain);

    assert_int_equal(ptext_base(t), 100);
    x->f.ends.start_text = 200;
    assert_ptr_equal(ptext_now(&x->f.plain), t);
    assert_int_equal(ptext_base(t), 200);
}

static void places_move_when_positions_do(void **state)
{
    struct fixture *x = *state;
    struct text_place p = place_at(300, 7), unbegun = { .at = -1, .edge = TEXT_EDGE_NONE };

    p.jumps = calloc(1, sizeof *p.jumps);
    p.jumps[0] = (struct text_jump){ 0, 10, 150 };
    p.n_jumps = 1;
    place_lead(&p, ptext_now(&x->f.plain));
    place_lead(&unbegun, ptext_now(&x->f.plain));
    ptexts_shift(&x->f, 40);
    assert_int_equal(p.at, 340);
    assert_int_equal(p.edge.at, 340);
    assert_int_equal(p.edge.offset, 7);
    assert_int_equal(p.jumps[0].at, 190);
    assert_int_equal(p.jumps[0].to, 10); /* a position of the file, which stays */
    assert_int_equal(unbegun.at, -1);
    assert_int_equal(unbegun.edge.at, -1);
    place_done(&p);
    place_done(&unbegun);
}

static void who_had_read_beyond_a_lost_tail_goes_on_where_it_began(void **state)
{
    struct fixture *x = *state;
    struct text_place before = place_at(200, 3), behind = place_at(450, 9);

    place_lead(&before, ptext_now(&x->f.plain));
    place_lead(&behind, ptext_now(&x->f.plain));
    ptexts_lost(&x->f, 400, 8);
    assert_int_equal(before.at, 200);
    assert_int_equal(before.edge.offset, 3);
    assert_int_equal(behind.at, 400);
    assert_int_equal(behind.edge.at, 400);
    assert_int_equal(behind.edge.offset, 8);
    place_done(&before);
    place_done(&behind);
}

static void an_open_file_keeps_its_positions_when_the_tail_is_lost(void **state)
{
    struct fixture *x = *state;
    struct ptext *t = ptext_ref(ptext_now(&x->f.plain));

    ptext_opened(t);
    assert_int_equal(ptext_size(t), 400);
    ptexts_lost(&x->f, 300, 8);
    x->f.ends.end_text = 320; /* and other records came */
    assert_int_equal(ptext_size(t), 420);
    assert_int_equal(ptext_place(t, 199), 299);
    assert_int_equal(ptext_place(t, 200), -1);
    assert_int_equal(ptext_place(t, 399), -1);
    assert_int_equal(ptext_place(t, 400), 300);
    ptext_closed(t);
    ptext_unref(t);
}

static void a_place_keeps_its_text_until_it_is_led_to_another(void **state)
{
    struct fixture *x = *state;
    struct text_place p = place_at(300, 7);
    struct ptext *first = ptext_now(&x->f.plain);

    place_lead(&p, first);
    place_lead(&p, first);
    assert_int_equal(first->refs, 2);
    ptexts_moved(&x->f, 500);
    struct ptext *second = ptext_now(&x->f.plain);
    assert_ptr_not_equal(second, first);
    assert_ptr_equal(p.text, first);
    assert_false(ptext_is_sure(first, 499));
    assert_true(ptext_is_sure(first, 500));
    place_lead(&p, second); /* the last reference on the first one goes */
    assert_ptr_equal(LIST_FIRST(&x->f.texts), second);
    assert_null(LIST_NEXT(second, link));
    place_done(&p);
}

static void the_answer_to_a_long_poll_counts_though_somebody_has_asked_meanwhile(void **state)
{
    struct fixture *x = *state;
    struct topic topic = { .refs = 1 };
    struct ends grown = x->f.ends, older = x->f.ends;

    x->f.key.topic = &topic;
    x->f.ends_ns = 2000;
    grown.end_text = 600;
    grown.end_offset = 6;
    ends_set(&x->f, &grown, 1000);
    assert_int_equal(x->f.ends.end_text, 600);
    assert_int_equal(x->f.ends_ns, 2000);
    older.end_offset = 5;
    ends_set(&x->f, &older, 1500);
    assert_int_equal(x->f.ends.end_offset, 6);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_answer_to_a_long_poll_counts_though_somebody_has_asked_meanwhile),
        T(a_base_that_is_held_stays_and_others_are_led_to_a_new_text),
        T(a_text_that_nobody_holds_begins_where_the_log_does),
        T(places_move_when_positions_do),
        T(who_had_read_beyond_a_lost_tail_goes_on_where_it_began),
        T(an_open_file_keeps_its_positions_when_the_tail_is_lost),
        T(a_place_keeps_its_text_until_it_is_led_to_another),
    };
    return RUN(tests);
}
