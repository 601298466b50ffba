#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the model of a partition for spin (Promela): partition.py [NAME=NUMBER...] [--drop RULE] [--commit]

Three brokers, one register with compare-and-set, every step possible at any time: records, cuts by epochs, fetches whose answers
are lost, watermarks, changes of the in-sync set that are applied later or never, elections at any moment (so leaders that do not
know yet that they are none), losses of power with any tail of the log, restarts with nothing lost, damage and its repair. The rules
are those of daemon/replica/README.md; --drop leaves one out, and the model must then fail. What is asserted:

  - a committed record is on each elected leader, and no other is committed in its place (R18)
  - same offset and epoch, same record (R14)
  - with fewer losses than min.insync.replicas some member provably has everything (R8, R18); under --commit always
  - who has owned up to damage does not count as complete before it has been repaired

Numbers: LEN records in a log, IDS records made, EPOCHS leader epochs, LOSSES losses of power, BOUNCES restarts that lose nothing,
CHANGES of the in-sync set, UNKNOWN outcomes of which are not known, DAMAGES, MIN_ISR. Bits of masks are brokers.

One process of unrolled atomic steps: spin is fast with that, and a step is a line of the error's trail.
"""
import sys

N = 3
NONE = 7  # has not fetched in this epoch

numbers = dict(LEN=2, IDS=2, EPOCHS=2, LOSSES=1, BOUNCES=0, CHANGES=2, UNKNOWN=0, DAMAGES=0, MIN_ISR=2)
dropped, commit = set(), False
args = sys.argv[1:]
while args:
    a = args.pop(0)
    if a == "--drop":
        dropped.add(args.pop(0))
    elif a == "--commit":
        commit = True
    else:
        name, value = a.split("=")
        assert name in numbers, name
        numbers[name] = int(value)
LEN = numbers["LEN"]
FLOOR = 1 if "R8" in dropped else numbers["MIN_ISR"]
lines = []


def bit(b):
    return 1 << b


def count(mask):
    return "((%s & 1) + ((%s >> 1) & 1) + ((%s >> 2) & 1))" % (mask, mask, mask)


def epoch_at(b, i):
    return "log_epoch[%s]" % (b * LEN + i if isinstance(i, int) else "%d + %s" % (b * LEN, i))


def id_at(b, i):
    return "log_id[%s]" % (b * LEN + i if isinstance(i, int) else "%d + %s" % (b * LEN, i))


def seen_leo(leader, f):
    return "seen_leo[%d]" % (leader * N + f)


def seen_be(leader, f):
    return "seen_be[%d]" % (leader * N + f)


def step(what, guard, body):
    lines.append("  /* %s */\n  :: d_step { %s -> %s }" % (what, guard, body))


def when(cond, body):
    return "if :: %s -> %s :: else fi; " % (cond, body)


def reported(f):
    """What a follower's fetch says it has, and a leader counts for itself (R5)."""
    return "synced[%d]" % f if commit else "leo[%d]" % f


def claim_holds(b):
    """R11: the register's claim is of an incarnation that has kept everything since; damage is known to the broker itself."""
    return "true" if "R11" in dropped else "(claim[%d] == inc[%d] && !damaged[%d])" % (b, b, b)


def max_isr(b):
    return "isr[%d]" % b if "R4" in dropped else "(isr[%d] | pending[%d])" % (b, b)


def forget_followers(b):
    return "".join("%s = %d; %s = 0; " % (seen_leo(b, f), NONE, seen_be(b, f)) for f in range(N) if f != b)


def forget_memory(b):
    """Of a process that ended. Requests that it sent may still be applied."""
    return ("role[%d] = 0; epoch[%d] = 0; isr[%d] = 0; pending[%d] = 0; leso[%d] = 0; agreed[%d] = 0; version[%d] = 0; "
            % ((b,) * 7) + forget_followers(b))


def cut(b, n):
    """The log is cut to n records (a number or a variable)."""
    text = "".join(when("leo[%d] > %d && %s <= %d" % (b, k, n, k), "%s = 0; %s = 0" % (epoch_at(b, k), id_at(b, k))) for k in range(LEN))
    if commit:
        text += when("synced[%d] > %s" % (b, n), "synced[%d] = %s" % (b, n))
    return text + "leo[%d] = %s; " % (b, n) + when("hw[%d] > %s" % (b, n), "hw[%d] = %s" % (b, n))


def holds_committed(b):
    return "".join("assert(n_committed <= %d || (leo[%d] > %d && %s == committed[%d])); " % (k, b, k, id_at(b, k), k) for k in range(LEN))


