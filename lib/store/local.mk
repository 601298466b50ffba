# SPDX-License-Identifier: Apache-2.0
# noinst_LIBRARIES += %D%/libstore.a   comes with the first source
