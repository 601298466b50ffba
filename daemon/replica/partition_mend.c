/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damage inside a log, and the way back (S10): somebody meets it and suspects, whoever cares for logs (daemon/upkeep/scrubber.c)
 * checks, the replica says that it counts for nothing, and once another leads and the register says so, too, the log is cut
 * where the damage begins and copied on from the leader. Nothing is cut before. Who leads with damage and has nobody to hand
 * over to goes on: what is good of the only log there is can still be read, and a reader of the rest is told.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/replica/partition_int.h"
#include "daemon/storage/logdirs.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

void partition_suspect(struct partition *pt, int64_t offset)
{
    lock_take(&pt->mu);
    bool known = offset == pt->sound_at || (pt->damage_at >= 0 && offset >= pt->damage_at);
    bool news = !known && (pt->suspect_at < 0 || offset < pt->suspect_at);
    if (news)
        pt->suspect_at = offset;
    lock_release(&pt->mu);
    if (news)
        partitions_want_care(pt->registry);
}

int64_t partition_take_suspect(struct partition *pt)
{
    lock_take(&pt->mu);
    int64_t offset = pt->suspect_at;
    pt->suspect_at = -1;
    lock_release(&pt->mu);
    return offset;
}

void partition_is_sound(struct partition *pt, int64_t offset)
{
    lock_take(&pt->mu);
    pt->sound_at = offset;
    lock_release(&pt->mu);
}

void partition_ail(struct partition *pt)
{
    lock_assert_held(&pt->mu);
    if (pt->damage_at >= 0 && pt->log != NULL && pt->replica.state.n_replicas > 1)
        replica_ail(&pt->replica);
}

void partition_found_damage(struct partition *pt, int64_t offset, int eno)
{
    lock_take(&pt->mu);
    bool news = pt->damage_at < 0;
    bool alone = pt->replica.state.n_replicas < 2;
    if (news || offset < pt->damage_at)
        pt->damage_at = offset;
    partition_ail(pt);
    lock_release(&pt->mu);
    partition_wake_all(pt);
    if (news)
        log_error("%s: records from offset %" PRId64 " on cannot be read (%s): %s", plog_name(pt->log), offset,
                  eno == EBADMSG ? "they are damaged" : strerror(eno),
                  alone ? "there is no other replica, so that they stay as they are; klog verify names all damage"
                        : "they are copied anew from another replica, once that one leads");
}

/* Where to cut, -1: not now. */
static int64_t mend_from(struct partition *pt)
{
    lock_take(&pt->mu);
    const struct replica *r = &pt->replica;
    bool now = !pt->deleted && pt->damage_at >= 0 && pt->log != NULL && replica_may_be_repaired(r) && r->state.leader >= 0 &&
               r->state.leader != r->me && !datadir_failed(logdirs_at(pt->deps->dirs, pt->dir));
    int64_t from = now ? pt->damage_at : -1;
    lock_release(&pt->mu);
    return from;
}

static bool back_again(struct partition *pt)
{
    struct plog_ends ends;

    lock_take(&pt->mu);
    plog_ends(pt->log, &ends);
    bool ok = replica_repaired(&pt->replica, ends.end_offset, ends.flushed_offset, pt->replica.hw);
    if (ok) {
        pt->damage_at = -1;
        pt->begins_anew = false;
    }
    lock_release(&pt->mu);
    partition_wake_all(pt);
    return ok;
}

int partition_mend(struct partition *pt)
{
    lock_take(&pt->change_mu);
    int64_t from = mend_from(pt);
    int rc = from < 0 ? 0 : plog_mend(pt->log, from);
    bool done = from >= 0 && rc == 0 && back_again(pt);
    lock_release(&pt->change_mu);
    if (rc < 0 && !partition_note_error(pt, -rc))
        log_warn("%s: cannot let go of what is damaged: %s; it is tried again", plog_name(pt->log), strerror(-rc));
    if (done)
        log_info("%s: cut at offset %" PRId64 ", where damage began; the rest is copied from its leader", plog_name(pt->log), from);
    return rc < 0 ? rc : done;
}