def fetches(f, leader):
    """R6: both in one epoch."""
    return "role[%d] == 2 && role[%d] == 1" % (f, leader) + ("" if "R6" in dropped else " && epoch[%d] == epoch[%d]" % (f, leader))


def declare():
    lines.append("""/* role: 0 none, 1 leads, 2 follows, 3 damaged */
byte r_leader = 0, r_leader_be = 0, r_epoch = 1, r_version = 1, r_isr = 7; /* the register */
byte claim[3], inc[3]; /* broker epoch of which the register's claim is, and the broker's own */
byte leo[3], synced[3], hw[3], epoch[3], role[3], version[3], isr[3], pending[3], leso[3], agreed[3];
bool damaged[3], owned_up[3]; byte damaged_in[3];
byte log_epoch[%d], log_id[%d], seen_leo[9], seen_be[9];
byte q[3], q_who[3], q_version[3], q_be[3]; /* a request under way: 1 joins, 2 leaves, 3 changes nothing */
byte u[3], u_who[3], u_version[3], u_be[3]; /* one of which the sender does not know the outcome */
byte committed[%d], n_committed = 0, ids = 0, losses = 0, bounces = 0, changes = 0, unknowns = 0, damages = 0;
active proctype all() { byte n;
  d_step { role[0] = 1; role[1] = 2; role[2] = 2; epoch[0] = 1; epoch[1] = 1; epoch[2] = 1; version[0] = 1; version[1] = 1; version[2] = 1;
    isr[0] = 7; agreed[1] = 1; agreed[2] = 1; %s }
end: do""" % (N * LEN, N * LEN, LEN, "".join(forget_followers(b) for b in range(N))))


def records():
    for b in range(N):
        step("%d makes a record" % b, "role[%d] == 1 && leo[%d] < %d && ids < %d" % (b, b, LEN, numbers["IDS"]),
             "ids++; %s = epoch[%d]; %s = ids; leo[%d]++" % (epoch_at(b, "leo[%d]" % b), b, id_at(b, "leo[%d]" % b), b))
        if commit:
            step("%d syncs" % b, "synced[%d] < leo[%d]" % (b, b), "synced[%d] = leo[%d]" % (b, b))


def following(f, leader):
    if "R12" in dropped:
        common = "n = hw[%d]; " % f
    else:
        common = "n = 0; " + "".join(
            when("n == %d && leo[%d] > %d && leo[%d] > %d && %s == %s" % (k, f, k, leader, k, epoch_at(f, k), epoch_at(leader, k)),
                 "assert(%s == %s); n = %d" % (id_at(f, k), id_at(leader, k), k + 1)) for k in range(LEN))
    step("%d finds where it parts from %d, and cuts" % (f, leader), "%s && agreed[%d] == 0" % (fetches(f, leader), f),
         common + cut(f, "n") + "agreed[%d] = 1; n = 0" % f)
    shows = "%s = %s; %s = inc[%d]; " % (seen_leo(leader, f), reported(f), seen_be(leader, f), f)
    news = "%s != %s || %s != inc[%d]" % (seen_leo(leader, f), reported(f), seen_be(leader, f), f)
    hw = "(hw[%d] < leo[%d] -> hw[%d] : leo[%d])" % (leader, f, leader, f)
    may = "%s && agreed[%d] == 1 && leo[%d] <= leo[%d]" % (fetches(f, leader), f, f, leader)
    step("%d fetches from %d, and the answer is lost" % (f, leader), "%s && (%s)" % (may, news), shows)
    step("%d fetches from %d" % (f, leader), "%s && (%s || leo[%d] < leo[%d] || hw[%d] != %s)" % (may, news, f, leader, f, hw),
         shows + when("leo[%d] < leo[%d]" % (f, leader),
                      "%s = %s; %s = %s; leo[%d]++" % (epoch_at(f, "leo[%d]" % f), epoch_at(leader, "leo[%d]" % f),
                                                     id_at(f, "leo[%d]" % f), id_at(leader, "leo[%d]" % f), f)) + "hw[%d] = %s" % (f, hw))


def watermark(b):
    own = "leo[%d]" % b if "R5" in dropped else reported(b)
    guard = "role[%d] == 1 && hw[%d] < %s && %s >= %d" % (b, b, own, count("isr[%d]" % b), numbers["MIN_ISR"])
    for f in range(N):
        if f != b:
            guard += " && (!(%s & %d) || (%s != %d && %s > hw[%d]))" % (max_isr(b), bit(f), seen_leo(b, f), NONE, seen_leo(b, f), b)
    step("the watermark of %d moves" % b, guard,
         "if :: hw[%d] < n_committed -> assert(committed[hw[%d]] == %s) :: else -> committed[n_committed] = %s; n_committed++ fi; hw[%d]++"
         % (b, b, id_at(b, "hw[%d]" % b), id_at(b, "hw[%d]" % b), b))


