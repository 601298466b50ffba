# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_batch %D%/test_codec %D%/test_clients %D%/test_validate
EXTRA_DIST += %D%/batches.h
%C%_test_batch_SOURCES = %D%/test_batch.c
%C%_test_batch_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_batch_LDADD = $(LIBS_RECORD) $(CMOCKA_LIBS)
%C%_test_codec_SOURCES = %D%/test_codec.c
%C%_test_codec_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_codec_LDADD = $(LIBS_RECORD) $(CMOCKA_LIBS)
%C%_test_validate_SOURCES = %D%/test_validate.c
%C%_test_validate_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_validate_LDADD = $(LIBS_RECORD) $(CMOCKA_LIBS)
%C%_test_clients_SOURCES = %D%/test_clients.c
%C%_test_clients_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_clients_LDADD = $(LIBS_RECORD) $(CMOCKA_LIBS)
