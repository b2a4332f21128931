// SPDX-License-Identifier: GPL-2.0-only
//
// speedscope's importer of collapsed stacks, which is all that the tools that draw flame graphs have in common.
import * as speedscope from './speedscope.mjs';

export const { open, close } = speedscope;

// As src/export/folded.c writes names.
const nameOf = f => f.name.replace(/[\r\n]/g, ' ').replace(/;/g, ':');

// Names by frame: those that would end a line with a second number have no blank before it.
function names(recording) {
	const leaves = new Set(recording.samples.filter(s => s.frames.length).map(s => nameOf(s.frames[0])));

	return f => leaves.has(nameOf(f)) ? nameOf(f).replace(/[ \t](?=[0-9]+(\.[0-9]*)?$)/, '_') : nameOf(f);
}

// Of waits, functions have their time, in µs, to rounding.
async function checkTime(consumer, recording, event, check) {
	const bytes = recording.export('folded', '--event', event);
	const { samples } = recording.of(event), sums = recording.sums(names(recording.of(event)), { samples });
	const { profiles } = await speedscope.load(consumer, `${recording.name}.folded.txt`, bytes);
	const us = ns => Math.round(ns / 1000), n = bytes.toString().split('\n').length;
	const got = new Map(profiles[0].frames.map(([name, , , self, total]) => [name, { self, total }]));

	check(profiles[0].total === us(samples.reduce((sum, s) => sum + s.value, 0)), `${event}: ${profiles[0].total} µs in all`);
	for (const [name, s] of sums)
		for (const what of ['self', 'total'])
			check(Math.abs((got.get(name)?.[what] ?? 0) - us(s[what])) <= n,
				`${event}: ${name}: ${what} ${got.get(name)?.[what]}, not ${us(s[what])}`);
}

export async function validate(consumer, recording, { check, checkMaps }) {
	for (const event of recording.hasWaits ? ['wait', 'wall'] : [])
		await checkTime(consumer, recording, event, check);
	const bytes = recording.export('folded');
	const lines = bytes.toString().trimEnd().split('\n').map(line => line.match(/^(.*) (\d+)$/));
	const programs = new Set(lines.map(m => m?.[1].split(';')[0]));
	const keyOf = names(recording);
	const sums = recording.sums(keyOf, { samples: recording.samples.map(s => ({ ...s, value: 1 })) });

	check(lines.every(m => m), `not a stack and a number: ${lines.findIndex(m => !m)}`);
	check(lines.reduce((sum, m) => sum + Number(m?.[2]), 0) === recording.samples.length, 'samples of all lines');

	const { profiles, errors, said } = await speedscope.load(consumer, `${recording.name}.folded.txt`, bytes);
	check(!errors.length, errors.join('; '));
	check(said.includes('Importing as collapsed stack format'), `imported: ${said.join('; ')}`);
	check(profiles.length === 1 && profiles[0].total === recording.samples.length, `${profiles[0]?.total} samples`);

	// Programs are frames of the format alone, below all others.
	const rows = (key, self, total) => [key, `${self} ${total}`];
	checkMaps(new Map((profiles[0]?.frames ?? []).filter(([name]) => !programs.has(name))
		.map(([name, , , self, total]) => rows(name, self, total))),
	new Map([...sums].filter(([key]) => !programs.has(key)).map(([key, s]) => rows(key, s.self, s.total))), 'functions');
}
