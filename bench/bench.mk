# SPDX-License-Identifier: GPL-2.0-only
# make bench: what rbpf costs; make bench-builds BUILDS=FILE:FILE: what several builds cost, real and
# synthetic stacks; make bench-scale: on a full machine; make bench-hour: the memory of top and serve over an
# hour; make bench-live: what these take as they watch a busy Puma; make bench-pairs: a server under full load, with and
# without rbpf, in turns; make bench-phases: the same server, recorded all the time, but sampled only in turns. Need root.
# make bench-views: what views and exports take of a long recording, and whether that is within their bounds. Included by
# the Makefile.

BENCH := $(O)/bench/idle_cost $(O)/bench/long_recording $(O)/bench/cost_of

$(O)/bench/%: bench/%.c $(SKEL) $(LIB)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

bench: rbpf $(BENCH)
	$(Q)ruby bench/bench.rb

bench-pairs: rbpf
	$(Q)ruby -w bench/throughput.rb

bench-phases: rbpf
	$(Q)ruby -w bench/phases.rb

bench-builds: rbpf $(BENCH)
	$(Q)ruby bench/builds.rb

bench-views: rbpf $(BENCH)
	$(Q)ruby bench/views.rb

bench-scale: rbpf
	$(Q)ruby bench/scale.rb

bench-live: rbpf
	$(Q)ruby -w bench/live_cost.rb

bench-hour: rbpf
	$(Q)ruby -w bench/live_hour.rb

-include $(BENCH:=.d)
