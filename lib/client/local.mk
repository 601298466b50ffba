# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libclient.a
%C%_libclient_a_SOURCES = \
	%D%/call.c %D%/client.c %D%/client.h %D%/client_int.h %D%/coordinator.c %D%/fetch.c %D%/fetch.h \
	%D%/link.c %D%/metadata.c %D%/producer.c %D%/producer.h %D%/producer_batch.c %D%/producer_flow.c \
	%D%/producer_int.h %D%/sync.c %D%/sync.h