def has_all(b, f):
    """R9"""
    return "%s != %d && %s >= hw[%d]" % (seen_leo(b, f), NONE, seen_leo(b, f), b) + (
        "" if "R9" in dropped else " && %s >= leso[%d]" % (seen_leo(b, f), b))


def sends(b, kind, who, more):
    """R4: who joins counts before the request leaves. Dropped the other way about: who leaves counts no more at once."""
    return ("q[%d] = %d; q_who[%d] = %d; q_version[%d] = version[%d]; pending[%d] = pending[%d] | isr[%d]; changes++; " % (b, kind, b, who, b, b, b, b, b)
            + more)


def applied(b, r, q):
    """The register takes the request of b in slot q, or refuses it for good (R10: the incarnation that was seen)."""
    same = "true" if "R10" in dropped else "%s_be[%d] == inc[%d]" % (q, b, r)
    fresh = "%s_version[%d] == r_version" % (q, b)
    drop = "%s[%d] = 0; %s_who[%d] = 0; %s_version[%d] = 0; %s_be[%d] = 0" % (q, b, q, b, q, b, q, b)
    joins = "r_isr = r_isr | %d; claim[%d] = inc[%d]; assert(!(damaged[%d] && owned_up[%d])); r_version++" % (bit(r), r, r, r, r)
    step("the register has to do with the change of %d by %d" % (r, b), "%s[%d] != 0 && %s_who[%d] == %d" % (q, b, q, b, r),
         "if :: %s && %s[%d] == 2 -> r_isr = r_isr & %d; r_version++ :: %s && %s[%d] == 1 && %s -> %s :: %s && %s[%d] == 3 -> r_version++ "
         ":: else fi; %s" % (fresh, q, b, 7 - bit(r), fresh, q, b, same, joins, fresh, q, b, drop))


def changes(b):
    for f in range(N):
        if f == b:
            continue
        # also who is in sync already and not believed any more (R10)
        step("%d asks for %d to join" % (b, f), "role[%d] == 1 && q[%d] == 0 && changes < %d && %s && (!(isr[%d] & %d) || (version[%d] == r_version && claim[%d] != inc[%d]))"
             % (b, b, numbers["CHANGES"], has_all(b, f), b, bit(f), b, f, f),
             sends(b, 1, f, "pending[%d] = pending[%d] | %d; q_be[%d] = %s" % (b, b, bit(f), b, seen_be(b, f))))
        step("%d asks for %d to leave" % (b, f), "role[%d] == 1 && q[%d] == 0 && changes < %d && (isr[%d] & %d) && %s > %d"
             % (b, b, numbers["CHANGES"], b, bit(f), count("isr[%d]" % b), FLOOR),
             sends(b, 2, f, "isr[%d] = isr[%d] & %d; pending[%d] = 0" % (b, b, 7 - bit(f), b) if "R4-eager" in dropped else "skip"))
        applied(b, f, "q")
        if numbers["UNKNOWN"] > 0:
            applied(b, f, "u")
    if numbers["UNKNOWN"] > 0:
        # R3: both sets count on, and a write that follows brings about a version that decides
        step("%d does not hear what became of its request" % b, "q[%d] != 0 && q[%d] != 3 && u[%d] == 0 && unknowns < %d" % (b, b, b, numbers["UNKNOWN"]),
             "unknowns++; u[%d] = q[%d]; u_who[%d] = q_who[%d]; u_version[%d] = q_version[%d]; u_be[%d] = q_be[%d]; q[%d] = 0; q_who[%d] = 0; "
             "q_version[%d] = 0; q_be[%d] = 0" % ((b,) * 12) + ("; pending[%d] = 0" % b if "R3" in dropped else ""))
        step("%d writes what is there" % b, "role[%d] == 1 && q[%d] == 0 && pending[%d] != 0 && changes < %d" % (b, b, b, numbers["CHANGES"] + 1),
             sends(b, 3, (b + 1) % N, "skip"))


