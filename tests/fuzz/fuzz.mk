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
FUZZ_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	      -fno-omit-frame-pointer
FUZZERS	   := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

# All that fuzzers use of src/, compiled once: the linker takes what each one needs.
FUZZ_DIRS := base target elf worker ruby symbol profile request view ui report
FUZZ_SRCS := $(sort $(foreach d,$(FUZZ_DIRS),$(wildcard src/$(d)/*.c))) \
	     src/cmd/filter_options.c src/serve/guard.c src/serve/query.c
FUZZ_OBJS := $(FUZZ_SRCS:%.c=$(O)/fuzz/obj/%.o)
FUZZ_LIB  := $(O)/fuzz/librbpf.a

.PHONY: fuzz fuzz-compiles $(FUZZERS:%=fuzz-%)

fuzz: $(FUZZERS:%=fuzz-%)

$(FUZZERS:%=fuzz-%): fuzz-%: $(O)/fuzz/fuzz_%
	@mkdir -p $(O)/fuzz/$* tests/fuzz/corpus/$*
	$(Q)$< -max_total_time=$(FUZZ_TIME) -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
		-artifact_prefix=$(O)/fuzz/$*- $(O)/fuzz/$* tests/fuzz/corpus/$*

$(O)/fuzz/obj/%.o: %.c
	$(say) 'CC fuzz' $<
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(FUZZ_LIB): $(FUZZ_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(FUZZERS:%=$(O)/fuzz/fuzz_%): $(O)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_LIB) \
		$(wildcard tests/fuzz/*.h tests/support/*.h bpf/*.h include/*.h)
	$(say) FUZZ $@
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -Itests -Ibpf $(filter-out -MMD -MP,$(CFLAGS)) $(FUZZ_FLAGS) \
		-fsanitize=fuzzer -o $@ $< $(FUZZ_LIB) $(LDLIBS)

-include $(FUZZ_OBJS:.o=.d)

fuzz-compiles:
	$(say) CC 'tests/fuzz/*.c'
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -Itests -Ibpf $(filter-out -MMD -MP -Werror,$(CFLAGS)) -Werror -fsyntax-only tests/fuzz/fuzz_*.c
