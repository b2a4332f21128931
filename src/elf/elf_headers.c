/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/elf_headers.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hex.h"
#include "elf/elf_common.h"

#define MAX_NOTES 65536 /* bytes of a PT_NOTE */

static bool is_of_this_machine(Elf *elf)
{
	GElf_Ehdr ehdr;

	return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	       elf_is_of_this_machine(&ehdr);
}

static int add_segment(struct elf_headers *h, size_t *cap, const GElf_Phdr *ph)
{
	if (!ph->p_memsz)
		return 0;
	if (h->n == ELF_SEGMENTS_MAX)
		return -ENOEXEC;
	if (array_reserve(h->v, *cap, h->n + 1))
		return -ENOMEM;
	if (!h->n || ph->p_vaddr < h->base)
		h->base = ph->p_vaddr;
	h->v[h->n++] = (struct elf_segment) {
		.vaddr = ph->p_vaddr,
		.memsz = ph->p_memsz,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.write = ph->p_flags & PF_W,
		.exec = ph->p_flags & PF_X,
	};
	return 0;
}

/* Set the build-id, if it is among the notes of @ph. */
static void read_build_id(Elf *elf, const GElf_Phdr *ph, struct elf_headers *h)
{
	size_t pos = 0, name, desc;
	const unsigned char *bytes;
	Elf_Data *data;
	GElf_Nhdr note;

	if (ph->p_filesz > MAX_NOTES)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz,
				    ph->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (pos = gelf_getnote(data, pos, &note, &name, &desc))) {
		bytes = data->d_buf;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name, "GNU", sizeof("GNU")) ||
		    (size_t)note.n_descsz * 2 >= sizeof(h->build_id))
			continue;
		hex_of_bytes(bytes + desc, note.n_descsz, h->build_id);
		return;
	}
}

static int read_elf(Elf *elf, struct elf_headers *ret)
{
	struct elf_headers h = ELF_HEADERS_INIT;
	size_t n, cap = 0, i;
	GElf_Phdr ph;
	int r = 0;

	if (!is_of_this_machine(elf) || elf_getphdrnum(elf, &n) || n > ELF_HEADERS_MAX)
		return -ENOEXEC;
	for (i = 0; !r && i < n && gelf_getphdr(elf, (int)i, &ph); i++) {
		if (ph.p_type == PT_LOAD)
			r = add_segment(&h, &cap, &ph);
		else if (ph.p_type == PT_NOTE && !h.build_id[0])
			read_build_id(elf, &ph, &h);
	}
	if (!r && !h.n)
		r = -ENOEXEC;
	if (r)
		elf_headers_deinit(&h);
	else
		*ret = h;
	return r;
}

int elf_headers_read(int fd, struct elf_headers *ret)
{
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	r = read_elf(elf, ret);
	elf_end(elf);
	return r;
}

int elf_headers_read_image(const void *image, size_t size, struct elf_headers *ret)
{
	char *copy = malloc(size ? size : 1); /* libelf takes it as its own to write to */
	Elf *elf;
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, size);
	elf_version(EV_CURRENT);
	elf = elf_memory(copy, size);
	r = read_elf(elf, ret);
	elf_end(elf);
	free(copy);
	return r;
}

void elf_headers_deinit(struct elf_headers *headers)
{
	free(headers->v);
	*headers = (struct elf_headers)ELF_HEADERS_INIT;
}

/* How many bytes of the file [@a, @a + @a_len) and [@b, @b + @b_len) have in common. */
static uint64_t overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	uint64_t skipped;

	if (a > b)
		return overlap(b, b_len, a, a_len);
	skipped = b - a;
	if (skipped >= a_len)
		return 0;
	a_len -= skipped;
	return a_len < b_len ? a_len : b_len;
}

int elf_headers_address(const struct elf_headers *headers, uint64_t offset, uint64_t len,
			uint64_t *ret)
{
	const struct elf_segment *best = NULL;
	uint64_t most = 0, common;
	size_t i;

	for (i = 0; i < headers->n; i++) {
		if (!headers->v[i].exec)
			continue;
		common = overlap(headers->v[i].offset, headers->v[i].filesz, offset, len);
		if (common > most) {
			most = common;
			best = &headers->v[i];
		}
	}
	if (!best)
		return -ENOENT;
	*ret = best->vaddr + (offset - best->offset);
	return 0;
}
