# SPDX-License-Identifier: GPL-2.0-only
#
# The checks that need no root. Included by the Makefile.
#
# make unit             Criterion, one runner for all of tests/unit/*.c
# make asan             the same under ASan, LSan and UBSan, in a build of its own
# make lint             every executable tests/lint/*.sh
# make check-format     clang-format
# make check-first      all of these but asan, which takes longest. `make test` runs that beside the live tests, and here
#                       only the unit tests of which it leaves something out
# make check            all of these
#
# A test that is skipped is named and counted; CI=true makes it a failure (tests/support/criterion.sh).
#
# T='buf json'          only tests/unit/test_buf.c and test_json.c
# DIRS=base             link only these directories of src/ (with T; others may not build yet)
# O=/tmp/mine           build elsewhere
# TESTFLAGS='--filter=buf/*'    for the runner

CLANG_FORMAT	?= clang-format
T		?= *
TESTFLAGS	?=

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# Half the compiler's time of -O2 -g; reports have files and lines all the same.
ASAN_CFLAGS = $(CFLAGS) -O1 -g1

# Sources with a main() of their own: Criterion brings the runner's.
MAIN_SRCS := src/cmd/main.c
TEST_SRCS := $(sort $(foreach t,$(T),$(wildcard tests/unit/test_$(t).c)))
LINK_SRCS := $(filter-out $(MAIN_SRCS),$(SRCS)) $(TEST_SRCS) tests/unit/runner.c

