# SPDX-License-Identifier: Apache-2.0
# The simulated world. libsimdisk.a alone is a disk for tests of the store.
check_LIBRARIES += %D%/libsimdisk.a
%C%_libsimdisk_a_SOURCES = %D%/rand.h %D%/simdisk.c %D%/simdisk.h %D%/simdisk_cut.c %D%/simdisk_file.c %D%/simdisk_int.h %D%/simdisk_names.c

UNIT_TESTS += %D%/test_simdisk
%C%_test_simdisk_SOURCES = %D%/test_simdisk.c
%C%_test_simdisk_CPPFLAGS = $(UNIT_CPPFLAGS)
%C%_test_simdisk_LDADD = %D%/libsimdisk.a $(LIBS_STORE) $(CMOCKA_LIBS)
