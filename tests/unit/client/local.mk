# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_client %D%/test_producer
%C%_test_client_SOURCES = %D%/test_client.c tests/lib/fakebroker.c tests/lib/fakebroker.h
%C%_test_client_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_client_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_producer_SOURCES = %D%/test_producer.c tests/lib/fakebroker.c tests/lib/fakebroker.h
%C%_test_producer_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_producer_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
