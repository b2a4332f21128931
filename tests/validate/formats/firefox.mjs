// SPDX-License-Identifier: GPL-2.0-only
//
// The Firefox Profiler's own code behind profiler-cli, which needs a newer Node than Debian's: FIREFOX_NODE
// names the folder with both.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { stackTimes } from './stack_times.mjs';

const run = promisify(execFile);
const bin = join(process.env.FIREFOX_NODE ?? '', 'node_modules/.bin');
const MAX_THREADS = 3; // that are asked for one by one: each question starts a process

export const missing = () => existsSync(join(bin, 'profiler-cli')) ? null : 'no profiler-cli';

// Sockets have short names.
export const open = dir => ({ dir, sessions: mkdtempSync('/tmp/rbpf-fx-') });
export const close = consumer => rmSync(consumer.sessions, { recursive: true, force: true });

async function cli(consumer, ...args) {
	const { stdout } = await run('profiler-cli', args, {
		maxBuffer: 1 << 30,
		env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, PROFILER_CLI_SESSION_DIR: consumer.sessions },
	});

	return stdout;
}

// A daemon holds the profile. If it takes more than 500 ms to start, the command gives up, but not the daemon.
async function load(consumer, path, session) {
	const daemons = [];

	for (let attempt = 0; ; attempt++) {
		try {
			await cli(consumer, 'load', path, '--session', session);
			break;
		} catch (e) {
			const late = `${e.stderr}`.match(/did not become ready[^]*as pid (\d+)/);

			if (!late || attempt === 10)
				throw e;
			daemons.push(+late[1]);
			await new Promise(resolve => setTimeout(resolve, 1000));
			if (await cli(consumer, 'profile', 'info', '--session', session).then(() => true, () => false))
				break;
		}
	}
	return daemons;
}

const nanos = ms => Math.round(ms * 1e6);

// {function: "self total"}: a function by its index in the file, which tells more than its name. Of that
// profiler-cli shows a part only if there is a '!' in it, which it takes for the end of a library's name.
function rows(file, functions) {
	const { funcTable, sources, stringArray } = file.shared;
	const map = new Map();

	for (const f of functions) {
		const source = funcTable.source[f.functionIndex], resource = funcTable.resource[f.functionIndex];
		const path = source !== null ? stringArray[sources.filename[source]]
			: resource >= 0 ? file.libs[resource].path : '';
		const name = stringArray[funcTable.name[f.functionIndex]];
		const key = JSON.stringify([name, path, funcTable.lineNumber[f.functionIndex] ?? 0]);

		map.set(key, [...map.get(key) ?? [], `${nanos(f.selfSamples)} ${nanos(f.totalSamples)}`].sort());
	}
	return map;
}

// The profiler drops the weights of samples when it shows several threads as one: then it counts them.
function expectedRows(recording, samples, counted) {
	const unit = counted ? 1e6 : 1;
	const [self, total] = counted ? ['samples', 'total_samples'] : ['self', 'total'];
	const map = new Map();

	for (const [key, s] of recording.sums(f => JSON.stringify([f.kind, f.name, f.place, f.funcLine]), { samples })) {
		const name = JSON.stringify(JSON.parse(key).slice(1));

		if (s[total])
			map.set(name, [...map.get(name) ?? [], `${s[self] * unit} ${s[total] * unit}`].sort());
	}
	return map;
}

// Successive samples in garbage collection.
function collections(recording, samples) {
	const found = [];
	let last;

	for (const s of samples) {
		const at = (s.ts_ns - recording.meta.start_ns) / 1e6, gc = s.flags.includes('gc');

		if (gc && last?.flags.includes('gc') && last.request === s.request)
			found.at(-1)[1] = at;
		else if (gc)
			found.push([at, at]);
		last = s;
	}
	return found;
}

