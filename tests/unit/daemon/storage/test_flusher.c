/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit without a log: entries whose flush does what the test says. Each one stops in its flush until the test
 * lets it go on, so that what comes meanwhile is exactly what the test does.
 */
#include "unit.h"
#include "world.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "daemon/storage/flusher.h"
#include "lib/base/attr.h"

enum { LANE_THREADS = 4 }; /* as many flushes of one lane run at a time */

struct thing {
    struct flush_entry e;
    sem_t entered, go;
    atomic_int flushes, refs, inside, inside_most;
    atomic_int shortages; /* so many flushes end for want of descriptors */
};

static void wait_for(sem_t *s)
{
    while (sem_wait(s) < 0)
        ;
}

static bool thing_flush(struct flush_entry *e)
{
    struct thing *t = container_of(e, struct thing, e);
    int inside = atomic_fetch_add(&t->inside, 1) + 1;
    if (inside > atomic_load(&t->inside_most))
        atomic_store(&t->inside_most, inside);
    sem_post(&t->entered);
    wait_for(&t->go);
    atomic_fetch_add(&t->flushes, 1);
    atomic_fetch_sub(&t->inside, 1);
    return atomic_load(&t->shortages) == 0 || (atomic_fetch_sub(&t->shortages, 1), false);
}

static void thing_ref(struct flush_entry *e)
{
    atomic_fetch_add(&container_of(e, struct thing, e)->refs, 1);
}

static void thing_unref(struct flush_entry *e)
{
    atomic_fetch_sub(&container_of(e, struct thing, e)->refs, 1);
}

static const struct flush_ops thing_ops = { .flush = thing_flush, .ref = thing_ref, .unref = thing_unref };

static void thing_init(struct thing *t, unsigned may_go)
{
    *t = (struct thing){ .e.ops = &thing_ops };
    sem_init(&t->entered, 0, 0);
    sem_init(&t->go, 0, may_go);
}

/* The flusher has ended: how often it was flushed, never twice at a time, and nobody holds it. */
static void thing_was_flushed(struct thing *t, int times)
{
    assert_int_equal(t->flushes, times);
    assert_true(t->inside_most <= 1);
    assert_int_equal(t->refs, 0);
    assert_true(flush_entry_is_idle(&t->e));
    sem_destroy(&t->entered);
    sem_destroy(&t->go);
}

static void what_comes_while_it_is_flushed_is_flushed_together(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t;
    thing_init(&t, 0);
    flusher_queue(f, &t.e);
    wait_for(&t.entered);
    for (int i = 0; i < 3; i++)
        flusher_queue(f, &t.e);
    sem_post(&t.go);
    wait_for(&t.entered);
    sem_post(&t.go);
    flusher_free(f);
    thing_was_flushed(&t, 2);
}

static void different_entries_are_flushed_at_the_same_time(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t[LANE_THREADS];
    for (int i = 0; i < LANE_THREADS; i++) {
        thing_init(&t[i], 0);
        flusher_queue(f, &t[i].e);
    }
    for (int i = 0; i < LANE_THREADS; i++)
        wait_for(&t[i].entered);
    for (int i = 0; i < LANE_THREADS; i++)
        sem_post(&t[i].go);
    flusher_free(f);
    for (int i = 0; i < LANE_THREADS; i++)
        thing_was_flushed(&t[i], 1);
}

static void a_busy_directory_does_not_hold_up_another(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 2);
    struct thing busy[LANE_THREADS], other;
    for (int i = 0; i < LANE_THREADS; i++) {
        thing_init(&busy[i], 0);
        flusher_queue(f, &busy[i].e);
        wait_for(&busy[i].entered);
    }
    thing_init(&other, 1);
    other.e.lane = 1;
    flusher_queue(f, &other.e);
    wait_for(&other.entered);
    for (int i = 0; i < LANE_THREADS; i++)
        sem_post(&busy[i].go);
    flusher_free(f);
    thing_was_flushed(&other, 1);
    for (int i = 0; i < LANE_THREADS; i++)
        thing_was_flushed(&busy[i], 1);
}

static void what_waits_for_its_time_is_flushed_at_the_end(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t;
    thing_init(&t, 1);
    flusher_queue_by(f, &t.e, INT64_MAX - 1);
    flusher_queue_by(f, &t.e, INT64_MAX - 1);
    assert_int_equal(t.refs, 1);
    flusher_free(f);
    thing_was_flushed(&t, 1);
}

static void what_is_due_is_flushed(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t;
    thing_init(&t, 1);
    flusher_queue_by(f, &t.e, world_mono_ms(test_world()));
    wait_for(&t.entered);
    flusher_free(f);
    thing_was_flushed(&t, 1);
}

static void who_is_forgotten_is_not_flushed(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing busy[LANE_THREADS], t;
    for (int i = 0; i < LANE_THREADS; i++) {
        thing_init(&busy[i], 0);
        flusher_queue(f, &busy[i].e);
        wait_for(&busy[i].entered);
    }
    thing_init(&t, 1);
    flusher_queue(f, &t.e);
    flusher_queue_by(f, &t.e, INT64_MAX - 1);
    assert_int_equal(t.refs, 2);
    flusher_forget(f, &t.e);
    assert_int_equal(t.refs, 0);
    for (int i = 0; i < LANE_THREADS; i++)
        sem_post(&busy[i].go);
    flusher_free(f);
    thing_was_flushed(&t, 0);
    for (int i = 0; i < LANE_THREADS; i++)
        thing_was_flushed(&busy[i], 1);
}

static void who_is_forgotten_while_it_is_flushed_is_held_until_the_end(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t;
    thing_init(&t, 0);
    flusher_queue(f, &t.e);
    wait_for(&t.entered);
    flusher_queue(f, &t.e);
    flusher_forget(f, &t.e);
    assert_int_equal(t.refs, 1);
    sem_post(&t.go);
    flusher_free(f);
    thing_was_flushed(&t, 1);
}

static void a_shortage_is_tried_again(void **state)
{
    (void)state;
    struct flusher *f = flusher_new(test_world(), 1);
    struct thing t;
    thing_init(&t, 3);
    t.shortages = 2;
    flusher_queue(f, &t.e);
    for (int i = 0; i < 3; i++)
        wait_for(&t.entered);
    flusher_free(f);
    thing_was_flushed(&t, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_while_it_is_flushed_is_flushed_together),
        cmocka_unit_test(different_entries_are_flushed_at_the_same_time),
        cmocka_unit_test(a_busy_directory_does_not_hold_up_another),
        cmocka_unit_test(what_waits_for_its_time_is_flushed_at_the_end),
        cmocka_unit_test(what_is_due_is_flushed),
        cmocka_unit_test(who_is_forgotten_is_not_flushed),
        cmocka_unit_test(who_is_forgotten_while_it_is_flushed_is_held_until_the_end),
        cmocka_unit_test(a_shortage_is_tried_again),
    };
    return RUN(tests);
}