def observe(b):
    """b reads the register. A higher version decides every request that was made on top of a lower one."""
    leads = "true" if "R1" in dropped else "r_leader_be == inc[%d]" % b
    begin = "role[%d] = 1; leso[%d] = leo[%d]; isr[%d] = r_isr; " % (b, b, b, b) + ("" if "R9-table" in dropped else forget_followers(b))
    follow = "role[%d] = 2; isr[%d] = 0; leso[%d] = 0; " % (b, b, b) + forget_followers(b)
    roles = "if :: role[%d] == 3 -> skip :: role[%d] != 3 && r_leader == %d && %s -> %s :: role[%d] != 3 && r_leader == %d && !(%s) -> role[%d] = 0; isr[%d] = 0 :: else -> %s fi" % (
        b, b, b, leads, begin, b, b, leads, b, b, follow)
    step("%d reads the register" % b, "version[%d] != r_version || (role[%d] == 1 && q[%d] == 0 && u[%d] == 0 && pending[%d] != 0)" % (b, b, b, b, b),
         "version[%d] = r_version; pending[%d] = 0; if :: epoch[%d] != r_epoch -> epoch[%d] = r_epoch; agreed[%d] = 0; %s :: epoch[%d] == r_epoch && role[%d] == 1 -> isr[%d] = r_isr :: else fi"
         % (b, b, b, b, b, roles, b, b, b))


def elections(b):
    """R1: an incarnation leads in epochs of its own. R11."""
    again = "" if "R1" in dropped else " || r_leader_be != inc[%d]" % b
    step("%d is elected" % b, "(r_leader != %d%s) && (r_isr & %d) && %s && role[%d] != 3 && r_epoch < %d" % (b, again, bit(b), claim_holds(b), b, numbers["EPOCHS"]),
         "r_leader = %d; r_leader_be = inc[%d]; r_epoch++; r_version++; %s" % (b, b, holds_committed(b)))


def someone_has_all():
    return " || ".join("((r_isr & %d) && claim[%d] == inc[%d] && !damaged[%d])" % (bit(f), f, f, f) for f in range(N))


def ends(b):
    proven = when("claim[%d] == inc[%d] - 1" % (b, b), "claim[%d] = inc[%d]" % (b, b))
    least = "%d >= synced[%d]" if commit else "%d >= 0 && %d < 9"
    choices = " ".join(":: %d <= leo[%d] && %s -> n = %d" % (k, b, least % (k, b), k) for k in range(LEN + 1))
    step("%d loses power" % b, "losses < %d && !damaged[%d]" % (numbers["LOSSES"], b),
         "losses++; if %s fi; %s n = 0; inc[%d]++; %s%s assert(%s%s)"
         % (choices, cut(b, "n"), b, proven if commit else "", forget_memory(b),
            "" if commit else "losses + damages >= %d || " % numbers["MIN_ISR"], someone_has_all()))
    step("%d restarts and has lost nothing" % b, "bounces < %d && !damaged[%d]" % (numbers["BOUNCES"], b),
         "bounces++; inc[%d]++; %s hw[%d] = 0; %s" % (b, proven, b, forget_memory(b)))


def damage(b):
    if numbers["DAMAGES"] == 0:
        return
    step("%d is damaged" % b, "damages < %d && !damaged[%d] && role[%d] == 2" % (numbers["DAMAGES"], b, b),
         "damages++; damaged[%d] = 1; owned_up[%d] = 0; damaged_in[%d] = epoch[%d]; role[%d] = 3; n = 0; %s agreed[%d] = 0; "
         "assert(losses + damages >= %d || %s)" % (b, b, b, b, b, cut(b, "n"), b, numbers["MIN_ISR"], someone_has_all()))
    new_epoch = "" if "R1-damage" in dropped else "r_epoch++; "
    step("%d owns up to it" % b, "role[%d] == 3 && !owned_up[%d] && version[%d] == r_version && r_epoch < %d" % (b, b, b, numbers["EPOCHS"]),
         "owned_up[%d] = 1; claim[%d] = 9; %sr_version++" % (b, b, new_epoch))
    for leader in range(N):
        if leader == b:
            continue
        later = "true" if "R1-damage" in dropped else "epoch[%d] > damaged_in[%d]" % (b, b)
        copy = "".join("%s = %s; %s = %s; " % (epoch_at(b, k), epoch_at(leader, k), id_at(b, k), id_at(leader, k)) for k in range(LEN))
        step("%d takes the log of %d" % (b, leader), "role[%d] == 3 && owned_up[%d] && role[%d] == 1 && epoch[%d] == epoch[%d] && %s" % (b, b, leader, leader, b, later),
             copy + "leo[%d] = leo[%d]; hw[%d] = hw[%d]; role[%d] = 2; damaged[%d] = 0; agreed[%d] = 0" % (b, leader, b, leader, b, b, b))


declare()
records()
for one in range(N):
    for other in range(N):
        if one != other:
            following(one, other)
    watermark(one)
    changes(one)
    observe(one)
    elections(one)
    ends(one)
    damage(one)
lines.append("od }")
print("\n".join(lines))
