// SPDX-License-Identifier: GPL-2.0-only
//
// The text of sampling_prof. Its own report is in a gem that Debian does not have: this reads the text as that does,
// by splitting it at blank lines, lines and commas.

export const open = dir => ({ dir });

function parse(text) {
	const [runtime, elements, counts, calls] = text.split('\n\n').map(part => part.replace(/\n$/, ''));
	const rows = part => part.split('\n').filter(line => line).map(line => line.split(','));

	return { runtime: +runtime, parts: text.split('\n\n').length, elements: rows(elements), counts: rows(counts), calls: rows(calls) };
}

const semicolons = s => s.replaceAll(',', ';');
const elementOf = f => `${semicolons(f.file)}:${f.kind === 'cfunc' ? 0 : f.line}:${semicolons(f.name)}`;
// What tells elements apart: functions of one name in one file are still several.
const keyOf = f => JSON.stringify([elementOf(f), f.kind, f.name, f.place, f.funcLine]);
const put = (map, key, row) => map.set(key, [...map.get(key) ?? [], row].sort());

export function validate(consumer, recording, { check, checkMaps }) {
	for (const event of recording.hasWaits ? ['cpu', 'wait', 'wall'] : ['cpu']) {
		const got = parse(recording.export('sampling-prof', '--event', event).toString());
		const ns = recording.of(event).samples.reduce((sum, s) => sum + s.value, 0);
		const samples = recording.of(event).counted().withPlaceholder();
		const names = new Map(got.elements.map(([name, id]) => [id, name]));
		const counts = new Map(), calls = new Map(), expectedCounts = new Map(), expectedCalls = new Map();

		check(got.parts === 4, `${got.parts} parts`);
		check(got.elements.every(e => e.length === 2 && /^\d+$/.test(e[1])), 'each element has a name and an id');
		check(names.size === got.elements.length, 'no id is there twice');
		check(got.runtime === Math.floor(ns / 1e6), `${got.runtime} ms, not ${ns} ns`);
		for (const [id, self, total] of got.counts)
			put(counts, names.get(id), `${self} ${total}`);
		for (const [key, s] of samples.sums(keyOf))
			put(expectedCounts, JSON.parse(key)[0], `${s.samples} ${s.total_samples}`);
		for (const [from, to, n] of got.calls)
			put(calls, `${from === '-1' ? '' : names.get(from)}\n${names.get(to)}`, +n);
		for (const [edge, n] of samples.edges(keyOf, { samples: samples.samples.map(s => ({ ...s, value: 1 })) })) {
			const [from, to] = edge.split('\n');

			if (to)
				put(expectedCalls, `${from && JSON.parse(from)[0]}\n${JSON.parse(to)[0]}`, n);
		}
		checkMaps(counts, expectedCounts, `${event}: counts`);
		checkMaps(calls, expectedCalls, `${event}: calls`);
	}
}