// The requests that a thread served: from the first to the last sample of each, a wait being all of its time, a tick the
// middle of a period of the clock. What is next to a request keeps its time: a wait, or half of what is between two ticks.
function requests(recording, samples) {
	const half = Math.floor((recording.meta.events.find(e => e.name === 'cpu')?.period ?? 0) / 2);
	const found = new Map();
	let last;

	for (const s of samples) {
		const ts = s.ts_ns - recording.meta.start_ns;
		const waits = recording.hasWaits && s.frames[0]?.kind === 'wait';
		const begin = waits ? ts - s.value : ts;
		const end = Math.max(ts, last?.end ?? 0);
		const border = !last ? 0 : waits ? Math.max(begin, last.end)
			: last.waits ? last.end : Math.floor((last.end + end) / 2);

		if (s.request && !found.has(s.request))
			found.set(s.request, { name: s.requestName, after: border, start: Infinity, end: -1 });
		if (last?.request && last.request !== s.request)
			found.get(last.request).before = border;
		if (s.request) {
			const r = found.get(s.request);

			if (begin < r.start)
				Object.assign(r, { start: begin, startMargin: waits ? 0 : half });
			if (ts >= r.end)
				Object.assign(r, { end: ts, endMargin: waits ? 0 : half });
		}
		last = { end, waits, request: s.request };
	}
	return [...found.values()].map(r => [
		Math.min(Math.max(r.start - r.startMargin, r.after, 0), r.end) / 1e6,
		Math.max(Math.min(r.end + r.endMargin, r.before ?? Infinity), r.end) / 1e6, 'Request', r.name]);
}

// The samples of a thread with times that do not go back, as a wait's may that is read behind a later tick.
function inOrder(samples) {
	let last = 0;

	return samples.map(s => ({ ...s, ts_ns: last = Math.max(last, s.ts_ns) }));
}

// [start, end, type, what of it] of all markers of a thread, sorted. @nested: waits begin where the sample before ends.
export function expectedMarkers(recording, samples, nested = false) {
	const ordered = inOrder(samples), since = ts => (ts - recording.meta.start_ns) / 1e6;
	const waits = ordered.map((s, i) => [Math.max(s.ts_ns - s.value, nested ? ordered[i - 1]?.ts_ns ?? 0 : 0), s])
		.filter(([, s]) => recording.hasWaits && recording.waits(s))
		.map(([start, s]) => [since(start), since(s.ts_ns), 'Wait', recording.stateOf(s)]);
	const collected = collections(recording, ordered).map(c => [...c, 'GC', '']);

	return [...waits, ...collected, ...requests(recording, samples)].map(m => JSON.stringify(m)).sort();
}

function gotMarkers({ markers }) {
	return markers.data.map((data, k) => JSON.stringify([markers.startTime[k], markers.endTime[k], data.type,
		data.request ?? data.state ?? ''])).sort();
}

// The samples that the file must have of a thread: each stack at its start, or the ticks of a recording without waits.
function expectedSamples(recording, samples) {
	return recording.hasWaits ? stackTimes(recording, samples)
		: samples.map(s => ({ ts: s.ts_ns - recording.meta.start_ns, value: s.value, frames: s.frames }));
}

// As the profiler's CPU graph has it (cpu.ts): a sample tells of the time since the one before, of which it can be all.
const cpuSum = (times, deltas) => deltas.reduce((sum, delta, i) => sum + (i ? Math.min(delta, times[i] - times[i - 1]) : 0), 0);

