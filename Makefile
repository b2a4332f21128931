# SPDX-License-Identifier: GPL-2.0-only
#
# make            build ./rbpf
# make check      format, lint, unit tests (also under ASan and UBSan); no root needed
# make check-live live tests on real Rubies; needs root and BPF
# make check-hostile  targets, files and recordings that mean harm; needs root and BPF
# make check-kernels  live tests under Debian's kernels and on arm64, in QEMU; no root needed
# make test       install what the tests need, run all of them
# make demo       install what is needed, build, record a Ruby program, draw its flame graph
# make bench      what rbpf costs, as ratios within one run
# make install    DESTDIR, PREFIX; uninstall, with the same, undoes it
# make deb        a Debian package of it
#
# CROSS_COMPILE=aarch64-linux-gnu-    build for another machine; rbpf is then left in $(O), of which it
#                                     needs one of its own: O=build/arm64
# SYSROOT=DIR                         the root of a system that has its libraries, if not this one

VERSION := 0.1.0
O	:= build
PREFIX	?= /usr/local
BINDIR	?= $(PREFIX)/bin
MANDIR	?= $(PREFIX)/share/man
BASHDIR	?= $(PREFIX)/share/bash-completion/completions
ZSHDIR	?= $(PREFIX)/share/zsh/site-functions
FISHDIR	?= $(PREFIX)/share/fish/vendor_completions.d

CC		?= cc
CLANG		?= clang
LLVM_STRIP	?= llvm-strip
PKG_CONFIG	?= pkg-config
BPFTOOL		?= $(shell command -v bpftool || echo /usr/sbin/bpftool)

ARCH := $(shell uname -m)
RBPF := rbpf
ifdef CROSS_COMPILE
ARCH := $(firstword $(subst -, ,$(CROSS_COMPILE)))
CC   := $(CROSS_COMPILE)gcc
RBPF := $(O)/rbpf
endif
ifdef SYSROOT
CC += --sysroot=$(abspath $(SYSROOT))
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(abspath $(SYSROOT)) \
	      PKG_CONFIG_LIBDIR=$(abspath $(SYSROOT))/usr/lib/$(ARCH)-linux-gnu/pkgconfig $(PKG_CONFIG)
endif

ifeq ($(V),1)
Q =
say = @:
else
Q = @
say = @printf '  %-8s %s\n'
endif

LIBS	 := libbpf libdw libelf liblzma zlib libdeflate jansson ncursesw libmicrohttpd
CPPFLAGS += -D_GNU_SOURCE -DRBPF_VERSION='"$(VERSION)"' -Isrc -Iinclude -I$(O)
WARN	 := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	    -Wundef -Wvla -Wformat=2 -Wno-format-nonliteral
ifeq ($(CI),true)
WARN	 += -Werror
endif
CFLAGS	 ?= -O2 -g
# Functions of libraries are found before main(), not once in each process that serve forks; and then nothing can change them.
LDFLAGS	 ?= -Wl,-z,relro,-z,now
CFLAGS	 += -std=gnu11 -pthread $(WARN) -MMD -MP $(shell $(PKG_CONFIG) --cflags $(LIBS) 2>/dev/null)
LDLIBS	 += $(shell $(PKG_CONFIG) --libs $(LIBS) 2>/dev/null || echo -lbpf -ldw -lelf -llzma -lz -ldeflate -ljansson -lncursesw -ltinfo -lmicrohttpd)
LDLIBS	 += -liberty -lm # have no .pc file

BPFARCH	 := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))
# Of every machine; -D__TARGET_ARCH_... names one.
BPFFLAGS := -g -O2 -target bpf -Ivmlinux -Iinclude -Ibpf \
	    -Wall -Wextra -Wno-unused-parameter -Werror -MMD -MP

