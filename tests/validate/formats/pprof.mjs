// SPDX-License-Identifier: GPL-2.0-only
//
// Go's pprof: functions, lines, labels and whole stacks.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function missing() {
	try {
		execFileSync('go', ['version'], { stdio: 'ignore' });
		return null;
	} catch {
		return 'no go';
	}
}

export const open = dir => ({ dir });

function pprof(consumer, ...args) {
	return execFileSync('go', ['tool', 'pprof', '-nodecount=0', '-nodefraction=0', '-edgefraction=0',
		...args, join(consumer.dir, 'profile.pb.gz')], {
		encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'ignore'],
		env: { ...process.env, GOFLAGS: '', HOME: consumer.dir, PPROF_TMPDIR: consumer.dir },
	});
}

// The table of -top: {name: "flat cum"}. Names may hold anything but the end of a line.
function top(text) {
	const rows = new Map();
	const [, table] = text.split(/^ +flat +flat% +sum% +cum +cum%$/m);

	for (const line of table.split('\n')) {
		const m = line.match(/^ *(-?\d+)\S* +\S+% +\S+% +(\d+)\S* +\S+%  ?(.*)$/);

		if (m)
			rows.set(m[3].trim(), `${m[1]} ${m[2]}`);
	}
	return rows;
}

const expectedTop = (sums, self, total) =>
	new Map([...sums].filter(([, s]) => s[total]).map(([key, s]) => [key, `${s[self]} ${s[total]}`]));

// The calls of -peek: {"caller\ncallee": value}. Callers stand above a function, callees below it.
function peek(text) {
	const edges = new Map();

	for (const block of text.split(/^-+\+-+$/m).slice(2)) {
		const lines = block.split('\n');
		const focus = /^ *\d+\S* +\S+% +\S+% +\d+\S* +\S+% +\| (.*)$/;
		const at = lines.findIndex(l => focus.test(l));

		lines.forEach((line, i) => {
			const m = line.match(/^ +(\d+)\S* +\S+% \|   (.*)$/);

			if (!m)
				return;
			const [name, self] = [m[2].trim(), lines[at].match(focus)[1].trim()];
			edges.set(i < at ? `${name}\n${self}` : `${self}\n${name}`, +m[1]);
		});
	}
	return edges;
}

// pprof has no calls of a function by itself, and none of no time.
const expectedPeek = edges => new Map([...edges].filter(([edge, value]) => {
	const [caller, callee] = edge.split('\n');

	return value && caller && callee && caller !== callee;
}));

// As pprof prints a function with its file and line.
function lineOf(f) {
	const file = f.file;
	const line = f.kind === 'cfunc' ? 0 : f.line;

	return `${f.name} ${file}${line ? `:${line}` : ''}`.trim();
}

// The stacks of -traces: "value|innermost|…|outermost", sorted.
function traces(text) {
	const stacks = [];

	for (const block of text.split(/^-+\+-+\n/m).slice(1)) {
		const lines = block.split('\n').filter(l => !/^ *(comm|thread|pid|tid|state|request): /.test(l));
		const m = lines[0].match(/^ *(\d+)\S*  ? ?(.*)$/);

		if (m && +m[1])
			stacks.push([m[1], m[2], ...lines.slice(1)].map(s => s.trim()).filter(s => s !== '').join('|'));
	}
	return stacks.sort();
}

// The samples of the same thread with the same stack, request and state are one. pprof knows no kinds of functions.
function expectedTraces(recording) {
	const sums = new Map();

	for (const s of recording.samples) {
		const { tid, name, process } = recording.threads[s.thread];
		const key = JSON.stringify([recording.processes[process].pid, tid, name, s.frames.map(f =>
			[f.name, f.place, f.funcLine, f.kind === 'cfunc' ? 0 : f.line, f.module, f.address]),
		s.requestName, recording.hasWaits && recording.stateOf(s)]);

		sums.set(key, { names: s.frames.map(f => f.name.trim()), value: (sums.get(key)?.value ?? 0) + s.value });
	}
	return [...sums.values()].filter(s => s.value).map(s => [s.value, ...s.names].join('|')).sort();
}

// A number gets the unit that -unit names, whatever it is.
function tags(text, tag) {
	const found = new Map();
	const block = text.split(/\n\n/).find(b => b.trim().startsWith(`${tag}:`));

	for (const m of (block ?? '').matchAll(/^ *(\d+)\S* \( *\S+%\): (.*)$/gm))
		if (+m[1]) // it lists those of other events, too
			found.set(/^(pid|tid)$/.test(tag) ? m[2].replace(/ns$/, '') : m[2], +m[1]);
	return found;
}

function expectedTags(recording, label) {
	const sums = new Map();

	for (const s of recording.samples)
		if (label(s) !== undefined)
			sums.set(label(s), (sums.get(label(s)) ?? 0) + s.value);
	return new Map([...sums].filter(([, value]) => value));
}

export function validate(consumer, recording, { check, checkMaps }) {
	writeFileSync(join(consumer.dir, 'profile.pb.gz'), recording.export('pprof'));
	recording = recording.withPlaceholder();
	const byName = recording.sums(f => f.name.trim());
	const thread = s => recording.threads[s.thread];

	checkMaps(top(pprof(consumer, '-top', '-unit=ns')), expectedTop(byName, 'self', 'total'), 'time');
	checkMaps(top(pprof(consumer, '-top', '-sample_index=samples')),
		expectedTop(byName, 'samples', 'total_samples'), 'samples');
	checkMaps(top(pprof(consumer, '-top', '-unit=ns', '-lines')),
		expectedTop(recording.sums(lineOf), 'self', 'total'), 'lines');
	checkMaps(peek(pprof(consumer, '-peek', '.*', '-unit=ns')),
		expectedPeek(recording.edges(f => f.name.trim())), 'callers and callees');
	const tagText = pprof(consumer, '-tags', '-unit=ns');
	checkMaps(tags(tagText, 'tid'), expectedTags(recording, s => `${thread(s).tid}`), 'tid');
	checkMaps(tags(tagText, 'pid'),
		expectedTags(recording, s => `${recording.processes[thread(s).process].pid}`), 'pid');
	checkMaps(tags(tagText, 'thread'), expectedTags(recording, s => thread(s).name || '[unnamed]'), 'thread');

	for (const event of recording.events) {
		const samples = recording.of(event).withPlaceholder();
		const index = `-sample_index=${event}`;

		checkMaps(top(pprof(consumer, '-top', index, '-unit=ns')),
			expectedTop(samples.sums(f => f.name.trim()), 'self', 'total'), event);
		const text = pprof(consumer, '-tags', index, '-unit=ns');
		checkMaps(tags(text, 'request'), expectedTags(samples, s => s.requestName), `${event}: request`);
		// What others waited is of no state of this thread, but for one that waited meanwhile.
		const hasState = s => samples.hasWaits && (!/caused|wakeup/.test(event) || samples.waits(s));

		checkMaps(tags(text, 'state'), expectedTags(samples, s => hasState(s) ? samples.stateOf(s) : undefined),
			`${event}: state`);
	}

	const got = traces(pprof(consumer, '-traces', '-unit=ns')), expected = expectedTraces(recording);
	const at = expected.findIndex((e, i) => e !== got[i]);
	check(got.length === expected.length && at < 0,
		`traces: ${got.length}, not ${expected.length}: ${got[at]?.slice(0, 200)}, not ${expected[at]?.slice(0, 200)}`);
}
