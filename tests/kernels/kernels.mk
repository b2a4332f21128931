# SPDX-License-Identifier: GPL-2.0-only
#
# make check-kernels    some live tests under other kernels, in QEMU: tests/kernels/run.sh
#
# KERNELS='bookworm:arm64 sid:amd64'    only these

.PHONY: check-kernels

check-kernels: rbpf
	$(Q)MAKE='$(MAKE)' RBPF=$(abspath rbpf) tests/kernels/run.sh $(KERNELS)
