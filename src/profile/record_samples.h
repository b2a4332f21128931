/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What becomes of the samples of a recording while it is decoded: those of the event and the times
 * that are selected are added up, kept or given to whoever takes them.
 */
#ifndef RBPF_PROFILE_RECORD_SAMPLES_H
#define RBPF_PROFILE_RECORD_SAMPLES_H

struct profile_sample;
struct record_decoder;

/*
 * Take @recorded, as it is in the file. Returns 0, -ENOMEM, -EBADMSG, or what .take or .take_wait
 * has returned.
 */
int record_samples_add(struct record_decoder *d, const struct profile_sample *recorded);

/* @arg: the decoder. Take a wait that is over, as wait_lengths.h tells it. Returns as above. */
int record_samples_take_wait(void *arg, const struct profile_sample *wait);

/* After the last one: count the waits that went on. Returns as above. */
int record_samples_end(struct record_decoder *d);

/*
 * After the last one, and wait_causes(): select the wakeups that ended one of
 * @d->wakeups.reasons, if there are any. Returns 0, -ENOMEM or -EBADMSG.
 */
int record_samples_add_wakeups(struct record_decoder *d);

/* Add up those that were only collected so far. Returns 0, -ENOMEM or -EBADMSG. */
int record_samples_flush(struct record_decoder *d);

#endif
