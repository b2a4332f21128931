/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#error "unsupported architecture"
#endif

struct elf_file {
	Elf *elf;
};

int elf_file_open(int fd, const char *name, struct elf_file **ret, struct err *err)
{
	struct elf_file *f;
	GElf_Ehdr ehdr;

	elf_version(EV_CURRENT);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_oom(err);
	f->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &ehdr) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != HOST_MACHINE) {
		elf_file_close(f);
		return err_set(err, -ENOEXEC, ERR_TARGET,
			       "%s is not a 64-bit ELF file of this machine", name);
	}
	*ret = f;
	return 0;
}

void elf_file_close(struct elf_file *elf)
{
	if (!elf)
		return;
	elf_end(elf->elf);
	free(elf);
}

static size_t scan_symbols(Elf *elf, uint32_t type, const char *const *names, uint64_t *values,
			   bool *found, size_t n)
{
	size_t hits = 0, i, k, count;
	Elf_Scn *scn = NULL;
	const char *name;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type || !shdr.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data)
			continue;
		count = shdr.sh_size / shdr.sh_entsize;
		for (i = 0; i < count && i <= INT32_MAX && hits < n; i++) {
			if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
				continue;
			name = elf_strptr(elf, shdr.sh_link, sym.st_name);
			for (k = 0; name && k < n; k++) {
				if (found[k] || strcmp(name, names[k]))
					continue;
				values[k] = sym.st_value;
				found[k] = true;
				hits++;
			}
		}
	}
	return hits;
}

size_t elf_file_symbols(struct elf_file *elf, const char *const *names, uint64_t *values, size_t n)
{
	bool found[32] = { false };
	size_t hits;

	if (n > ARRAY_SIZE(found))
		n = ARRAY_SIZE(found);
	hits = scan_symbols(elf->elf, SHT_DYNSYM, names, values, found, n);
	if (hits < n)
		hits += scan_symbols(elf->elf, SHT_SYMTAB, names, values, found, n);
	return hits;
}

size_t elf_file_dynamic_symbols(struct elf_file *elf, const char *const *names, uint64_t *values,
				size_t n)
{
	bool found[32] = { false };

	return scan_symbols(elf->elf, SHT_DYNSYM, names, values, found,
			    n < ARRAY_SIZE(found) ? n : ARRAY_SIZE(found));
}

bool elf_file_needs(struct elf_file *elf, const char *prefix)
{
	Elf_Scn *scn = NULL;
	const char *name;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Dyn dyn;
	int i;

	while ((scn = elf_nextscn(elf->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(scn, NULL);
		for (i = 0; data && gelf_getdyn(data, i, &dyn); i++) {
			if (dyn.d_tag != DT_NEEDED)
				continue;
			name = elf_strptr(elf->elf, shdr.sh_link, dyn.d_un.d_val);
			if (name && !strncmp(name, prefix, strlen(prefix)))
				return true;
		}
	}
	return false;
}

size_t elf_file_segments(struct elf_file *elf, struct elf_segment *v, size_t max)
{
	size_t count, i, n = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf->elf, &count))
		return 0;
	for (i = 0; i < count && n < max; i++) {
		if (!gelf_getphdr(elf->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		v[n++] = (struct elf_segment) {
			.vaddr = ph.p_vaddr,
			.memsz = ph.p_memsz,
			.offset = ph.p_offset,
			.filesz = ph.p_filesz,
			.write = ph.p_flags & PF_W,
			.exec = ph.p_flags & PF_X,
		};
	}
	return n;
}

void elf_file_build_id(struct elf_file *elf, char *out, size_t size)
{
	size_t off, name_off, desc_off, i;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Nhdr nhdr;

	out[0] = '\0';
	while ((scn = elf_nextscn(elf->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(scn, NULL);
		for (off = 0;
		     data && (off = gelf_getnote(data, off, &nhdr, &name_off, &desc_off));) {
			if (nhdr.n_type != NT_GNU_BUILD_ID || nhdr.n_namesz != sizeof("GNU") ||
			    memcmp((const char *)data->d_buf + name_off, "GNU", sizeof("GNU")) ||
			    (size_t)nhdr.n_descsz * 2 >= size)
				continue;
			for (i = 0; i < nhdr.n_descsz; i++)
				snprintf(out + i * 2, 3, "%02x",
					 ((const unsigned char *)data->d_buf)[desc_off + i]);
			return;
		}
	}
}
