// SPDX-License-Identifier: GPL-2.0-only
//
// When a thread has which stack, as src/export/stack_times.h says: what formats whose consumers take the time of a sample
// for the start of its stack must have.

// Of the samples of one thread, or of several with the same ids, in the order of the recording: [{ts, end, value, frames, runs}], times in ns since the
// start of the recording; a last one, without frames, ends the one before.
export function stackTimes(recording, samples) {
	const stacks = [];
	let end = 0, thread, afterWait;
	const add = (ts, value, frames, runs) => {
		if (stacks.length)
			stacks.at(-1).end = ts;
		stacks.push({ ts, end: ts, value, frames, runs });
	};

	for (const s of samples) {
		const ts = s.ts_ns - recording.meta.start_ns;
		const waits = recording.hasWaits && s.frames[0]?.kind === 'wait';
		let start = Math.max(ts - s.value, end, 0);
		const late = start - end;

		if (!stacks.length || !late)
			;
		else if (s.thread !== thread || (!recording.hasWaits && late > s.value))
			add(end, 0, [], false); // a pause
		else if (!waits)
			start = end;
		else if (afterWait)
			add(end, 0, afterWait, true);
		add(start, s.value, s.frames, !waits);
		end = Math.max(ts, end);
		thread = s.thread;
		afterWait = waits ? s.frames.filter(f => f.kind !== 'wait') : undefined;
	}
	add(end, 0, [], false);
	return stacks;
}

// What @key of frames has of the time, self and total, in ns: one of Recording.sums().
export const timesOf = (recording, stacks, key) =>
	recording.sums(key, { samples: stacks.map(s => ({ ...s, value: s.end - s.ts })) });
