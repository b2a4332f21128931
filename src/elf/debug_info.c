/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/debug_info.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "elf/dwarf.h"
#include "elf/elf_common.h"

/*
 * Whether the section @name is one of @needed that was not seen before, by the bits of @seen: of
 * two with one name, what is checked could be another one than libdw takes.
 */
static bool is_needed(const char *name, const char *const *needed, size_t n, uint64_t *seen)
{
	uint64_t before = *seen;
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(name, needed[i]))
			*seen |= 1ull << i;
	return *seen != before;
}

/*
 * By .gnu_debugaltlink, libdw would open a file that the target names. .zdebug_*: the form of
 * compression before 2015.
 */
static bool is_debug(const char *name)
{
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8) ||
	       !strcmp(name, ".gnu_debugaltlink");
}

/* Hide the debug sections that are not needed, and add up the others. */
static int prepare_sections(Elf *elf, const char *const *needed, size_t n, bool *has_info)
{
	uint64_t size = 0, more, seen = 0;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;
	GElf_Chdr chdr;

	while ((scn = elf_nextscn(elf, scn))) {
		name = elf_section_name(elf, scn, &shdr);
		if (!name || !is_debug(name) || shdr.sh_type == SHT_NOBITS)
			continue;
		if (!is_needed(name, needed, n, &seen)) {
			shdr.sh_type = SHT_NOBITS; /* in memory only */
			gelf_update_shdr(scn, &shdr);
			continue;
		}
		more = gelf_getchdr(scn, &chdr) ? chdr.ch_size : shdr.sh_size;
		if (more > DWARF_MAX_BYTES || (size += more) > DWARF_MAX_BYTES)
			return -E2BIG;
		*has_info |= !strcmp(name, ".debug_info");
	}
	return 0;
}

Elf_Data *debug_info_section(const struct debug_info *info, const char *name)
{
	const char *this_name;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(info->elf, scn))) {
		this_name = elf_section_name(info->elf, scn, &shdr);
		if (!this_name || strcmp(this_name, name) || shdr.sh_type == SHT_NOBITS)
			continue;
		data = elf_rawdata(scn, NULL);
		return data && data->d_buf && data->d_size ? data : NULL;
	}
	return NULL;
}

/*
 * libdw does not look whether a name ends before its section does, neither among the DIEs nor in
 * the sections of strings that line tables refer to: make sure. What .debug_info ends with is
 * otherwise the end of children (0 already) or an attribute of a unit without any.
 */
static void terminate_names(const struct debug_info *info, const char *section)
{
	Elf_Data *data = debug_info_section(info, section);

	if (data)
		((char *)data->d_buf)[data->d_size - 1] = '\0';
}

static int open_sections(struct debug_info *info, const char *const *needed, size_t n)
{
	bool has_info = false;
	int r;

	if (!info->elf || elf_kind(info->elf) != ELF_K_ELF)
		return -ENOENT;
	r = prepare_sections(info->elf, needed, n, &has_info);
	if (r || !has_info)
		return r ? r : -ENOENT;
	info->dwarf = dwarf_begin_elf(info->elf, DWARF_C_READ, NULL);
	if (!info->dwarf)
		return -EBADMSG;
	terminate_names(info, ".debug_info");
	terminate_names(info, ".debug_types");
	terminate_names(info, ".debug_str");
	terminate_names(info, ".debug_line_str");
	/* libdw has all sections in memory now. */
	elf_cntl(info->elf, ELF_C_FDDONE);
	return 0;
}

int debug_info_open(int fd, const char *const *needed, size_t n, struct debug_info *ret)
{
	struct debug_info info = DEBUG_INFO_INIT;
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size > DWARF_MAX_BYTES)
		return -E2BIG;
	elf_version(EV_CURRENT);
	info.elf = elf_begin(fd, ELF_C_READ, NULL);
	r = open_sections(&info, needed, n);
	if (r)
		debug_info_close(&info);
	else
		*ret = info;
	return r;
}

void debug_info_close(struct debug_info *info)
{
	dwarf_end(info->dwarf);
	elf_end(info->elf);
	*info = (struct debug_info)DEBUG_INFO_INIT;
}
