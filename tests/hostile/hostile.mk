# SPDX-License-Identifier: GPL-2.0-only
#
# make check-hostile    processes, files and recordings that mean harm; needs root and BPF
#
# HOSTILE='maps text'   only tests/hostile/maps_test.rb and text_test.rb
# TESTOPTS='-v --name /regexp/'    for minitest
#
# Some of it is also run with an rbpf under ASan and UBSan, since a memory error is no crash as a rule. It
# is made of the objects of `make asan`.

HOSTILE		?= *
ASAN_RBPF	:= $(O)/asan/rbpf
ASAN_RBPF_OBJS	:= $(SRCS:%.c=$(O)/asan/%.o)

.PHONY: check-hostile

$(ASAN_RBPF): $(ASAN_RBPF_OBJS)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $(ASAN_RBPF_OBJS) $(LDLIBS)

check-hostile: rbpf $(ASAN_RBPF)
	$(Q)RBPF=$(abspath rbpf) RBPF_ASAN=$(abspath $(ASAN_RBPF)) LC_ALL=C.UTF-8 \
		ruby -w $(foreach t,$(HOSTILE),$(addprefix -r ./,$(wildcard tests/hostile/$(t)_test.rb))) -e '' -- \
		$(TESTOPTS)

-include $(ASAN_RBPF_OBJS:.o=.d)