function checkThread(recording, file, i, samples, check) {
	const thread = file.threads[i], { shared } = file;
	const name = `thread ${i}`;
	const stackOf = index => {
		const frames = [];

		for (let at = index; at !== null; at = shared.stackTable.prefixOffset[at] ? at - shared.stackTable.prefixOffset[at] : null)
			frames.push(shared.stackTable.frame[at]);
		return frames.map(f => [shared.stringArray[shared.funcTable.name[shared.frameTable.func[f]]],
			shared.frameTable.line[f] ?? 0]);
	};
	const stacks = expectedSamples(recording, samples);
	const expected = stacks.map((s, k) => [s.ts / 1e6, s.value / 1e6,
		!recording.hasWaits ? s.value : stacks[k - 1]?.runs ? s.ts - stacks[k - 1].ts : 0,
		s.frames.map(f => [f.name, f.kind === 'cfunc' ? 0 : f.line])]);
	let at_ns = 0;
	const times = thread.samples.timeDeltas.map(delta => at_ns += nanos(delta));
	const got = thread.samples.stack.map((stack, k) => [times[k] / 1e6, thread.samples.weight[k],
		thread.samples.threadCPUDelta[k], stackOf(stack)]);

	check(JSON.stringify(got) === JSON.stringify(expected), `${name}: samples`);
	check(thread.samples.length === stacks.length, `${name}: length`);
	if (recording.hasWaits)
		check(cpuSum(times, thread.samples.threadCPUDelta) ===
			stacks.reduce((sum, s) => sum + (s.runs ? s.end - s.ts : 0), 0), `${name}: the CPU graph`);
	const markers = gotMarkers(thread), expectedOnes = expectedMarkers(recording, samples);
	const at = expectedOnes.findIndex((m, k) => m !== markers[k]);
	check(markers.length === expectedOnes.length && at < 0,
		`${name}: ${markers.length} markers, not ${expectedOnes.length}: ${markers[at]}, not ${expectedOnes[at]}`);
}

export async function validate(consumer, recording, { check, checkMaps }) {
	const path = join(consumer.dir, `${recording.name}.json`);
	const bytes = recording.export('firefox');
	recording = recording.ofAllTime();
	const file = JSON.parse(bytes), session = `rbpf-${recording.name}`;
	const left = new Set(recording.samples.map(s => s.thread));

	// Which thread of the recording each one is: those of the same name are in the order of the recording.
	const order = file.threads.map(thread => [...left].sort((a, b) => a - b).find(id => {
		const { tid, name, process } = recording.threads[id];

		return thread.tid === tid && thread.name === (name || '[unnamed]') &&
			thread.pid === `${recording.processes[process].pid}` && left.delete(id);
	}));
	check(!left.size && order.every(id => id !== undefined), 'each thread is there');
	const samplesOf = i => recording.samples.filter(s => s.thread === order[i]);
	const samplesInFile = i => expectedSamples(recording, samplesOf(i));

	for (let i = 0; i < order.length; i++)
		checkThread(recording, file, i, samplesOf(i), check);

	writeFileSync(path, bytes);
	const daemons = await load(consumer, path, session);
	try {
		const ask = async (threads, samples) => {
			const args = ['thread', 'functions', '--json', '--limit', '0', '--include-idle', '--session', session];
			const answer = JSON.parse(await cli(consumer, ...args, '--thread', threads.map(i => `t-${i}`).join()));

			checkMaps(rows(file, answer.functions), expectedRows(recording, samples, threads.length > 1), `threads ${threads.slice(0, 3)}…`);
		};
		// Times are since the first sample. Spans in ns, for the profiler adds and subtracts floating point numbers.
		const askMarkers = async i => {
			const args = ['thread', 'markers', '--json', '--list', '--limit', '0', '--session', session];
			const { flatMarkers, context } = JSON.parse(await cli(consumer, ...args, '--thread', `t-${i}`));
			const text = (start, duration, type, what) => JSON.stringify([nanos(start), nanos(duration), type, what]);
			const got = flatMarkers.map(m => text(m.start + context.rootRange.start, m.duration, m.markerType,
				m.data?.request ?? m.data?.state ?? ''));
			const expected = expectedMarkers(recording, samplesOf(i)).map(m => JSON.parse(m))
				.map(([start, end, type, what]) => text(start, end - start, type, what));

			check(JSON.stringify(got.sort()) === JSON.stringify(expected.sort()), `thread ${i}: markers of profiler-cli`);
		};
		const all = order.map((_, i) => i), some = all.slice(0, MAX_THREADS);

		await Promise.all([ask(all, all.flatMap(samplesInFile)), ...some.map(i => ask([i], samplesInFile(i))), ...some.map(askMarkers)]);
	} finally {
		await cli(consumer, 'stop', session);
		// Those that were late and found another one in their place.
		for (const pid of daemons)
			try {
				process.kill(pid);
			} catch {
				// it ended
			}
	}
}
