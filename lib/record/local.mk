# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/librecord.a
%C%_librecord_a_SOURCES = \
	%D%/batch.c %D%/batch.h \
	%D%/build.c %D%/build.h \
	%D%/codec.c %D%/codec.h %D%/codec_int.h \
	%D%/codec_gzip.c %D%/codec_lz4.c %D%/codec_snappy.c %D%/codec_zstd.c \
	%D%/iter.c %D%/iter.h \
	%D%/recompress.c \
	%D%/record_parse.h \
	%D%/validate.c
%C%_librecord_a_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS) $(ZLIB_CFLAGS) $(LZ4_CFLAGS) $(ZSTD_CFLAGS) $(SNAPPY_CFLAGS)