DIRS	 := base target elf worker request ruby symbol engine native sample profile view page export ui report top dump serve cmd
SRCS	 := $(sort $(foreach d,$(DIRS),$(wildcard src/$(d)/*.c)))
OBJS	 := $(SRCS:%.c=$(O)/%.o)
LIB	 := $(O)/librbpf.a
SKEL	 := $(O)/rbpf.skel.h

.DELETE_ON_ERROR:
.PHONY: all check check-cli check-first check-format check-live check-validate unit asan lint test test-more demo demo-run bench bench-builds bench-hour bench-live bench-pairs bench-phases bench-scale bench-views install uninstall deb clean

all: $(RBPF)

$(RBPF): $(OBJS)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# All but main(), for the programs of tests and benchmarks: the linker takes what each one needs.
$(LIB): $(filter-out $(O)/src/cmd/main.o,$(OBJS))
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/src/%.o: src/%.c
	$(say) CC $<
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Only the engine sees the skeleton.
$(patsubst %.c,$(O)/%.o,$(wildcard src/engine/*.c)): $(SKEL)

$(O)/rbpf.bpf.o: bpf/rbpf.bpf.c
	$(say) BPF $<
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -D__TARGET_ARCH_$(BPFARCH) -c -o $(O)/rbpf.tmp.bpf.o $< -MF $(O)/rbpf.bpf.d -MT $@
	$(Q)$(LLVM_STRIP) -g $(O)/rbpf.tmp.bpf.o && mv $(O)/rbpf.tmp.bpf.o $@

$(SKEL): $(O)/rbpf.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name rbpf_bpf > $@.tmp && mv $@.tmp $@

# Each installs what it needs and then starts make again, which only now finds it.
demo:
	@tests/support/packages.sh demo
	@$(MAKE) --no-print-directory demo-run

test:
	@tests/support/packages.sh test
	@tests/support/fixtures.sh || echo "test: tests that need this are skipped" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) rbpf
	@status=0; \
	$(MAKE) --no-print-directory -O -j$$(nproc) check-first T='$(NOT_ASAN)' || status=1; \
	$(MAKE) --no-print-directory test-more || status=1; \
	exit $$status

TEST_KERNELS := trixie:amd64 bookworm:arm64
# Those that nothing else on the machine can slow down.
TEST_HOSTILE := outputs recordings

# Three at a time, and the longest first: the live tests, in shares, wait a lot, and the others take turns beside them.
# check-hostile is made of the objects of asan, so the two must not be built at once.
CHECKS := asan check-validate check-cli check-memory
LIVE_CHECKS := check-live-1 check-live-3 asan check-kernels check-validate check-live-2 check-cli check-hostile check-memory

# The live tests need root and BPF: without, that is said, and what could be run was run.
test-more: rbpf
	@if ./rbpf -q doctor >/dev/null 2>&1; then \
		HOSTILE='$(TEST_HOSTILE)' KERNELS='$(TEST_KERNELS)' TESTFLAGS=-j1 \
			tests/support/parts.sh 3 $(MAKE) $(LIVE_CHECKS); \
	else \
		tests/support/parts.sh 2 $(MAKE) $(CHECKS); status=$$?; ./rbpf doctor; \
		if [ "$$CI" = true ]; then \
			echo "test: recording does not work here, and CI needs it" >&2; status=1; \
		else \
			echo "test: the live tests are skipped: recording does not work here"; fi; \
		exit $$status; \
	fi

# With root, a Ruby is recorded; without, say so and stop at what was built.
demo-run: rbpf
	@if [ "$$(id -u)" != 0 ]; then \
		echo "demo: built ./rbpf; recording needs root: run 'sudo make demo'"; exit 0; fi; \
	./rbpf record -F 499 -o rbpf.data -- ruby tests/programs/demo.rb 5 && \
	./rbpf report -n 12 && \
	./rbpf flame -o rbpf-flame.svg && \
	echo && echo "The flame graph is in $(CURDIR)/rbpf-flame.svg: open it in a browser."

install: $(RBPF)
	install -D -m 755 $(RBPF) $(DESTDIR)$(BINDIR)/rbpf
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man5
	install -m 644 man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 man/*.5 $(DESTDIR)$(MANDIR)/man5
ifeq ($(CROSS_COMPILE),)
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	$(abspath $(RBPF)) completion bash > $(DESTDIR)$(BASHDIR)/rbpf
	$(abspath $(RBPF)) completion zsh > $(DESTDIR)$(ZSHDIR)/_rbpf
	$(abspath $(RBPF)) completion fish > $(DESTDIR)$(FISHDIR)/rbpf.fish
endif

# What install installed, and nothing else; its directories stay.
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/rbpf
	rm -f $(DESTDIR)$(BASHDIR)/rbpf $(DESTDIR)$(ZSHDIR)/_rbpf $(DESTDIR)$(FISHDIR)/rbpf.fish
	rm -f $(patsubst man/%,$(DESTDIR)$(MANDIR)/man1/%,$(wildcard man/*.1))
	rm -f $(patsubst man/%,$(DESTDIR)$(MANDIR)/man5/%,$(wildcard man/*.5))

# A package for Debian and what is made from it, of the release that it is built on: what it depends on are the packages
# that the libraries it is linked with are from.
DEB = rbpf_$(VERSION)_$$(dpkg --print-architecture).deb
DEB_LIBRARIES = objdump -p $(RBPF) | sed -n 's|^ *NEEDED *|*/$(shell $(CC) -print-multiarch)/|p'

# -o: it is installed as it was made.
deb: $(RBPF)
	$(Q)rm -rf $(O)/deb
	$(Q)$(MAKE) --no-print-directory -s -o $(RBPF) install DESTDIR=$(O)/deb PREFIX=/usr
	$(Q)gzip -9n $(O)/deb/usr/share/man/man*/*
	$(Q)install -D -m 644 LICENSE $(O)/deb/usr/share/doc/rbpf/copyright
	$(Q)install -d $(O)/deb/DEBIAN
	$(Q)needs=$$($(DEB_LIBRARIES) | xargs dpkg-query -S | sed 's/:.*//' | sort -u | paste -sd, | sed 's/,/, /g') && \
	printf '%s\n' 'Package: rbpf' 'Version: $(VERSION)' "Architecture: $$(dpkg --print-architecture)" \
		'Maintainer: rbpf <root@localhost>' 'Section: devel' 'Priority: optional' "Depends: $$needs" \
		'Recommends: libcapstone4' 'Description: eBPF profiler for Ruby' \
		' Records what Ruby processes spend CPU time on and what they wait for, without' \
		' changing, restarting or stopping them.' > $(O)/deb/DEBIAN/control
	$(Q)dpkg-deb --root-owner-group --build $(O)/deb $(DEB)

clean:
	rm -rf $(O) rbpf

-include $(OBJS:.o=.d) $(O)/rbpf.bpf.d
-include src/page/page.mk src/export/export.mk src/request/request.mk src/serve/serve.mk
include bench/bench.mk
-include tests/tests.mk
