/* SPDX-License-Identifier: Apache-2.0 */
/* One process of COMMAND: its input, its environment, its end. */
#include "unit.h"
#include "world.h"

#include <sys/wait.h>
#include <unistd.h>

#include "src/run.h"

struct fixture {
    struct loop *lp;
    struct child c;
    sigset_t mask;
    bool ended;
    int status;
};

static void on_ended(struct child *c, int status)
{
    struct fixture *f = container_of(c, struct fixture, c);
    f->ended = true;
    f->status = status;
    assert_int_equal(c->pid, 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->lp = loop_new(test_world());
    sigprocmask(SIG_BLOCK, NULL, &f->mask);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    loop_free(f->lp);
    free(f);
    return 0;
}

static const char *const no_env[] = { NULL };

static int start(struct fixture *f, const char *script, struct kstr input, const char *const *env)
{
    static const char *command[4];
    command[0] = "sh";
    command[1] = "-c";
    command[2] = script;
    f->c = (struct child){
        .command = (char *const *)(uintptr_t)command, .input = input, .env = env, .ended = on_ended
    };
    return child_start(f->lp, &f->c, &f->mask);
}

static int exit_status(struct fixture *f, const char *script, struct kstr input, const char *const *env)
{
    assert_int_equal(start(f, script, input, env), 0);
    f->ended = false;
    while (!f->ended)
        loop_run_once(f->lp, -1);
    return WIFEXITED(f->status) ? WEXITSTATUS(f->status) : -WTERMSIG(f->status);
}

static void it_gets_its_input_whole_and_its_status_is_told(void **state)
{
    struct fixture *f = *state;
    char big[200000];
    memset(big, 'x', sizeof big);
    assert_int_equal(exit_status(f, "read -r a; read -r b; [ \"$a $b\" = 'one two' ] && exit 5",
                                 kstr_of("one\ntwo\n"), no_env),
                     5);
    assert_int_equal(exit_status(f, "[ $(wc -c) = 200000 ]", kstr_bytes(big, sizeof big), no_env), 0);
    assert_int_equal(exit_status(f, "[ -z \"$(cat)\" ]", kstr_of(""), no_env), 0);
}

static void nobody_can_change_its_input(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(exit_status(f, "echo x 2>/dev/null >&0; [ \"$(cat)\" = one ]", kstr_of("one\n"), no_env),
                     0);
}

static void its_environment_has_ours_and_more(void **state)
{
    struct fixture *f = *state;
    const char *const env[] = { "KLOG_A=1 2", "KLOG_B=", NULL };
    setenv("KLOG_A", "old", 1);
    setenv("KLOG_C", "kept", 1);
    assert_int_equal(exit_status(f, "[ \"$KLOG_A|${KLOG_B-none}|$KLOG_C\" = '1 2||kept' ]", kstr_of(""), env),
                     0);
    assert_string_equal(getenv("KLOG_A"), "old");
}

static void it_has_a_process_group_of_its_own_and_signals_reach_all_of_it(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(start(f, "sleep 1000 & sleep 1000", kstr_of(""), no_env), 0);
    assert_int_equal(getpgid(f->c.pid), f->c.pid);
    child_signal(&f->c, SIGTERM);
    while (!f->ended)
        loop_run_once(f->lp, -1);
    assert_true(WIFSIGNALED(f->status));
    assert_int_equal(WTERMSIG(f->status), SIGTERM);
}

static void what_cannot_be_run_is_told_at_once(void **state)
{
    struct fixture *f = *state;
    const char *missing[] = { "no-such-command-anywhere", NULL }, *not_executable[] = { "/etc/passwd", NULL };
    assert_int_equal(start(f, "true", kstr_of(""), no_env), 0);
    while (!f->ended)
        loop_run_once(f->lp, -1);
    f->ended = false;
    f->c.command = (char *const *)(uintptr_t)missing;
    assert_int_equal(child_start(f->lp, &f->c, &f->mask), -ENOENT);
    f->c.command = (char *const *)(uintptr_t)not_executable;
    assert_int_equal(child_start(f->lp, &f->c, &f->mask), -EACCES);
    loop_run_once(f->lp, 0);
    assert_false(f->ended);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left */
    assert_int_equal(errno, ECHILD);
}

static void statuses_are_told_in_words(void **state)
{
    char text[64];
    (void)state;
    assert_string_equal(child_status_text(3 << 8, text, sizeof text), "exit status 3");
    assert_string_equal(child_status_text(9, text, sizeof text), "killed by signal 9");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(it_gets_its_input_whole_and_its_status_is_told),
        T(nobody_can_change_its_input),
        T(its_environment_has_ours_and_more),
        T(it_has_a_process_group_of_its_own_and_signals_reach_all_of_it),
        T(what_cannot_be_run_is_told_at_once),
        cmocka_unit_test(statuses_are_told_in_words),
    };
    return RUN(tests);
}
