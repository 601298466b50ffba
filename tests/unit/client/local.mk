# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test_assign %D%/test_client %D%/test_member %D%/test_positions %D%/test_producer \
	%D%/test_reading %D%/test_records
FAKEBROKER = tests/lib/fakebroker.c tests/lib/fakebroker.h tests/lib/fakebroker_int.h tests/lib/fakegroup.c
%C%_test_assign_SOURCES = %D%/test_assign.c
%C%_test_assign_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_assign_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_client_SOURCES = %D%/test_client.c $(FAKEBROKER)
%C%_test_client_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_client_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_member_SOURCES = %D%/test_member.c $(FAKEBROKER)
%C%_test_member_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_member_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_positions_SOURCES = %D%/test_positions.c $(FAKEBROKER)
%C%_test_positions_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_positions_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_producer_SOURCES = %D%/test_producer.c $(FAKEBROKER)
%C%_test_producer_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_producer_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_reading_SOURCES = %D%/test_reading.c $(FAKEBROKER)
%C%_test_reading_CPPFLAGS = $(UNIT_CPPFLAGS) -I$(top_srcdir)/tests/lib
%C%_test_reading_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
%C%_test_records_SOURCES = %D%/test_records.c
%C%_test_records_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_records_LDADD = $(LIBS_CLIENT) $(CMOCKA_LIBS)
