/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/code.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

#define TEXT_OF(number) #number
#define NAME_OF(number) "libcapstone.so." TEXT_OF(number)

/* What is used of the library, whose functions have these types in its header. */
struct capstone {
	void *library;
	__typeof__(cs_open) *open;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_free) *free;
	__typeof__(cs_close) *close;
};

const char *elf_code_library(void)
{
	return NAME_OF(CS_API_MAJOR);
}

int elf_code_load(void)
{
	return dlopen(NAME_OF(CS_API_MAJOR), RTLD_NOW | RTLD_NODELETE) ? 0 : -ENOPKG;
}

/* What was loaded is found by its name: nothing is opened. */
static int find_library(struct capstone *ret)
{
	ret->library = dlopen(NAME_OF(CS_API_MAJOR), RTLD_NOW | RTLD_NOLOAD);
	if (!ret->library)
		return -ENOPKG;
	ret->open = dlsym(ret->library, "cs_open");
	ret->option = dlsym(ret->library, "cs_option");
	ret->malloc = dlsym(ret->library, "cs_malloc");
	ret->disasm_iter = dlsym(ret->library, "cs_disasm_iter");
	ret->free = dlsym(ret->library, "cs_free");
	ret->close = dlsym(ret->library, "cs_close");
	return ret->open && ret->option && ret->malloc && ret->disasm_iter && ret->free &&
			       ret->close
		       ? 0
		       : -ENOPKG;
}

/* ---- the bytes ---- */

struct machine_code {
	uint16_t machine;
	uint8_t *v; /* owned */
	size_t n;
};

/* Where in the file is what the segments have at @start: *@size is cut to what there is. */
static int find_bytes(Elf *elf, uint64_t start, uint64_t *size, uint64_t *ret)
{
	GElf_Phdr ph;
	size_t n, i;

	if (elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++) {
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || start < ph.p_vaddr ||
		    start - ph.p_vaddr >= ph.p_filesz)
			continue;
		if (*size > ph.p_filesz - (start - ph.p_vaddr))
			*size = ph.p_filesz - (start - ph.p_vaddr);
		*ret = ph.p_offset + (start - ph.p_vaddr);
		return 0;
	}
	return -ENOENT;
}

static int read_elf(Elf *elf, int fd, uint64_t start, uint64_t size, struct machine_code *ret)
{
	uint64_t offset;
	GElf_Ehdr ehdr;
	ssize_t n;
	int r;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (ehdr.e_machine != EM_X86_64 && ehdr.e_machine != EM_AARCH64))
		return -ENOEXEC;
	r = find_bytes(elf, start, &size, &offset);
	if (r)
		return r;
	ret->machine = ehdr.e_machine;
	ret->v = malloc(size + 1);
	if (!ret->v)
		return -ENOMEM;
	n = pread(fd, ret->v, size, (off_t)offset);
	ret->n = n < 0 ? 0 : (size_t)n;
	return ret->n ? 0 : -ENOENT;
}

static int read_bytes(int fd, uint64_t start, uint64_t size, struct machine_code *ret)
{
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	r = read_elf(elf, fd, start, size < CODE_MAX_BYTES ? size : CODE_MAX_BYTES, ret);
	elf_end(elf);
	return r;
}

/* ---- the instructions ---- */

static int add(const cs_insn *insn, struct elf_code *code)
{
	if (array_reserve(code->v, code->cap, code->n + 1))
		return -ENOMEM;
	code->v[code->n++] = (struct elf_instruction) {
		.address = insn->address,
		.size = insn->size,
		.text = (uint32_t)code->text.len,
	};
	buf_addstr(&code->text, insn->mnemonic);
	if (insn->op_str[0])
		buf_addf(&code->text, " %s", insn->op_str);
	buf_addch(&code->text, '\0');
	return buf_failed(&code->text) ? -ENOMEM : 0;
}

static int disassemble(const struct capstone *cs, const struct machine_code *bytes, uint64_t start,
		       struct elf_code *code)
{
	const bool is_arm = bytes->machine == EM_AARCH64;
	const uint8_t *at = bytes->v;
	size_t left = bytes->n;
	cs_insn *insn = NULL;
	csh handle;
	int r = 0;

	if (cs->open(is_arm ? CS_ARCH_ARM64 : CS_ARCH_X86,
		     is_arm ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64, &handle))
		return -ENOMEM;
	if (cs->option(handle, CS_OPT_SKIPDATA, CS_OPT_ON) ||
	    (!is_arm && cs->option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT)))
		r = -ENOPKG;
	else
		insn = cs->malloc(handle);
	if (!r && !insn)
		r = -ENOMEM;
	while (!r && left && cs->disasm_iter(handle, &at, &left, &start, insn))
		r = add(insn, code);
	if (insn)
		cs->free(insn, 1);
	cs->close(&handle);
	return r;
}

int elf_code_read(int fd, uint64_t start, uint64_t size, struct elf_code *ret)
{
	struct elf_code code = ELF_CODE_INIT;
	struct machine_code bytes = { .v = NULL };
	struct capstone cs;
	int r;

	r = find_library(&cs);
	if (r)
		return r;
	r = read_bytes(fd, start, size, &bytes);
	if (!r)
		r = disassemble(&cs, &bytes, start, &code);
	free(bytes.v);
	dlclose(cs.library);
	if (r)
		elf_code_deinit(&code);
	else
		*ret = code;
	return r;
}

void elf_code_deinit(struct elf_code *code)
{
	free(code->v);
	buf_deinit(&code->text);
	*code = (struct elf_code)ELF_CODE_INIT;
}
