/* SPDX-License-Identifier: GPL-2.0-only */
/* ELF files of any kind: whatever is in one, its functions are in order and have names that end. */
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;

	if (elf_symbols_read_image(data, size, &s))
		return 0;
	for (size_t i = 0; i < s.n; i++) {
		const struct elf_function *f = &s.functions[i];

		if (f->start >= f->end || (i && f[-1].start >= f->start) ||
		    strlen(f->name) > ELF_SYMBOLS_MAX_NAME + 4 ||
		    elf_symbols_find(&s, f->start) != f)
			abort();
	}
	for (size_t i = 0; i < s.n_rests; i++)
		if (elf_symbols_find(&s, s.rests[i].start) != &s.functions[s.rests[i].function])
			abort();
	elf_symbols_deinit(&s);
	return 0;
}
