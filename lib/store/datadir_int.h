/* SPDX-License-Identifier: Apache-2.0 */
/* What the logs of a directory share with it; inside lib/store only. */
#ifndef KLOG_STORE_DATADIR_INT_H
#define KLOG_STORE_DATADIR_INT_H

#include "lib/store/datadir.h"
#include "lib/store/segfile.h"

struct filecache *datadir_files(struct datadir *dd);
/* rc of something that empties the disk: true when it is worth trying again, with what was kept back. */
bool datadir_spend_reserve(struct datadir *dd, int rc);
/* partition.metadata of DIR/name (Kafka's text): the topic id. -ENOENT, -errno, or as partition_metadata_decode(). */
int partition_metadata_read(const struct store_io *io, int dirfd, const char *name, struct uuid *ret);
/* sync: else it is on the disk only when the file system is synced. */
int partition_metadata_write(const struct store_io *io, int dirfd, const char *name, const struct uuid *id, bool sync);
/* Removes DIR/name and whatever is in it; follows no links. 0 also when it is not there. Blocks. */
int datadir_remove_tree(const struct store_io *io, int dirfd, const char *name);
/* "orders-0" -> "orders", 0. False for other names. */
bool partition_name_parse(const char *name, char *ret_topic, size_t size, int32_t *ret_partition);

#endif
