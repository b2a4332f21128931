/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/own_pages.h"

#include <unistd.h>

/* Documentation/admin-guide/mm/pagemap.rst */
#define FILE_PAGE (1ull << 61)
#define ALONE	  (1ull << 56) /* mapped by one process only */

static uint32_t read_window(int fd, uint64_t number)
{
	uint64_t entries[OWN_PAGES] = { 0 };
	uint32_t pages = 0;
	unsigned int i;

	if (pread(fd, entries, sizeof(entries), (off_t)(number * sizeof(entries))) <= 0)
		return 0;
	for (i = 0; i < OWN_PAGES; i++)
		if (entries[i] & PAGE_PRESENT && entries[i] & (FILE_PAGE | ALONE))
			pages |= 1u << i;
	return pages;
}

static uint32_t window(struct own_pages *own, uint64_t program, int fd, uint64_t now_ns,
		       uint64_t number)
{
	struct own_window *w = &own->v[(number ^ number >> 10 ^ program * 37) % OWN_WINDOWS];

	if (w->program != program || w->number != number || now_ns - w->at_ns > OWN_PAGES_FOR_NS)
		*w = (struct own_window) { program, number, now_ns, read_window(fd, number) };
	return w->pages;
}

/* Bits @from to @to. */
static uint32_t bits(uint64_t from, uint64_t to)
{
	return (uint32_t)((2ull << to) - (1ull << from));
}

bool own_pages_are(struct own_pages *own, uint64_t program, int fd, uint64_t now_ns, uint64_t addr,
		   size_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t first = addr / page, last = (addr + len - 1) / page;
	uint64_t number, from, to;

	if (addr + len - 1 < addr || last - first >= OWN_PAGES)
		return false;
	for (number = first / OWN_PAGES; number <= last / OWN_PAGES; number++) {
		from = number == first / OWN_PAGES ? first % OWN_PAGES : 0;
		to = number == last / OWN_PAGES ? last % OWN_PAGES : OWN_PAGES - 1;
		if (bits(from, to) & ~window(own, program, fd, now_ns, number))
			return false;
	}
	return true;
}
