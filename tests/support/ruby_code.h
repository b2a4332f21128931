/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machine code of the functions that ruby/code.h reads, as compilers have made it: copied from
 * Debian's libruby and from a static build, with what a disassembler says of it. Of the longer ones
 * only the beginning. Addresses are those of the file. Each array ends with a piece of size 0.
 */
#ifndef RBPF_TESTS_RUBY_CODE_H
#define RBPF_TESTS_RUBY_CODE_H

#include <stddef.h>
#include <stdint.h>

struct code_piece {
	uint64_t addr;
	const char *bytes;
	size_t size;
};

#define CODE(addr, bytes)                                                                          \
	{                                                                                          \
		addr, bytes, sizeof(bytes) - 1                                                     \
	}

static const struct code_piece x86_64_2_7[] = {
	CODE(0xc2210,			    /* rb_during_gc */
	     "\x48\x8b\x05\xf9\x0a\x28\x00" /* mov 0x280af9(%rip),%rax # GOT: ruby_current_vm_ptr */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x80\x80\x04\x00\x00" /* mov 0x480(%rax),%rax */
	     "\x0f\xb6\x40\x10"		    /* movzbl 0x10(%rax),%eax */
	     "\xc0\xe8\x05"		    /* shr $0x5,%al */
	     "\x83\xe0\x01"		    /* and $0x1,%eax */
	     "\xc3"),			    /* ret */
	CODE(0xc2230,			    /* rb_gc_count */
	     "\x48\x8b\x05\xd9\x0a\x28\x00" /* mov 0x280ad9(%rip),%rax # GOT: ruby_current_vm_ptr */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x80\x80\x04\x00\x00" /* mov 0x480(%rax),%rax */
	     "\x48\x8b\x80\xa8\x01\x00\x00" /* mov 0x1a8(%rax),%rax */
	     "\xc3"),			    /* ret */
	CODE(0x1ea020,			    /* rb_thread_main */
	     "\x48\x8b\x05\xa1\x8c\x15\x00" /* mov 0x158ca1(%rip),%rax # GOT: the EC */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x40\x38"		    /* mov 0x38(%rax),%rax */
	     "\x48\x8b\x40\x18"		    /* mov 0x18(%rax),%rax */
	     "\x48\x8b\x80\xc0\x00\x00\x00" /* mov 0xc0(%rax),%rax */
	     "\x48\x8b\x40\x10"		    /* mov 0x10(%rax),%rax */
	     "\xc3"),			    /* ret */
	CODE(0x1e9b10,			    /* rb_thread_current */
	     "\x48\x8b\x05\xb1\x91\x15\x00" /* mov 0x1591b1(%rip),%rax # GOT: the EC */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x40\x38"		    /* mov 0x38(%rax),%rax */
	     "\x48\x8b\x40\x10"		    /* mov 0x10(%rax),%rax */
	     "\xc3"),			    /* ret */
	{ 0 },
};

