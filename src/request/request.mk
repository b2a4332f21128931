# SPDX-License-Identifier: GPL-2.0-only
#
# What the compiler cannot know: the rules are part of this object.

$(O)/src/request/builtin.o $(O)/asan/src/request/builtin.o: src/request/rules.txt
