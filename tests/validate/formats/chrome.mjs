// SPDX-License-Identifier: GPL-2.0-only
//
// The Trace Event Format: its schema, which is strict about what rbpf writes; speedscope's importer of the stacks,
// and, of a file without these, of the complete events. Perfetto's own reader is in no registry that is used here.
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { expectedMarkers } from './firefox.mjs';
import * as speedscope from './speedscope.mjs';
import { stackTimes, timesOf } from './stack_times.mjs';

const require = createRequire(join(process.env.NODE_MODULES, 'package.json'));

const strict = (properties, required = Object.keys(properties)) =>
	({ type: 'object', properties, required, additionalProperties: false });
const number = { type: 'number', minimum: 0 }, id = { type: 'integer', minimum: 0 }, string = { type: 'string' };
const ids = { pid: id, tid: id };

const schema = strict({
	displayTimeUnit: { const: 'ms' },
	otherData: { type: 'object', additionalProperties: string },
	traceEvents: { type: 'array', minItems: 1, items: { oneOf: [
		strict({ ph: { const: 'M' }, name: { enum: ['process_name', 'thread_name'] }, ts: { const: 0 }, ...ids,
			args: strict({ name: { type: 'string', minLength: 1 } }) }),
		strict({ ph: { const: 'X' }, cat: { const: 'wait' }, name: string, ...ids, ts: number, dur: number,
			args: strict({ state: string }) }),
		strict({ ph: { const: 'X' }, cat: { const: 'request' }, name: string, ...ids, ts: number, dur: number,
			args: strict({ framework: string }) }),
		strict({ ph: { const: 'X' }, cat: { const: 'gc' }, name: string, ...ids, ts: number, dur: number }),
	] } },
	stackFrames: { type: 'object', propertyNames: { pattern: '^[1-9][0-9]*$' }, additionalProperties:
		strict({ name: { type: 'string', minLength: 1 }, category: { type: 'string', minLength: 1 },
			parent: { type: 'integer', minimum: 1 } }, ['name', 'category']) },
	samples: { type: 'array', items: strict({ ...ids, cpu: id, ts: number, name: string,
		sf: { type: 'integer', minimum: 1 }, weight: id }, ['pid', 'tid', 'cpu', 'ts', 'name', 'weight']) },
});

export async function open(dir) {
	const Ajv = require('ajv').default;

	return { ...await speedscope.open(dir), trace: new Ajv().compile(schema) };
}

export const close = speedscope.close;

const nanos = us => Math.round(us * 1e3);
const types = { wait: 'Wait', request: 'Request', gc: 'GC' };

// As firefox.mjs has them: [start, end, type, what], in ns.
const spanOf = e => JSON.stringify([nanos(e.ts), nanos(e.ts + e.dur), types[e.cat],
	{ wait: e.args?.state, request: e.name, gc: '' }[e.cat]]);

const keyOf = f => JSON.stringify([f.name, f.place || f.kind]);

// Threads are those of the recording, by "pid tid"; of each the samples of the file in their order.
function checkSamples(file, threads, stacks, check) {
	const framesOf = sf => {
		const frames = [];

		for (; sf; sf = file.stackFrames[sf].parent)
			frames.push([file.stackFrames[sf].name, file.stackFrames[sf].category]);
		return frames;
	};
	const byThread = new Map([...threads.keys()].map(thread => [thread, []]));

	for (const s of file.samples)
		byThread.get(`${s.pid} ${s.tid}`).push(s);
	for (const [thread, got] of byThread) {
		const cpus = new Set(threads.get(thread).map(s => s.cpu));

		check(got.every(s => cpus.has(s.cpu)), `thread ${thread}: CPUs`);
		check(got.every((s, i) => !i || s.ts >= got[i - 1].ts), `thread ${thread}: times go back`);
		check(got.length === stacks.get(thread).length, `thread ${thread}: ${got.length} samples`);
		for (const [i, s] of stacks.get(thread).entries())
			check(JSON.stringify([nanos(got[i].ts), got[i].weight, framesOf(got[i].sf)]) ===
				JSON.stringify([s.ts, s.value, s.frames.map(f => [f.name, f.place || f.kind])]),
			`thread ${thread}: sample ${i}`);
	}
}

// Spans of one thread lie within each other or beside each other.
function checkNesting(spans, check) {
	const sorted = spans.map(e => [nanos(e.ts), nanos(e.ts + e.dur)]).sort((a, b) => a[0] - b[0] || b[1] - a[1]);
	const open = [];

	for (const [start, end] of sorted) {
		while (open.length && open.at(-1) <= start)
			open.pop();
		check(!open.length || end <= open.at(-1), `a span from ${start} to ${end} ends after ${open.at(-1)}`);
		open.push(end);
	}
}