static const struct code_piece x86_64_3_1[] = {
	CODE(0xcf4e0,			    /* rb_during_gc */
	     "\x48\x8b\x05\xa1\xe7\x2d\x00" /* mov 0x2de7a1(%rip),%rax # GOT: ruby_current_vm_ptr */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x80\x50\x04\x00\x00" /* mov 0x450(%rax),%rax */
	     "\x0f\xb6\x40\x10"		    /* movzbl 0x10(%rax),%eax */
	     "\xc0\xe8\x05"		    /* shr $0x5,%al */
	     "\x83\xe0\x01"		    /* and $0x1,%eax */
	     "\xc3"),			    /* ret */
	CODE(0xcf500,			    /* rb_gc_count */
	     "\x48\x8b\x05\x81\xe7\x2d\x00" /* mov 0x2de781(%rip),%rax # GOT: ruby_current_vm_ptr */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x8b\x80\x50\x04\x00\x00" /* mov 0x450(%rax),%rax */
	     "\x48\x8b\x80\xb8\x01\x00\x00" /* mov 0x1b8(%rax),%rax */
	     "\xc3"),			    /* ret */
	CODE(0x2102d0,			    /* rb_thread_main */
	     "\x48\x8b\x05\x19\xd3\x19\x00" /* mov 0x19d319(%rip),%rax # GOT: the main ractor */
	     "\x48\x8b\x00"		    /* mov (%rax),%rax */
	     "\x48\x85\xc0"		    /* test %rax,%rax */
	     "\x74\x11"			    /* je 2102f0 */
	     "\x48\x8b\x80\x10\x02\x00\x00" /* mov 0x210(%rax),%rax */
	     "\x48\x8b\x40\x10"		    /* mov 0x10(%rax),%rax */
	     "\xc3"			    /* ret */
	     "\x0f\x1f\x44\x00\x00"	    /* nopl 0x0(%rax,%rax,1) */
	     "\x48\x83\xec\x08"		    /* sub $0x8,%rsp */
	     "\x66\x48\x8d\x3d\x4c\xd7\x19\x00" /* data16 lea 0x19d74c(%rip),%rdi # GOT: EC */
	     "\x66\x66\x48\xe8\xec\x54\xe2\xff" /* data16 rex.W call 357f0 */
	     "\x48\x8b\x00"			/* mov (%rax),%rax */
	     "\x48\x8b\x40\x30"			/* mov 0x30(%rax),%rax */
	     "\x48\x85\xc0"			/* test %rax,%rax */
	     "\x0f\x84\xc2\xae\xe2\xff"		/* je 3b1d6 */
	     "\x48\x8b\x40\x18"			/* mov 0x18(%rax),%rax */
	     "\x48\x8b\x80\x10\x02\x00\x00"	/* mov 0x210(%rax),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\x48\x83\xc4\x08"			/* add $0x8,%rsp */
	     "\xc3"),				/* ret */
	CODE(0x20fd20,				/* rb_thread_current */
	     "\x48\x83\xec\x08"			/* sub $0x8,%rsp */
	     "\x66\x48\x8d\x3d\x1c\xdd\x19\x00" /* data16 lea 0x19dd1c(%rip),%rdi # GOT: EC */
	     "\x66\x66\x48\xe8\xbc\x5a\xe2\xff" /* data16 rex.W call 357f0 */
	     "\x48\x8b\x00"			/* mov (%rax),%rax */
	     "\x48\x8b\x40\x30"			/* mov 0x30(%rax),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\x48\x83\xc4\x08"			/* add $0x8,%rsp */
	     "\xc3"),				/* ret */
	CODE(0x357f0,				/* PLT: __tls_get_addr */
	     "\xff\x25\x4a\x64\x37\x00"),	/* jmp *0x37644a(%rip) # GOT: __tls_get_addr */
	CODE(0x931a0,				/* rb_fiber_current */
	     "\x55"				/* push %rbp */
	     "\x53"				/* push %rbx */
	     "\x48\x83\xec\x08"			/* sub $0x8,%rsp */
	     "\x66\x48\x8d\x3d\x9a\xa8\x31\x00" /* data16 lea 0x31a89a(%rip),%rdi # GOT: EC */
	     "\x66\x66\x48\xe8\x3a\x26\xfa\xff" /* data16 rex.W call 357f0 */
	     "\x48\x8b\x18"			/* mov (%rax),%rbx */
	     "\x48\x8b\x43\x28"			/* mov 0x28(%rbx),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\x48\x85\xc0"			/* test %rax,%rax */
	     "\x74\x0a"				/* je 931d0 */
	     "\x48\x83\xc4\x08"			/* add $0x8,%rsp */
	     "\x5b"				/* pop %rbx */
	     "\x5d"				/* pop %rbp */
	     "\xc3"				/* ret */
	     "\x0f\x1f\x00"			/* nopl (%rax) */
	     "\x48\x8b\x6b\x30"			/* mov 0x30(%rbx),%rbp */
	     "\x48\x8b\x3d\x2d\x41\x32\x00"	/* mov 0x32412d(%rip),%rdi */
	     "\x48\x8d\x15\xbe\x17\x31\x00"	/* lea 0x3117be(%rip),%rdx */
	     "\x31\xf6"				/* xor %esi,%esi */
	     "\xe8\x17\x52\xfa\xff"		/* call 38400 */
	     "\x48\x8b\x55\x28"			/* mov 0x28(%rbp),%rdx */
	     "\x48\x8b\x52\x28"			/* mov 0x28(%rdx),%rdx */
	     "\x48\x89\x95\x48\x01\x00\x00"	/* mov %rdx,0x148(%rbp) */
	     "\x48\x89\x50\x20"			/* mov %rdx,0x20(%rax) */
	     "\x48\x89\x42\x10"			/* mov %rax,0x10(%rdx) */
	     "\x48\x8b\x43\x28"			/* mov 0x28(%rbx),%rax */
	     "\x48\xc7\x82\x18\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x218(%rdx) */
	     "\x48\x8b\x40\x10"				    /* mov 0x10(%rax),%rax */
	     "\x48\x83\xc4\x08"				    /* add $0x8,%rsp */
	     "\x5b"					    /* pop %rbx */
	     "\x5d"					    /* pop %rbp */
	     "\xc3"),					    /* ret */
	CODE(0x93420,					    /* rb_fiber_yield */
	     "\x41\x55"					    /* push %r13 */
	     "\x41\x54"					    /* push %r12 */
	     "\x49\x89\xf4"				    /* mov %rsi,%r12 */
	     "\x55"					    /* push %rbp */
	     "\x53"					    /* push %rbx */
	     "\x89\xfb"					    /* mov %edi,%ebx */
	     "\x48\x83\xec\x08"				    /* sub $0x8,%rsp */
	     "\x66\x48\x8d\x3d\x11\xa6\x31\x00" /* data16 lea 0x31a611(%rip),%rdi # GOT: EC */
	     "\x66\x66\x48\xe8\xb1\x23\xfa\xff" /* data16 rex.W call 357f0 */
	     "\x48\x8b\x28"			/* mov (%rax),%rbp */
	     "\x48\x8b\x45\x28"			/* mov 0x28(%rbp),%rax */
	     "\x48\x83\x78\x10\x00"		/* cmpq $0x0,0x10(%rax) */
	     "\x74\x4b"				/* je 93498 */
	     "\x48\x8b\xb8\x00\x02\x00\x00"	/* mov 0x200(%rax),%rdi */
	     "\x48\x85\xff"			/* test %rdi,%rdi */
	     "\x74\x37"				/* je 93490 */
	     "\x4c\x89\xe2"			/* mov %r12,%rdx */
	     "\x89\xde"				/* mov %ebx,%esi */
	     "\x41\xb9\x01\x00\x00\x00"		/* mov $0x1,%r9d */
	     "\x45\x31\xc0"			/* xor %r8d,%r8d */
	     "\x48\xc7\x80\x00\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x200(%rax) */
	     "\x31\xc9"					    /* xor %ecx,%ecx */
	     "\x48\xc7\x87\x08\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x208(%rdi) */
	     "\x48\x83\xc4\x08"				    /* add $0x8,%rsp */
	     "\x5b"					    /* pop %rbx */
	     "\x5d"					    /* pop %rbp */
	     "\x41\x5c"					    /* pop %r12 */
	     "\x41\x5d"					    /* pop %r13 */
	     "\xe9\x72\xe7\xff\xff"			    /* jmp 91c00 */
	     "\x66\x90"					    /* xchg %ax,%ax */
	     "\xe8\x2b\xd6\xff\xff"			    /* call 90ac0 */
	     "\x0f\x1f\x00"				    /* nopl (%rax) */
	     "\x4c\x8b\x6d\x30"				    /* mov 0x30(%rbp),%r13 */
	     "\x48\x8b\x3d\x65\x3e\x32\x00"		    /* mov 0x323e65(%rip),%rdi */
	     "\x48\x8d\x15\xf6\x14\x31\x00"		    /* lea 0x3114f6(%rip),%rdx */
	     "\x31\xf6"					    /* xor %esi,%esi */
	     "\xe8\x4f\x4f\xfa\xff"			    /* call 38400 */
	     "\x49\x8b\x55\x28"				    /* mov 0x28(%r13),%rdx */
	     "\x48\x8b\x52\x28"				    /* mov 0x28(%rdx),%rdx */
	     "\x49\x89\x95\x48\x01\x00\x00"		    /* mov %rdx,0x148(%r13) */
	     "\x48\x89\x50\x20"				    /* mov %rdx,0x20(%rax) */
	     "\x48\x89\x42\x10"				    /* mov %rax,0x10(%rdx) */
	     "\x48\x8b\x45\x28"				    /* mov 0x28(%rbp),%rax */
	     "\x48\xc7\x82\x18\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x218(%rdx) */
	     "\xe9\x71\xff\xff\xff"),			    /* jmp 9344d */
	CODE(0x208410,					    /* rb_id2str */
	     "\x48\x89\xf8"				    /* mov %rdi,%rax */
	     "\x48\xc1\xe8\x04"				    /* shr $0x4,%rax */
	     "\x48\x81\xff\xa9\x00\x00\x00"		    /* cmp $0xa9,%rdi */
	     "\x0f\x47\xf8"				    /* cmova %eax,%edi */
	     "\x31\xf6"					    /* xor %esi,%esi */
	     "\xe9\x78\xdd\xff\xff"),			    /* jmp 2061a0 */
	CODE(0x2061a0,					    /* get_id_serial_entry */
	     "\x41\x55"					    /* push %r13 */
	     "\x41\x89\xf5"				    /* mov %esi,%r13d */
	     "\x41\x54"					    /* push %r12 */
	     "\x55"					    /* push %rbp */
	     "\x53"					    /* push %rbx */
	     "\x89\xfb"					    /* mov %edi,%ebx */
	     "\x48\x83\xec\x18"				    /* sub $0x18,%rsp */
	     "\x48\x8b\x2d\x3a\x74\x1a\x00" /* mov 0x1a743a(%rip),%rbp # GOT: the main ractor */
	     "\x64\x48\x8b\x04\x25\x28\x00\x00\x00" /* mov %fs:0x28,%rax */
	     "\x48\x89\x44\x24\x08"		    /* mov %rax,0x8(%rsp) */
	     "\x31\xc0"				    /* xor %eax,%eax */
	     "\x4c\x8b\x65\x00"			    /* mov 0x0(%rbp),%r12 */
	     "\x4d\x85\xe4"			    /* test %r12,%r12 */
	     "\x0f\x84\x9d\x00\x00\x00"		    /* je 206270 */
	     "\x31\xed"				    /* xor %ebp,%ebp */
	     "\x85\xff"				    /* test %edi,%edi */
	     "\x74\x67"				    /* je 206240 */
	     "\x39\x3d\xe1\x7f\x1a\x00"	      /* cmp %edi,0x1a7fe1(%rip) # global symbols.last_id */
	     "\x72\x5f"			      /* jb 206240 */
	     "\x48\x8b\x3d\xe8\x7f\x1a\x00"), /* mov 0x1a7fe8(%rip),%rdi # global symbols.ids */
	{ 0 },
};

