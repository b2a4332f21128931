# SPDX-License-Identifier: GPL-2.0-only
# make bench: what rbpf costs; make bench-scale: on a full machine. Need root. Included by the
# Makefile.

BENCH := $(O)/bench/idle_cost $(O)/bench/long_recording

$(O)/bench/idle_cost: bench/idle_cost.c $(SKEL) $(filter $(O)/src/base/%,$(OBJS))
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(filter $(O)/src/base/%,$(OBJS)) $(LDLIBS)

RECORDING_OBJS := $(filter $(O)/src/base/% $(O)/src/profile/%,$(OBJS))

$(O)/bench/long_recording: bench/long_recording.c $(RECORDING_OBJS)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(RECORDING_OBJS) $(LDLIBS)

bench: rbpf $(BENCH)
	$(Q)ruby bench/bench.rb

bench-scale: rbpf
	$(Q)ruby bench/scale.rb
