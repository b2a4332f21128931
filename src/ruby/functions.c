/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/functions.h"

#include <string.h>

#include "base/array.h"
#include "base/prefix.h"

/*
 * vm*.c, eval.c, cont.c, thread.c, proc.c, 2.7 to 4.1; the rb_*jit_ are those of yjit.c, zjit.c,
 * rjit.c
 */
bool ruby_function_is_glue(const char *name)
{
	static const char *const prefixes[] = {
		"vm_",
		"rb_vm_",
		"rb_yield",
		"rb_funcall",
		"rb_call",
		"rb_check_funcall",
		"rb_block_call",
		"rb_iterate",
		"rb_ensure",
		"rb_protect",
		"rb_rescue",
		"rb_ec_",
		"invoke_",
		"rb_method_",
		"rb_proc_call",
		"rb_lambda_call",
		"rb_obj_call_init",
		"rb_class_new_instance",
		"rb_catch",
		"rb_eval",
		"eval_",
		"yield_",
		"rb_jump_",
		"ruby_exec_",
		"ruby_run_node",
		"thread_start_",
		"thread_do_start",
		"rb_fiber_start",
		"fiber_entry",
		"rb_mod_module_eval",
		"rb_obj_instance_eval",
		"rb_obj_instance_exec",
		"send_internal",
		"rb_f_send",
		"rb_yjit_",
		"rb_zjit_",
		"rb_rjit_",
		"jit_exec",
		"proc_call",
		"catch_i",
	};

	return begins_with_any(name, prefixes, ARRAY_SIZE(prefixes));
}

/* gc.c; from 3.4 on gc/default/default.c */
bool ruby_function_is_collection(const char *name)
{
	static const char *const prefixes[] = {
		"garbage_collect", "gc_start",	  "gc_enter",	      "gc_marks",    "gc_sweep",
		"gc_rest",	   "gc_continue", "rb_gc_impl_start", "heap_prepare"
	};

	return begins_with_any(name, prefixes, ARRAY_SIZE(prefixes));
}

/* "rb_wb_protected_newobj_of", "rb_str_new", "ruby_xmalloc", "rb_obj_alloc" */
bool ruby_function_allocates(const char *name)
{
	return strstr(name, "newobj") || strstr(name, "_new") || strstr(name, "alloc");
}