static const struct code_piece x86_64_4_1[] = {
	CODE(0x90990,				/* rb_during_gc */
	     "\x48\x8b\x05\xe1\x0f\x7e\x00"	/* mov 0x7e0fe1(%rip),%rax # ruby_current_vm_ptr */
	     "\x48\x85\xc0"			/* test %rax,%rax */
	     "\x74\x14"				/* je 909b0 */
	     "\x48\x8b\x80\x58\x05\x00\x00"	/* mov 0x558(%rax),%rax */
	     "\x0f\xb6\x40\x4c"			/* movzbl 0x4c(%rax),%eax */
	     "\xc0\xe8\x05"			/* shr $0x5,%al */
	     "\x83\xe0\x01"			/* and $0x1,%eax */
	     "\xc3"				/* ret */
	     "\x66\x90"				/* xchg %ax,%ax */
	     "\x31\xc0"				/* xor %eax,%eax */
	     "\xc3"),				/* ret */
	CODE(0x909c0,				/* rb_gc_count */
	     "\x48\x8b\x05\xb1\x0f\x7e\x00"	/* mov 0x7e0fb1(%rip),%rax # ruby_current_vm_ptr */
	     "\x48\x8b\x80\x58\x05\x00\x00"	/* mov 0x558(%rax),%rax */
	     "\x48\x8b\x80\x78\x08\x00\x00"	/* mov 0x878(%rax),%rax */
	     "\xc3"),				/* ret */
	CODE(0x206970,				/* rb_thread_main */
	     "\x48\x8b\x05\xf9\xaf\x66\x00"	/* mov 0x66aff9(%rip),%rax # the main ractor */
	     "\x48\x85\xc0"			/* test %rax,%rax */
	     "\x74\x14"				/* je 206990 */
	     "\x48\x8b\x80\x80\x01\x00\x00"	/* mov 0x180(%rax),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\xc3"				/* ret */
	     "\x0f\x1f\x84\x00\x00\x00\x00\x00" /* nopl 0x0(%rax,%rax,1) */
	     "\x48\xc7\xc0\xb0\xff\xff\xff"	/* mov $0xffffffffffffffb0,%rax */
	     "\x64\x48\x8b\x00"			/* mov %fs:(%rax),%rax */
	     "\x48\x89\x44\x24\xf8"		/* mov %rax,-0x8(%rsp) */
	     "\x48\x8b\x44\x24\xf8"		/* mov -0x8(%rsp),%rax */
	     "\x48\x8b\x40\x30"			/* mov 0x30(%rax),%rax */
	     "\x48\x85\xc0"			/* test %rax,%rax */
	     "\x0f\x84\x47\xdc\xe4\xff"		/* je 545f9 */
	     "\x48\x8b\x40\x18"			/* mov 0x18(%rax),%rax */
	     "\x48\x8b\x80\x80\x01\x00\x00"	/* mov 0x180(%rax),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\xc3"),				/* ret */
	CODE(0x206950,				/* rb_thread_current */
	     "\x48\xc7\xc0\xb0\xff\xff\xff"	/* mov $0xffffffffffffffb0,%rax */
	     "\x64\x48\x8b\x00"			/* mov %fs:(%rax),%rax */
	     "\x48\x89\x44\x24\xf8"		/* mov %rax,-0x8(%rsp) */
	     "\x48\x8b\x44\x24\xf8"		/* mov -0x8(%rsp),%rax */
	     "\x48\x8b\x40\x30"			/* mov 0x30(%rax),%rax */
	     "\x48\x8b\x40\x10"			/* mov 0x10(%rax),%rax */
	     "\xc3"),				/* ret */
	CODE(0x250d00,				/* rb_current_ec_noinline */
	     "\x64\x48\x8b\x04\x25\xb0\xff\xff\xff"	    /* mov %fs:0xffffffffffffffb0,%rax */
	     "\xc3"),					    /* ret */
	CODE(0x570bb0,					    /* rb_fiber_current */
	     "\x48\x83\xec\x08"				    /* sub $0x8,%rsp */
	     "\xe8\x47\x01\xce\xff"			    /* call 250d00 */
	     "\x48\x8b\x40\x28"				    /* mov 0x28(%rax),%rax */
	     "\x48\x8b\x40\x10"				    /* mov 0x10(%rax),%rax */
	     "\x48\x83\xc4\x08"				    /* add $0x8,%rsp */
	     "\xc3"),					    /* ret */
	CODE(0x570fd0,					    /* rb_fiber_yield */
	     "\x55"					    /* push %rbp */
	     "\x48\x89\xf5"				    /* mov %rsi,%rbp */
	     "\x53"					    /* push %rbx */
	     "\x89\xfb"					    /* mov %edi,%ebx */
	     "\x48\x83\xec\x08"				    /* sub $0x8,%rsp */
	     "\xe8\x20\xfd\xcd\xff"			    /* call 250d00 */
	     "\x48\x8b\x40\x28"				    /* mov 0x28(%rax),%rax */
	     "\x48\x8b\xb8\x20\x02\x00\x00"		    /* mov 0x220(%rax),%rdi */
	     "\x48\x85\xff"				    /* test %rdi,%rdi */
	     "\x74\x38"					    /* je 571028 */
	     "\x48\x89\xea"				    /* mov %rbp,%rdx */
	     "\x89\xde"					    /* mov %ebx,%esi */
	     "\x41\xb9\x01\x00\x00\x00"			    /* mov $0x1,%r9d */
	     "\x45\x31\xc0"				    /* xor %r8d,%r8d */
	     "\x48\xc7\x80\x20\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x220(%rax) */
	     "\x31\xc9"					    /* xor %ecx,%ecx */
	     "\x48\xc7\x87\x28\x02\x00\x00\x00\x00\x00\x00" /* movq $0x0,0x228(%rdi) */
	     "\x48\x83\xc4\x08"				    /* add $0x8,%rsp */
	     "\x5b"					    /* pop %rbx */
	     "\x5d"					    /* pop %rbp */
	     "\xe9\x6f\xdc\xff\xff"			    /* jmp 56ec90 */
	     "\x0f\x1f\x80\x00\x00\x00\x00"		    /* nopl 0x0(%rax) */
	     "\xe8\x43\xc8\xff\xff"			    /* call 56d870 */
	     "\x0f\x1f\x00"),				    /* nopl (%rax) */
	CODE(0x1f2260,					    /* rb_id2str */
	     "\x41\x55"					    /* push %r13 */
	     "\x41\x54"					    /* push %r12 */
	     "\x55"					    /* push %rbp */
	     "\x53"					    /* push %rbx */
	     "\x48\x89\xfb"				    /* mov %rdi,%rbx */
	     "\x48\xc1\xeb\x04"				    /* shr $0x4,%rbx */
	     "\x48\x83\xec\x18"				    /* sub $0x18,%rsp */
	     "\x64\x48\x8b\x04\x25\x28\x00\x00\x00"	    /* mov %fs:0x28,%rax */
	     "\x48\x89\x44\x24\x08"			    /* mov %rax,0x8(%rsp) */
	     "\x31\xc0"					    /* xor %eax,%eax */
	     "\x48\x81\xff\xab\x00\x00\x00"		    /* cmp $0xab,%rdi */
	     "\x0f\x46\xdf"				    /* cmovbe %edi,%ebx */
	     "\x48\x83\x3d\xdd\xf6\x67\x00\x00" /* cmpq $0x0,0x67f6dd(%rip) # the main ractor */
	     "\x0f\x84\xdf\x00\x00\x00"		/* je 1f2378 */
	     "\x85\xdb"				/* test %ebx,%ebx */
	     "\x0f\x84\xb7\x00\x00\x00"		/* je 1f2358 */
	     "\x8b\x05\x29\x89\x67\x00"	      /* mov 0x678929(%rip),%eax # global symbols.next_id */
	     "\x39\xc3"			      /* cmp %eax,%ebx */
	     "\x0f\x83\xb1\x00\x00\x00"	      /* jae 1f2360 */
	     "\x48\x8b\x3d\x2a\x89\x67\x00"), /* mov 0x67892a(%rip),%rdi # global symbols.ids */
	{ 0 },
};

static const struct code_piece arm64_3_4[] = {
	CODE(0x105440,		  /* rb_during_gc */
	     "\x5f\x24\x03\xd5"	  /* hint #34 */
	     "\x40\x1e\x00\xd0"	  /* adrp x0, 4cf000 */
	     "\x00\xd4\x45\xf9"	  /* ldr x0, [x0, #2984] */
	     "\x00\x00\x40\xf9"	  /* ldr x0, [x0] */
	     "\xa0\x00\x00\xb4"	  /* cbz x0, 105464 */
	     "\x00\x94\x42\xf9"	  /* ldr x0, [x0, #1320] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\x00\x94\x65\xd3"	  /* ubfx x0, x0, #37, #1 */
	     "\xc0\x03\x5f\xd6"	  /* ret */
	     "\x00\x00\x80\x52"	  /* mov w0, #0 */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0x10546c,		  /* rb_gc_count */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbf\xa9"	  /* stp x29, x30, [sp, #-16]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\x1a\xf6\xfc\x97"	  /* bl 42ce0 */
	     "\x00\xf8\x41\xf9"	  /* ldr x0, [x0, #1008] */
	     "\xfd\x7b\xc1\xa8"	  /* ldp x29, x30, [sp], #16 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0x42ce0,		  /* PLT: rb_gc_get_objspace */
	     "\x50\x24\x00\xf0"	  /* adrp x16, 4cd000 */
	     "\x11\xd2\x43\xf9"	  /* ldr x17, [x16, #1952] */
	     "\x10\x82\x1e\x91"	  /* add x16, x16, #1952 */
	     "\x20\x02\x1f\xd6"), /* br x17 */
	CODE(0x1025f0,		  /* rb_gc_get_objspace */
	     "\x5f\x24\x03\xd5"	  /* hint #34 */
	     "\x60\x1e\x00\xb0"	  /* adrp x0, 4cf000 */
	     "\x00\xd4\x45\xf9"	  /* ldr x0, [x0, #2984] */
	     "\x00\x00\x40\xf9"	  /* ldr x0, [x0] */
	     "\x00\x94\x42\xf9"	  /* ldr x0, [x0, #1320] */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0x252768,		  /* rb_thread_main */
	     "\x5f\x24\x03\xd5"	  /* hint #34 */
	     "\xe0\x13\x00\xb0"	  /* adrp x0, 4cf000 */
	     "\x00\xc0\x41\xf9"	  /* ldr x0, [x0, #896] */
	     "\x00\x00\x40\xf9"	  /* ldr x0, [x0] */
	     "\x80\x00\x00\xb4"	  /* cbz x0, 252788 */
	     "\x00\xcc\x40\xf9"	  /* ldr x0, [x0, #408] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\xc0\x03\x5f\xd6"	  /* ret */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbf\xa9"	  /* stp x29, x30, [sp, #-16]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\xec\xda\x00\x94"	  /* bl 289344 */
	     "\x00\x18\x40\xf9"	  /* ldr x0, [x0, #48] */
	     "\xe0\x00\x00\xb4"	  /* cbz x0, 2527b8 */
	     "\x00\x0c\x40\xf9"	  /* ldr x0, [x0, #24] */
	     "\xfd\x7b\xc1\xa8"	  /* ldp x29, x30, [sp], #16 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\x00\xcc\x40\xf9"	  /* ldr x0, [x0, #408] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\xc0\x03\x5f\xd6"	  /* ret */
	     "\x00\xcc\x40\xf9"	  /* ldr x0, [x0, #408] */
	     "\x00\x7d\x20\xd4"), /* brk # 3e8 */
	CODE(0x252140,		  /* rb_thread_current */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbf\xa9"	  /* stp x29, x30, [sp, #-16]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\x7e\xdc\x00\x94"	  /* bl 289344 */
	     "\x00\x18\x40\xf9"	  /* ldr x0, [x0, #48] */
	     "\xfd\x7b\xc1\xa8"	  /* ldp x29, x30, [sp], #16 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0x289344,		  /* rb_current_ec */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbf\xa9"	  /* stp x29, x30, [sp, #-16]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\x20\x12\x00\xd0"	  /* adrp x0, 4cf000 */
	     "\x01\x78\x41\xf9"	  /* ldr x1, [x0, #752] */
	     "\x00\xc0\x0b\x91"	  /* add x0, x0, #752 */
	     "\x20\x00\x3f\xd6"	  /* blr x1 */
	     "\x41\xd0\x3b\xd5"	  /* mrs x1, TPIDR_EL0 */
	     "\xfd\x7b\xc1\xa8"	  /* ldp x29, x30, [sp], #16 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\x20\x68\x60\xf8"	  /* ldr x0, [x1, x0] */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0xc6024,		  /* rb_fiber_current */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbe\xa9"	  /* stp x29, x30, [sp, #-32]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\xc5\x0c\x07\x94"	  /* bl 289344 */
	     "\xe3\x03\x00\xaa"	  /* mov x3, x0 */
	     "\x00\x14\x40\xf9"	  /* ldr x0, [x0, #40] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\x80\x00\x00\xb4"	  /* cbz x0, c6050 */
	     "\xfd\x7b\xc2\xa8"	  /* ldp x29, x30, [sp], #32 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\xc0\x03\x5f\xd6"	  /* ret */
	     "\x80\x20\x00\xf0"	  /* adrp x0, 4d9000 */
	     "\x01\x00\x80\xd2"	  /* mov x1, #0 */
	     "\x64\x18\x40\xf9"	  /* ldr x4, [x3, #48] */
	     "\xc2\x1f\x00\xb0"	  /* adrp x2, 4bf000 */
	     "\x00\xb4\x45\xf9"	  /* ldr x0, [x0, #2920] */
	     "\x42\x40\x3f\x91"	  /* add x2, x2, #4048 */
	     "\xe4\x0f\x01\xa9"	  /* stp x4, x3, [sp, #16] */
	     "\x35\xff\xfd\x97"	  /* bl 45d40 */
	     "\xe4\x0f\x41\xa9"	  /* ldp x4, x3, [sp, #16] */
	     "\x81\x18\x40\xf9"	  /* ldr x1, [x4, #48] */
	     "\x21\x14\x40\xf9"	  /* ldr x1, [x1, #40] */
	     "\x81\xd8\x00\xf9"	  /* str x1, [x4, #432] */
	     "\x01\x10\x00\xf9"	  /* str x1, [x0, #32] */
	     "\x20\x08\x00\xf9"	  /* str x0, [x1, #16] */
	     "\x60\x14\x40\xf9"	  /* ldr x0, [x3, #40] */
	     "\x3f\xc8\x01\xf9"	  /* str xzr, [x1, #912] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\xfd\x7b\xc2\xa8"	  /* ldp x29, x30, [sp], #32 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0xc6360,		  /* rb_fiber_yield */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xfd\x7b\xbd\xa9"	  /* stp x29, x30, [sp, #-48]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\xf3\x53\x01\xa9"	  /* stp x19, x20, [sp, #16] */
	     "\xf4\x03\x01\xaa"	  /* mov x20, x1 */
	     "\xf3\x03\x00\x2a"	  /* mov w19, w0 */
	     "\xf3\x0b\x07\x94"	  /* bl 289344 */
	     "\xe3\x03\x00\xaa"	  /* mov x3, x0 */
	     "\x01\x14\x40\xf9"	  /* ldr x1, [x0, #40] */
	     "\x20\x08\x40\xf9"	  /* ldr x0, [x1, #16] */
	     "\x60\x02\x00\xb4"	  /* cbz x0, c63d4 */
	     "\x20\xbc\x41\xf9"	  /* ldr x0, [x1, #888] */
	     "\x80\x01\x00\xb4"	  /* cbz x0, c63c0 */
	     "\x3f\xbc\x01\xf9"	  /* str xzr, [x1, #888] */
	     "\xe2\x03\x14\xaa"	  /* mov x2, x20 */
	     "\x1f\xc0\x01\xf9"	  /* str xzr, [x0, #896] */
	     "\xe1\x03\x13\x2a"	  /* mov w1, w19 */
	     "\x25\x00\x80\x52"	  /* mov w5, #1 */
	     "\x04\x00\x80\xd2"	  /* mov x4, #0 */
	     "\xf3\x53\x41\xa9"	  /* ldp x19, x20, [sp, #16] */
	     "\x03\x00\x80\x52"	  /* mov w3, #0 */
	     "\xfd\x7b\xc3\xa8"	  /* ldp x29, x30, [sp], #48 */
	     "\xbf\x23\x03\xd5"	  /* hint #29 */
	     "\xa1\xf9\xff\x17"), /* b c4a40 */
	CODE(0x247640,		  /* rb_id2str */
	     "\x5f\x24\x03\xd5"	  /* hint #34 */
	     "\x02\xfc\x44\xd3"	  /* lsr x2, x0, #4 */
	     "\x1f\xa8\x02\xf1"	  /* cmp x0, #170 */
	     "\x40\x80\x80\x9a"	  /* csel x0, x2, x0, hi */
	     "\x01\x00\x80\x52"	  /* mov w1, #0 */
	     "\xab\xf7\xff\x17"), /* b 245500 */
	CODE(0x245500,		  /* get_id_serial_entry */
	     "\x3f\x23\x03\xd5"	  /* hint #25 */
	     "\xff\x43\x01\xd1"	  /* sub sp, sp, #80 */
	     "\xe2\x03\x00\x2a"	  /* mov w2, w0 */
	     "\x40\x14\x00\xd0"	  /* adrp x0, 4cf000 */
	     "\x00\xd0\x42\xf9"	  /* ldr x0, [x0, #1440] */
	     "\xfd\x7b\x03\xa9"	  /* stp x29, x30, [sp, #48] */
	     "\xfd\xc3\x00\x91"	  /* add x29, sp, #48 */
	     "\xf3\x23\x00\xf9"	  /* str x19, [sp, #64] */
	     "\xf3\x03\x01\x2a"	  /* mov w19, w1 */
	     "\x01\x00\x40\xf9"	  /* ldr x1, [x0] */
	     "\xe1\x17\x00\xf9"	  /* str x1, [sp, #40] */
	     "\x01\x00\x80\xd2"	  /* mov x1, #0 */
	     "\x41\x14\x00\xd0"	  /* adrp x1, 4cf000 */
	     "\x21\xc0\x41\xf9"	  /* ldr x1, [x1, #896] */
	     "\x23\x00\x40\xf9"	  /* ldr x3, [x1] */
	     "\x43\x06\x00\xb4"	  /* cbz x3, 245604 */
	     "\xe2\x01\x00\x35"), /* cbnz w2, 24557c */
	CODE(0x24557c,		  /* get_id_serial_entry, continued */
	     "\x40\x14\x00\xf0"	  /* adrp x0, 4d0000 */
	     "\x01\x50\x41\xb9"	  /* ldr w1, [x0, #336] */
	     "\x5f\x00\x01\x6b"	  /* cmp w2, w1 */
	     "\xe8\xfd\xff\x54"	  /* b.hi 245544 */
	     "\x00\x40\x05\x91"	  /* add x0, x0, #336 */
	     "\x41\x7c\x09\x53"	  /* lsr w1, w2, #9 */
	     "\x00\x08\x40\xf9"), /* ldr x0, [x0, #16] */
	{ 0 },
};

static const struct code_piece arm64_3_1[] = {
	CODE(0xc9504,		  /* rb_during_gc */
	     "\xa0\x15\x00\xd0"	  /* adrp x0, 37f000 */
	     "\x00\x00\x46\xf9"	  /* ldr x0, [x0, #3072] */
	     "\x00\x00\x40\xf9"	  /* ldr x0, [x0] */
	     "\x00\x34\x42\xf9"	  /* ldr x0, [x0, #1128] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\x00\x14\x05\x53"	  /* ubfx w0, w0, #5, #1 */
	     "\xc0\x03\x5f\xd6"), /* ret */
	CODE(0x1febf0,		  /* rb_thread_current */
	     "\x41\xd0\x3b\xd5"	  /* mrs x1, TPIDR_EL0 */
	     "\xfd\x7b\xbf\xa9"	  /* stp x29, x30, [sp, #-16]! */
	     "\xfd\x03\x00\x91"	  /* mov x29, sp */
	     "\x00\x0c\x00\xb0"	  /* adrp x0, 37f000 */
	     "\x02\xf4\x41\xf9"	  /* ldr x2, [x0, #1000] */
	     "\x00\xa0\x0f\x91"	  /* add x0, x0, #1000 */
	     "\x40\x00\x3f\xd6"	  /* blr x2 */
	     "\x20\x68\x60\xf8"	  /* ldr x0, [x1, x0] */
	     "\xfd\x7b\xc1\xa8"	  /* ldp x29, x30, [sp], #16 */
	     "\x00\x18\x40\xf9"	  /* ldr x0, [x0, #48] */
	     "\x00\x08\x40\xf9"	  /* ldr x0, [x0, #16] */
	     "\xc0\x03\x5f\xd6"), /* ret */
	{ 0 },
};

#endif
