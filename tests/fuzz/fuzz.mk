# SPDX-License-Identifier: GPL-2.0-only
#
# make fuzz             each fuzzer for FUZZ_TIME seconds
# make fuzz-reader      tests/fuzz/fuzz_reader.c alone
# make fuzz-compiles    whether clang takes them all without a warning; no more than that
#
# A fuzzer is clang's libFuzzer with ASan and UBSan. It starts from tests/fuzz/corpus/NAME, keeps what
# it finds in $(O)/fuzz/NAME and leaves an input that fails as $(O)/fuzz/NAME-crash-*, which
# `$(O)/fuzz/fuzz_NAME FILE` runs again.
#
# FUZZ_TIME=600         seconds (60)

FUZZ_TIME  ?= 60
FUZZ_CC	   ?= clang
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	      -fno-omit-frame-pointer
FUZZERS	   := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

# The directories of src/ that a fuzzer needs; FUZZ_SRCS_NAME are single files.
FUZZ_DIRS_reader := base profile

fuzz_srcs = tests/fuzz/fuzz_$(1).c $(FUZZ_SRCS_$(1)) $(foreach d,$(FUZZ_DIRS_$(1)),$(sort $(wildcard src/$(d)/*.c)))

.PHONY: fuzz fuzz-compiles $(FUZZERS:%=fuzz-%)

fuzz: $(FUZZERS:%=fuzz-%)

$(FUZZERS:%=fuzz-%): fuzz-%: $(O)/fuzz/fuzz_%
	@mkdir -p $(O)/fuzz/$* tests/fuzz/corpus/$*
	$(Q)$< -max_total_time=$(FUZZ_TIME) -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
		-artifact_prefix=$(O)/fuzz/$*- $(O)/fuzz/$* tests/fuzz/corpus/$*

# Built in one go, each time that anything in src/ or tests/ changed: it takes seconds.
$(FUZZERS:%=$(O)/fuzz/fuzz_%): $(O)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(SRCS) \
		$(wildcard src/*/*.h include/*.h tests/support/*.h)
	$(say) FUZZ $@
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -Itests -Ibpf $(filter-out -MMD -MP,$(CFLAGS)) $(FUZZ_FLAGS) \
		-o $@ $(call fuzz_srcs,$*) $(LDLIBS)

fuzz-compiles:
	$(say) CC 'tests/fuzz/*.c'
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -Itests -Ibpf $(filter-out -MMD -MP -Werror,$(CFLAGS)) -Werror -fsyntax-only tests/fuzz/fuzz_*.c
