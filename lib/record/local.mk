# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/librecord.a
%C%_librecord_a_SOURCES =
