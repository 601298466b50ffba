/* SPDX-License-Identifier: Apache-2.0 */
/* Where replicas go: leaders in turn, followers spread, racks apart. */
#include "unit.h"

#include "daemon/meta/cluster.h"
#include "daemon/meta/placement.h"

enum { N_MAX = 8 };

static void make(struct cluster_broker *b, int n, const char *const *racks)
{
    for (int i = 0; i < n; i++)
        b[i] = (struct cluster_broker){ .id = i + 1, .rack = racks == NULL ? NULL : (char *)(uintptr_t)racks[i] };
}

static void one_broker_has_all(void **state)
{
    (void)state;
    struct cluster_broker b[1];
    int32_t ids[1];

    make(b, 1, NULL);
    struct placement *p = placement_new(b, 1, 12345);
    for (int32_t id = 0; id < 5; id++) {
        placement_of(p, id, 1, ids);
        assert_int_equal(ids[0], 1);
    }
    placement_free(p);
}

/* Five brokers, three replicas: as Kafka's documentation shows it, with the first leader on broker 1. */
static void replicas_go_round(void **state)
{
    (void)state;
    static const int32_t expected[10][3] = { { 1, 2, 3 }, { 2, 3, 4 }, { 3, 4, 5 }, { 4, 5, 1 }, { 5, 1, 2 },
                                             { 1, 3, 4 }, { 2, 4, 5 }, { 3, 5, 1 }, { 4, 1, 2 }, { 5, 2, 3 } };
    struct cluster_broker b[5];
    int32_t ids[3];

    make(b, 5, NULL);
    struct placement *p = placement_new(b, 5, 0);
    for (int32_t id = 0; id < 10; id++) {
        placement_of(p, id, 3, ids);
        assert_memory_equal(ids, expected[id], sizeof ids);
    }
    placement_free(p);
}

static int rack_of(const char *const *racks, int32_t id)
{
    return racks[id - 1][0];
}

/* Whatever the seed: no broker twice, every rack once before any twice, leaders and replicas even. */
static void racks_are_apart(void **state)
{
    (void)state;
    static const char *const racks[] = { "a", "a", "b", "b", "c", "c" };
    struct cluster_broker b[6];

    make(b, 6, racks);
    for (uint32_t seed = 0; seed < 40; seed++) {
        struct placement *p = placement_new(b, 6, seed);
        int led[N_MAX] = { 0 }, held[N_MAX] = { 0 };
        for (int32_t id = 0; id < 36; id++) {
            int32_t ids[4];
            placement_of(p, id, 4, ids);
            led[ids[0]]++;
            for (int i = 0; i < 4; i++) {
                held[ids[i]]++;
                for (int k = 0; k < i; k++) {
                    assert_int_not_equal(ids[i], ids[k]);
                    assert_true(i == 3 || rack_of(racks, ids[i]) != rack_of(racks, ids[k]));
                }
            }
        }
        for (int i = 1; i <= 6; i++) {
            assert_int_equal(led[i], 6);
            assert_in_range(held[i], 20, 28);
        }
        placement_free(p);
    }
}

/* One broker without a rack: racks are not looked at, nobody is left out. */
static void racks_count_only_when_all_have_one(void **state)
{
    (void)state;
    static const char *const racks[] = { "a", NULL, "a" };
    struct cluster_broker b[3];
    int32_t ids[3];

    make(b, 3, racks);
    struct placement *p = placement_new(b, 3, 0);
    placement_of(p, 0, 3, ids);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 2);
    assert_int_equal(ids[2], 3);
    placement_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_broker_has_all),
        cmocka_unit_test(replicas_go_round),
        cmocka_unit_test(racks_are_apart),
        cmocka_unit_test(racks_count_only_when_all_have_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
