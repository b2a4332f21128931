/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of classes, which each generation of Rubies keeps somewhere else (enum ruby_class_form).
 * As with all objects (object.h) what is read may be garbage, and is checked.
 */
#ifndef RBPF_RUBY_CLASS_H
#define RBPF_RUBY_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct ruby_layout;
struct ruby_vm;

/*
 * Bytes of a class, from its start, that must be read to find its name and the object of a
 * singleton.
 */
size_t ruby_class_size(const struct ruby_layout *l);

/*
 * Append the permanent name of class or module @klass. -ENOENT if it has none (anonymous, or only a
 * temporary name), which is no failure.
 */
int ruby_class_name(const struct ruby_vm *vm, uint64_t klass, struct buf *out);

/*
 * In which word of a class or module (after inclusion) its superclass is; 0 if that is not known.
 * It is searched for in this process: by it the singleton class of Object leads to Class, Module
 * and Object.
 */
uint32_t ruby_class_super_word(const struct ruby_vm *vm);

/*
 * Append what stands before a method's name for its @owner, as Ruby 3.4 writes it (vm_backtrace.c
 * gen_method_name): "Foo#", "Foo." for a singleton of a class or module, nothing for anonymous
 * owners.
 */
int ruby_owner_prefix(const struct ruby_vm *vm, uint64_t owner, struct buf *out);

/*
 * Up to 3.2 names are instance variables: learn where they are from rb_cObject (@object), whose
 * name and singleton class are known. @vm_addr is the address of the rb_vm_t. Sets vm->class_keys.
 */
int ruby_class_keys_learn(struct ruby_vm *vm, uint64_t object, uint64_t vm_addr);

#endif
