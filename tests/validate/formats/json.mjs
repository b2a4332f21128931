// SPDX-License-Identifier: GPL-2.0-only
//
// doc/json.schema.json, which must name every member that rbpf writes; that ids are indexes of what exists, and parents
// stand before their children, which a schema cannot say.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const require = createRequire(join(process.env.NODE_MODULES, 'package.json'));

// Readers must bear members that are added later. Here they are to be in the schema.
function strict(schema) {
	if (typeof schema !== 'object' || schema === null)
		return schema;
	const copy = Array.isArray(schema) ? schema.map(strict)
		: Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));

	return copy.type === 'object' && copy.properties ? { additionalProperties: false, ...copy } : copy;
}

export function open() {
	const Ajv = require('ajv').default;
	const schema = JSON.parse(readFileSync(new URL('../../../doc/json.schema.json', import.meta.url)));

	return { valid: new Ajv({ allowUnionTypes: true }).compile(strict(schema)) };
}

function checkIds(file, check) {
	const below = (id, array) => id === null || id < array.length;

	check(file.processes.every((p, i) => p.parent === null || p.parent < i), 'parents of processes');
	check(file.threads.every(t => below(t.process, file.processes)), 'processes of threads');
	check(file.frames.every(f => below(f.module, file.modules)), 'modules of frames');
	check(file.stacks.every((s, i) => below(s.frame, file.frames) && (s.parent === null) === (i === 0) &&
		(s.parent === null || s.parent < i)), 'stacks');
	check(file.requests.every((r, i) => (r.thread === null) === (i === 0) && below(r.thread, file.threads)), 'requests');
	check(file.samples.every(s => below(s.thread, file.threads) && below(s.stack, file.stacks) &&
		below(s.event ?? 0, file.meta.events) && below(s.request ?? null, file.requests) &&
		(!s.request || file.requests[s.request].thread === s.thread)), 'samples');
}

export function validate(consumer, recording, { check }) {
	for (const args of [[], ['--stack', 'ruby'], ['--no-gc']]) {
		const file = JSON.parse(recording.export('json', ...args));

		check(consumer.valid(file), `schema: ${JSON.stringify(consumer.valid.errors)?.slice(0, 300)}`);
		checkIds(file, (ok, what) => check(ok, `${args.join(' ')}: ${what}`));
	}
	check(JSON.parse(recording.export('json')).samples.length === recording.allSamples.length, 'all samples');
}