# Those of which a build with ASan leaves something out, or in which it takes more time than they allow.
NOT_ASAN = $(patsubst tests/unit/test_%.c,%,$(shell grep -l __SANITIZE_ADDRESS__ tests/unit/*.c))

# Recursive, so that a build without Criterion does not ask for it.
TEST_CPPFLAGS = $(CPPFLAGS) -Itests -Ibpf
# The tests themselves are not optimized: what the assertions expand to takes the compiler minutes.
TEST_CFLAGS   = $(CFLAGS) -O0 $(shell $(PKG_CONFIG) --cflags criterion)
TEST_LIBS     = $(LDLIBS) $(shell $(PKG_CONFIG) --libs criterion)

FLAME_SAMPLE := $(O)/validate/flame_sample
EXPORT_SAMPLE := $(O)/validate/export_sample
PAGES_SAMPLE := $(O)/validate/pages_sample
UNIT	  := $(O)/tests/unit
UNIT_OBJS := $(LINK_SRCS:src/%.c=$(O)/src/%.o)
UNIT_OBJS := $(UNIT_OBJS:tests/unit/%.c=$(O)/tests/obj/%.o)
ASAN_OBJS := $(LINK_SRCS:%.c=$(O)/asan/%.o)

# The tests under ASan are some programs, by the first letter of their files, since each of its thousand and more
# processes relocates, registers and searches for leaks what all the tests of its program have. None of them is a
# PIE, and UBSan's runtime is linked into them, for the same reason: together a third of their CPU time. And where a
# runner has to begin again (criterion.sh), not all tests do.
ASAN_PARTS := a-c d-g h-o p-r s-z
asan_tests  = $(filter $(TEST_SRCS),$(wildcard tests/unit/test_[$1]*.c))
ASAN	   := $(foreach i,$(ASAN_PARTS),$(if $(call asan_tests,$i),$(O)/asan/unit-$i))

.PHONY: force

# A list of objects that changes when a source appears or disappears, which dates alone do not show.
$(UNIT).list $(O)/asan/unit.list: force
	$(if $(TEST_SRCS),,$(error no tests/unit/test_*.c is named by T='$(T)'))
	@mkdir -p $(@D)
	@echo '$(LINK_SRCS)' | cmp -s - $@ || echo '$(LINK_SRCS)' > $@

$(UNIT): $(UNIT_OBJS) $(UNIT).list
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(UNIT_OBJS) $(TEST_LIBS)

$(ASAN): $(O)/asan/unit-%: $(ASAN_OBJS) $(O)/asan/unit.list
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) -static-libubsan -no-pie $(LDFLAGS) -o $@ \
		$(filter-out $(O)/asan/tests/unit/test_%,$(ASAN_OBJS)) \
		$(patsubst %.c,$(O)/asan/%.o,$(call asan_tests,$*)) $(TEST_LIBS)

$(O)/tests/obj/%.o: tests/unit/%.c
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(TEST_CFLAGS) -c -o $@ $<

$(O)/asan/src/%.o: src/%.c
	$(say) 'CC asan' $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ASAN_CFLAGS) $(SANITIZE) -c -o $@ $<

# ASan alone: it has to see what src/ does to the tests' own arrays. What UBSan adds for each assertion, and
# what of it every process of a test then relocates and searches for leaks, takes more time than all else.
$(O)/asan/tests/%.o: tests/%.c
	$(say) 'CC asan' $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(TEST_CFLAGS) -fsanitize=address -fno-omit-frame-pointer -c -o $@ $<

# As in the main build, only the engine sees the skeleton.
$(patsubst %.c,$(O)/asan/%.o,$(wildcard src/engine/*.c)): $(SKEL)

unit: $(UNIT)
	$(Q)tests/support/criterion.sh $(UNIT) $(TESTFLAGS)

# Criterion runs each test in a process of its own and does not look at how it exits once the test
# has passed, so that a leak would go unnoticed: here any report of a sanitizer is a failure, also
# one from a process that a test started, but for the note that a malloc() failed, as some tests want.
# The checked string functions measure all that follows at each call: minutes in a large picture.
QUICK_STRINGS := replace_str=0:intercept_strstr=0:intercept_strlen=0:intercept_strchr=0:intercept_strndup=0

asan: $(ASAN)
	$(Q)rm -f $(O)/asan/report.*
	$(Q)ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:$(QUICK_STRINGS):log_path=$(abspath $(O))/asan/report; \
	UBSAN_OPTIONS=print_stacktrace=1; export ASAN_OPTIONS UBSAN_OPTIONS; \
	status=0; \
	for part in $(ASAN); do \
		tests/support/criterion.sh $$part $(TESTFLAGS) || status=1; \
	done; \
	for report in $(O)/asan/report.*; do \
		if grep -qsv 'WARNING: AddressSanitizer failed to allocate' "$$report"; then \
			cat "$$report"; \
			status=1; \
		fi; \
	done; \
	exit $$status

check-format:
	$(Q)find src include bpf tests -name '*.[ch]' ! -path '*/generated/*' ! -path '*/vmlinux/*' \
		2>/dev/null | sort | xargs -r $(CLANG_FORMAT) --dry-run -Werror

lint: $(O)/rbpf.bpf.o
	$(Q)status=0; export BPF_OBJECT=$(O)/rbpf.bpf.o CLANG='$(CLANG)' BPFFLAGS='$(BPFFLAGS)'; \
	for script in tests/lint/*.sh; do \
		[ -x "$$script" ] || continue; \
		"$$script" || status=1; \
	done; exit $$status

# With the programs that only longer runs use, so that none of them stops building unnoticed.
check-first: check-format lint unit fuzz-compiles $(FLAME_SAMPLE) $(EXPORT_SAMPLE) $(PAGES_SAMPLE) $(BENCH)

check: check-first asan

-include $(UNIT_OBJS:.o=.d) $(ASAN_OBJS:.o=.d) $(FLAME_SAMPLE).d $(EXPORT_SAMPLE).d $(PAGES_SAMPLE).d

# The command line as a user sees it, the memory that views of a long recording take, and the flame graph in a real
# browser. A tool that is missing is said and
# skipped; CI has them all, so there it is a failure.
.PHONY: check-cli check-memory check-validate

check-cli: rbpf
	$(Q)RBPF=$(abspath rbpf) tests/cli/run.sh

check-memory: rbpf $(BENCH)
	$(Q)RBPF=$(abspath rbpf) tests/memory/run.sh $(O)/bench/cost_of $(O)/bench/long_recording

$(FLAME_SAMPLE) $(EXPORT_SAMPLE) $(PAGES_SAMPLE): $(O)/validate/%: tests/validate/%.c $(LIB)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

check-validate: rbpf $(FLAME_SAMPLE) $(EXPORT_SAMPLE) $(PAGES_SAMPLE)
	$(Q)FLAME_SAMPLE=$(abspath $(FLAME_SAMPLE)) tests/validate/flame.sh || { status=$$?; [ $$status = 77 ] && [ "$$CI" != true ]; }
	$(Q)PAGES_SAMPLE=$(abspath $(PAGES_SAMPLE)) tests/validate/pages.sh || { status=$$?; [ $$status = 77 ] && [ "$$CI" != true ]; }
	$(Q)PAGES_SAMPLE=$(abspath $(PAGES_SAMPLE)) tests/validate/serve.sh || { status=$$?; [ $$status = 77 ] && [ "$$CI" != true ]; }
	$(Q)EXPORT_SAMPLE=$(abspath $(EXPORT_SAMPLE)) tests/validate/export.sh || { status=$$?; [ $$status = 77 ] && [ "$$CI" != true ]; }

-include tests/live/live.mk
-include tests/hostile/hostile.mk
-include tests/kernels/kernels.mk
-include $(sort $(wildcard tests/fuzz/*.mk))
