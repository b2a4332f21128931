// SPDX-License-Identifier: GPL-2.0-only
//
// speedscope's own importer, in the application as it is published, in Chromium; and its schema.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = process.env.NODE_MODULES;
const require = createRequire(join(modules, 'package.json'));
const release = join(modules, 'node_modules/speedscope/dist/release');

// The application keeps what it imported to itself: its script is changed so that it can be asked.
function scriptThatTells() {
	const name = readdirSync(release).find(f => /^speedscope-.*\.js$/.test(f));
	const script = readFileSync(join(release, name), 'utf8');
	const atom = script.match(/setProfileGroup:(\w+)\.setProfileGroup/)[1];
	const end = script.lastIndexOf('})();');

	return { name, text: `${script.slice(0, end)};window.profileGroup=()=>${atom}.get();${script.slice(end)}` };
}

export async function open(dir) {
	const { chromium } = require('playwright-core');
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
			'--disable-component-update', '--disable-sync'],
	});
	const Ajv = require('ajv').default;
	const schema = JSON.parse(readFileSync(join(release, 'file-format-schema.json')));

	return { dir, browser, script: scriptThatTells(), schema: new Ajv({ strict: false }).compile(schema) };
}

export const close = consumer => consumer.browser.close();

// What speedscope makes of @bytes in a file of this name: its profiles, or {errors}.
export async function load(consumer, name, bytes) {
	const page = await consumer.browser.newPage();
	const errors = [], said = [];

	page.on('pageerror', e => errors.push(e.message));
	page.on('console', m => (m.type() === 'error' ? errors : said).push(m.text()));
	await page.route(`**/${consumer.script.name}`, route =>
		route.fulfill({ contentType: 'text/javascript', body: consumer.script.text }));
	const script = join(consumer.dir, 'profile.js');
	const args = [name, bytes.toString('base64')].map(a => JSON.stringify(a));

	writeFileSync(script, `speedscope.loadFileFromBase64(${args})`);
	await page.goto(`${pathToFileURL(join(release, 'index.html')).href}#localProfilePath=${script}`);
	await page.waitForFunction(() => window.profileGroup(), null, { timeout: 60000 }).catch(e => errors.push(e.message));
	const profiles = errors.length ? [] : await page.evaluate(() =>
		window.profileGroup().profiles.map(({ profile }) => {
			const frames = [];

			profile.forEachFrame(f => frames.push([f.name, f.file, f.line, f.getSelfWeight(), f.getTotalWeight()]));
			return { name: profile.getName(), total: profile.getTotalWeight(), unit: profile.getWeightUnit(), frames };
		}));
	await page.close();
	return { profiles, errors, said };
}

// Rows of the same function as a text, so that maps can be compared.
export function rows(frames) {
	const map = new Map();

	for (const [name, file, line, self, total] of frames) {
		const key = JSON.stringify([name, file ?? '', line ?? 0]);

		if (total)
			map.set(key, [...map.get(key) ?? [], `${self} ${total}`].sort());
	}
	return map;
}

// The same, expected of samples.
function expectedRows(recording, samples) {
	const sums = recording.sums(f => JSON.stringify([f.kind, f.name, f.place, f.funcLine]), { samples });

	return rows([...sums].map(([key, s]) => [...JSON.parse(key).slice(1), s.self, s.total]));
}

export async function validate(consumer, recording, { check, checkMaps }) {
	const bytes = recording.export('speedscope');
	const file = JSON.parse(bytes);

	check(consumer.schema(file), `schema: ${JSON.stringify(consumer.schema.errors)?.slice(0, 300)}`);
	const { profiles, errors, said } = await load(consumer, `${recording.name}.speedscope.json`, bytes);
	check(!errors.length, errors.join('; '));
	check(said.includes('Importing as speedscope json file'), `imported: ${said.join('; ')}`);

	const threads = [...new Set(recording.samples.map(s => s.thread))];
	check(profiles.length === 1 + threads.length, `${profiles.length} profiles of ${threads.length} threads`);
	if (!profiles.length)
		return;
	check(profiles[0].name === `all threads (not in the order of time), event ${recording.events[0]}`, profiles[0].name);
	checkMaps(rows(profiles[0].frames), expectedRows(recording, recording.samples), 'all threads');
	for (const thread of threads) {
		const { tid, name, process } = recording.threads[thread];
		const samples = recording.samples.filter(s => s.thread === thread);
		const end = `: ${name || '[unnamed]'} (pid ${recording.processes[process].pid}, tid ${tid}), event ${recording.events[0]}`;
		const profile = profiles.find(p => p.name.endsWith(end) && !p.seen);

		check(profile, `there is a profile of ${end}`);
		if (!profile)
			continue;
		profile.seen = true;
		checkMaps(rows(profile.frames), expectedRows(recording, samples), end);
		check(profile.total === samples.reduce((sum, s) => sum + s.value, 0), `${end}: total`);
		check(profile.unit === 'nanoseconds', 'unit');
	}
	checkOrder(recording, file, check);
}

// Each thread's samples in the order of time, equal successive ones added up.
function checkOrder(recording, file, check) {
	for (const thread of file.profiles.slice(1)) {
		const tid = +thread.name.match(/tid (\d+)\), event [a-z-]+$/)[1], pid = +thread.name.match(/pid (\d+), tid/)[1];
		const samples = recording.samples.filter(s => recording.threads[s.thread].tid === tid &&
			recording.processes[recording.threads[s.thread].process].pid === pid);
		const runs = [];

		for (const s of samples.sort((a, b) => a.ts_ns - b.ts_ns)) {
			const last = runs[runs.length - 1];

			if (last?.stack === s.stack)
				last.value += s.value;
			else
				runs.push({ stack: s.stack, value: s.value, names: s.frames.map(f => f.name).reverse() });
		}
		const shared = recording.threads.filter(t => t.tid === tid).length > 1;
		check(shared || JSON.stringify(runs.map(r => [r.names, r.value])) ===
			JSON.stringify(thread.samples.map((stack, i) =>
				[stack.map(f => file.shared.frames[f].name), thread.weights[i]])), `${thread.name}: order`);
	}
}
