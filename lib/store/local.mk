# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libstore.a
%C%_libstore_a_SOURCES = \
	%D%/checkpoint.c %D%/checkpoint.h \
	%D%/clean.c %D%/clean.h %D%/clean_int.h \
	%D%/clean_filter.c \
	%D%/clean_manifest.c \
	%D%/clean_map.c %D%/clean_map.h \
	%D%/clean_marks.c %D%/clean_marks.h \
	%D%/clean_range.c \
	%D%/clean_swap.c \
	%D%/clean_txns.c \
	%D%/datadir.c %D%/datadir.h %D%/datadir_int.h \
	%D%/datadir_dirs.c \
	%D%/entries.c %D%/entries.h \
	%D%/epochs.c %D%/epochs.h \
	%D%/flush_mark.c %D%/flush_mark.h \
	%D%/flush.c \
	%D%/io.c %D%/io.h \
	%D%/listing.c \
	%D%/locate.c \
	%D%/logscan.c %D%/logscan.h \
	%D%/metafiles.c %D%/metafiles.h \
	%D%/plog.c %D%/plog.h %D%/plog_int.h \
	%D%/plog_check.c %D%/plog_check.h \
	%D%/plog_checkpoint.c \
	%D%/plog_copy.c \
	%D%/plog_read.c \
	%D%/plog_retain.c \
	%D%/plog_mark.c \
	%D%/plog_mend.c \
	%D%/plog_scan.c \
	%D%/plog_scrub.c %D%/plog_scrub.h \
	%D%/plog_text.c \
	%D%/segcheck.c \
	%D%/plog_time.c \
	%D%/plog_truncate.c \
	%D%/producers.c %D%/producers.h \
	%D%/ranks.h \
	%D%/rebuild.c \
	%D%/register_files.c %D%/register_files.h \
	%D%/register_journal.c %D%/register_journal.h \
	%D%/recover.c %D%/recover.h \
	%D%/recover_cut.c \
	%D%/recover_sealed.c \
	%D%/recover_scan.c \
	%D%/recover_state.c \
	%D%/reserve.c %D%/reserve.h \
	%D%/segfile.c %D%/segfile.h \
	%D%/segindex.c \
	%D%/segload.c \
	%D%/segment.c %D%/segment.h \
	%D%/start_mark.c %D%/start_mark.h
