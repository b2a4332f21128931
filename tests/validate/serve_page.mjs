// SPDX-License-Identifier: GPL-2.0-only
//
// What the tests of the page of `rbpf serve` have in common: the browser, what they read of the page, a tunnel
// that can be cut, and the count of what was checked.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import net from 'node:net';

const require = createRequire(join(process.env.NODE_MODULES ?? process.cwd(), 'package.json'));
const { chromium } = require('playwright-core');

let passed = 0, failed = 0;
export function check(condition, what) {
	if (condition) {
		passed++;
	} else {
		failed++;
		console.log(`FAIL: ${what}`);
	}
}

// Prints the counts, and ends with the exit status of the test.
export function finish() {
	console.log(`${passed} passed, ${failed} failed`);
	process.exit(failed ? 1 : 0);
}

export const sleep = ms => new Promise(done => setTimeout(done, ms));

export const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
		'--disable-component-update', '--disable-sync'],
});
export const errors = [];
export async function open(address, options = {}) {
	const context = await browser.newContext({ viewport: { width: 1300, height: 850 }, ...options });
	const page = await context.newPage();
	page.on('pageerror', e => errors.push(e.message));
	page.on('dialog', d => { errors.push(`a name was run: ${d.message()}`); d.dismiss(); });
	page.on('console', m => m.type() === 'error' && errors.push(m.text()));
	page.on('request', r => r.url().startsWith('http://127.0.0.1:') || r.url().startsWith('about:') || r.url().startsWith('data:') ||
		errors.push(`request: ${r.url()}`));
	await page.goto(address);
	return page;
}
export const shoot = async (page, dir, name) => dir && page.screenshot({ path: join(dir, `serve-${name}.png`) });
export const cells = page => page.$$eval('main table.rows', tables => tables.map(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))));
const seconds = ns => ns < 1e9 ? ns / 1e6 : ns / 1e9;
export const shows = (text, ns) => ns === 0 ? text === '0 s' : Math.abs(parseFloat(text.replace(/,/g, '')) - seconds(ns)) <= seconds(ns) * 0.006 && text.endsWith(ns < 1e9 ? ' ms' : ' s');
export const ready = (page, view) => page.waitForSelector(`[data-view=${view}] ${['flame', 'timeline', 'heatmap', 'compare'].includes(view) ? 'iframe:not(.coming)' : '*'}`);

// A way to @port that breaks and is mended, as that of ssh -L.
export async function tunnelTo(port) {
	const sockets = new Set();
	const server = net.createServer(socket => {
		const there = net.connect(port, '127.0.0.1');
		for (const [a, b] of [[socket, there], [there, socket]]) {
			sockets.add(a);
			a.pipe(b);
			a.on('error', () => b.destroy());
			a.on('close', () => { sockets.delete(a); b.destroy(); });
		}
	});
	const listen = at => new Promise(done => server.listen(at, '127.0.0.1', done));
	await listen(0);
	const at = server.address().port;
	return {
		port: at,
		mend: () => listen(at),
		cut: () => new Promise(done => {
			server.close(done);
			for (const socket of sockets)
				socket.destroy();
		}),
	};
}