// What speedscope calls the profile of a thread ends with its ids.
const idsOf = profile => profile.name.match(/\(?pid (\d+)\)?, .*tid (\d+)\)$/)?.slice(1).join(' ');

export async function validate(consumer, recording, { check, checkMaps }) {
	const file = JSON.parse(recording.export('chrome'));
	recording = recording.ofAllTime();
	const threadOf = s => `${recording.processes[recording.threads[s.thread].process].pid} ${recording.threads[s.thread].tid}`;
	const threads = new Map();

	for (const s of recording.samples)
		threads.set(threadOf(s), [...threads.get(threadOf(s)) ?? [], s]);
	check(consumer.trace(file), `schema: ${JSON.stringify(consumer.trace.errors)?.slice(0, 300)}`);
	const stacks = new Map([...threads].map(([thread, samples]) => [thread, stackTimes(recording, samples)]));
	checkSamples(file, threads, stacks, check);

	const spans = file.traceEvents.filter(e => e.ph === 'X');
	const byThread = Map.groupBy?.(recording.samples, s => s.thread) ??
		recording.samples.reduce((map, s) => map.set(s.thread, [...map.get(s.thread) ?? [], s]), new Map());
	const expected = [...byThread.values()].flatMap(samples => expectedMarkers(recording, samples, true))
		.map(m => JSON.parse(m)).map(([start, end, ...rest]) => JSON.stringify([nanos(start * 1e3), nanos(end * 1e3), ...rest]));
	const got = spans.map(spanOf).sort(), at = expected.sort().findIndex((m, i) => m !== got[i]);
	check(got.length === expected.length && at < 0, `waits, requests, collections: ${got[at]}, not ${expected[at]}`);
	for (const thread of threads.keys())
		checkNesting(spans.filter(e => `${e.pid} ${e.tid}` === thread), check);

	await checkStacks(consumer, recording, file, stacks, check, checkMaps);
	if (spans.some(e => e.dur))
		await checkSpans(consumer, recording, file, spans, check, checkMaps);
}

const load = (consumer, recording, file) =>
	speedscope.load(consumer, `${recording.name}.json`, Buffer.from(JSON.stringify(file)));

// speedscope takes the time up to the next sample of the thread for the weight of one, in µs. That of waits must be what
// the recording says, and that of CPU time all between them.
async function checkStacks(consumer, recording, file, stacks, check, checkMaps) {
	const { profiles, errors } = await load(consumer, recording, file);
	const rounded = (name, self, total) => [name, '', 0, +self.toFixed(3), +total.toFixed(3)];

	check(!errors.length, errors.join('; '));
	check(profiles.length === stacks.size, `${profiles.length} profiles, not ${stacks.size}`);
	for (const profile of profiles) {
		const sums = timesOf(recording, stacks.get(idsOf(profile)) ?? [], keyOf);
		const some = frames => speedscope.rows(frames.filter(f => f[4] > 0));

		checkMaps(some(profile.frames.map(([name, , , self, total]) => rounded(name, self, total))),
			some([...sums].map(([key, s]) => rounded(JSON.parse(key)[0], s.self / 1e3, s.total / 1e3))), profile.name);
	}
}

// Each span is a function to speedscope, whose time it adds up by name and arguments. It adds a floating point start
// and length, and then takes spans that end together for ones that overlap: so it is given whole numbers, of ns. Nor does
// it know where a span without length ends that begins when another one ends.
async function checkSpans(consumer, recording, file, spans, check, checkMaps) {
	const { profiles, errors } = await load(consumer, recording, { traceEvents: file.traceEvents.filter(e =>
		e.ph !== 'X' || e.dur).map(e => e.ph === 'X' ? { ...e, ts: nanos(e.ts), dur: nanos(e.dur) } : e) });
	const got = new Map(), expected = new Map();
	const add = (map, name, ns) => map.set(name, (map.get(name) ?? 0) + ns);

	check(!errors.length, errors.join('; '));
	for (const { frames } of profiles)
		for (const [name, , , , total] of frames.filter(f => f[4]))
			add(got, name, total);
	for (const e of spans.filter(e => e.dur))
		add(expected, e.args ? `${e.name} ${JSON.stringify(e.args)}` : e.name, nanos(e.dur));
	checkMaps(got, expected, 'spans');
}
