# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libclient.a
%C%_libclient_a_SOURCES = \
	%D%/assign.c %D%/assign.h \
	%D%/call.c %D%/client.c %D%/client.h %D%/client_int.h %D%/coordinator.c %D%/fetch.c %D%/fetch.h \
	%D%/link.c %D%/member.c %D%/member.h %D%/member_beat.c %D%/member_commit.c %D%/member_int.h \
	%D%/member_join.c %D%/member_plan.c %D%/positions.c %D%/positions.h \
	%D%/metadata.c %D%/producer.c %D%/producer.h %D%/producer_batch.c %D%/producer_flow.c \
	%D%/producer_int.h %D%/reading.c %D%/reading.h %D%/records.c %D%/records.h %D%/sync.c %D%/sync.h
