/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Labels of methods whose names differ from process to process, although they are the same code.
 *
 * Template engines compile a template to a method, and put a counter or a hash into its name. The
 * name is recorded as it is; whoever shows a frame shows its label, which is the same in all
 * processes and boots. A label is made only of what is certain: where the name and the file do not
 * agree, the name stays.
 */
#ifndef RBPF_PROFILE_FRAME_LABEL_H
#define RBPF_PROFILE_FRAME_LABEL_H

#include <stdbool.h>

#include "profile/profile.h"

struct buf;

/*
 * Append the label of a frame of @kind to @out, whose recorded name is @name ("block in Foo#bar")
 * and source file @file. Returns false, and appends nothing, if the name is the label.
 *
 * The method of a template becomes the path of the template: of one in a gem from the name of the
 * gem on ("devise-4.9.3/app/views/devise/sessions/new.html.erb"), else relative to the root of the
 * application as the template engine or the path tells it ("app/views/orders/_order.html.erb").
 */
bool frame_label(enum frame_kind kind, const char *name, const char *file, struct buf *out);

/*
 * Make the name of @frame, which is the recorded one, its label, and keep the recorded one in
 * raw_name if they differ. @scratch is overwritten. Returns 0, -ENOMEM or -E2BIG (intern_add()),
 * then with @frame unchanged.
 */
int profile_frame_set_label(struct profile *p, struct profile_frame *frame, struct buf *scratch);

#endif
