// SPDX-License-Identifier: GPL-2.0-only
//
// A page of `rbpf serve` that watches a process: each second has new numbers, which are those of a recording of
// the same seconds; nothing in the browser grows; and it goes on when a connection was cut, or says that
// another server has taken the place of its own.
//
// usage: node serve_live.mjs SECONDS [SCREENSHOT-DIR]        as root; with a ruby in PATH
//
// Prints a line for each failure and "N passed, N failed"; fails if anything did.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { browser, cells, check, errors, finish, open, ready, shoot, shows, sleep, tunnelTo } from './serve_page.mjs';

const rbpf = process.env.RBPF ?? './rbpf';
const [watched, shots] = [+process.argv[2], process.argv[3]];
const SLOW_MS = 5000; // as serve.js has it

// Two threads that take turns, and a new method each second, so that no second's table is another one's.
const ruby = spawn('ruby', ['-e', `
def tiny(n) = n.times { Math.sqrt(_1) }
Thread.new { Thread.current.name = 'second thread'; loop { tiny(20_000); sleep 0.01 } }
n = 0
loop do
  name = "second_#{n += 1}"
  eval "def #{name}(till) = (tiny(5_000) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till)"
  send(name, Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1)
end`], { stdio: 'ignore' });

let server;
async function serve(port) {
	server = spawn(rbpf, ['-q', 'serve', '--listen', `127.0.0.1:${port}`, '-p', String(ruby.pid)], { stdio: ['ignore', 'pipe', 'inherit'] });
	return new URL((await new Promise((done, fail) => {
		server.stdout.once('data', done);
		server.once('exit', code => fail(new Error(`serve ended with ${code}`)));
	})).toString().trim());
}

async function endServer() {
	const ended = new Promise(done => server.on('exit', done));
	server.kill('SIGTERM');
	check(await ended === 0, 'SIGTERM ends the server with 0');
}

// What the page says of itself: its state, and the seconds that are shown.
async function told(page) {
	const [state, text] = await page.$eval('.status', e => [e.dataset.state, e.textContent]);
	const [, from, to, all] = text.replace(/,/g, '').match(/second (\d+) to (\d+) of (\d+)/) ?? [];
	return { state, text, from: +from, to: +to, all: +all };
}

async function waitFor(what, condition, ms = 20000) {
	for (const until = Date.now() + ms; Date.now() < until; await sleep(50)) {
		const is = await condition();
		if (is)
			return is;
	}
	throw new Error(`waited in vain for: ${what}`);
}

// What the browser keeps beyond what is on the screen, once rubbish is collected: of a table that stands still,
// for its rows come and go.
async function kept(page, cdp) {
	await page.locator('#pause').click();
	await waitFor('the pause', async () => (await told(page)).state === 'paused');
	await sleep(500);
	await cdp.send('HeapProfiler.collectGarbage');
	const { metrics } = await cdp.send('Performance.getMetrics');
	const value = name => metrics.find(m => m.name === name).value;
	const [nodes, rows, views] = await page.evaluate(() => {
		const walk = document.createTreeWalker(document);
		let n = 1;
		while (walk.nextNode())
			n++;
		return [n, document.querySelectorAll('main tr[tabindex]').length, document.querySelectorAll('[data-view]').length];
	});
	await page.locator('#pause').click();
	// Until then it shows what it did while it was paused.
	await waitFor('the page to go on', async () => {
		const now = await told(page);
		return now.state === 'live' && now.to === now.all;
	});
	// Each row has two listeners: it can be clicked, and opened by Enter.
	return { listeners: value('JSEventListeners') - 2 * rows, nodes: value('Nodes') - nodes, frames: value('Frames'), documents: value('Documents'), views };
}

async function testSeconds(url) {
	const page = await open(url.href);
	const cdp = await page.context().newCDPSession(page);
	await cdp.send('Performance.enable');
	await page.locator('#tab-table').click();
	await ready(page, 'table');
	await page.selectOption('select[name=last]', '1');
	await waitFor('two seconds', async () => (await told(page)).all >= 2);
	const first = await kept(page, cdp), tables = new Set(), seen = new Set();
	const begun = Date.now(), start = (await told(page)).all;
	let inOrder = true, window = true, last = 0;
	while (Date.now() < begun + watched * 1000) {
		const now = await told(page);
		if (now.all !== last) {
			inOrder &&= now.state === 'live' && now.all > last && now.to === now.all;
			window &&= now.from === now.to - 1;
			last = now.all;
			seen.add(last);
		}
		tables.add(JSON.stringify(await cells(page)));
		await sleep(100);
	}
	const took = (Date.now() - begun) / 1000;
	check(inOrder, 'seconds come in order, and the last one is shown');
	check(window, 'the time that is shown is the last second');
	check(Math.abs(last - start - took) <= 2, `${last - start} seconds came in ${took.toFixed(1)} s`);
	// The machine of the test may be busy: two seconds may come at once.
	check(seen.size >= 0.7 * took && tables.size >= 0.7 * took, `each second is shown: ${seen.size} seconds and ${tables.size} tables in ${took.toFixed(1)} s`);
	const after = await kept(page, cdp);
	check(after.listeners - first.listeners <= 2, `listeners ${first.listeners} → ${after.listeners}`);
	check(after.nodes - first.nodes <= 60, `nodes that are not shown ${first.nodes} → ${after.nodes}`);
	check(after.views === 1, `${after.views} views in the page`);

	await page.selectOption('select[name=last]', '10');
	await page.locator('#tab-flame').click();
	await ready(page, 'flame');
	const pictures = new Set(), one = await kept(page, cdp);
	for (const until = Date.now() + Math.max(watched * 1000, 2.4 * SLOW_MS); Date.now() < until; await sleep(200))
		pictures.add(await page.locator('iframe:not(.coming)').first().getAttribute('src').catch(() => null));
	pictures.delete(null);
	check(pictures.size >= 2, `the flame graph is made anew: ${pictures.size} of them`);
	await waitFor('one picture', async () => await page.locator('iframe').count() === 1);
	const many = await kept(page, cdp);
	check(many.frames <= one.frames && many.documents <= one.documents + 1, `flame graph: frames ${one.frames} → ${many.frames}, documents ${one.documents} → ${many.documents}`);
	await shoot(page, shots, 'live-flame');
	return page;
}

async function testNumbers(url, page, dir) {
	const at = async what => {
		const answer = await fetch(new URL(what, url));
		check(answer.ok, `${what}: ${answer.status}`);
		return Buffer.from(await answer.arrayBuffer());
	};
	await page.locator('#tab-overview').click();
	await ready(page, 'overview');
	await page.locator('#pause').click();
	const { from, to } = await waitFor('the pause', async () => {
		const now = await told(page);
		return now.state === 'paused' && now;
	});
	check(to > 10 && from === to - 10, `the last 10 s are chosen: ${from} to ${to}`);
	const file = join(dir, 'rbpf.data');
	writeFileSync(file, await at(`rbpf.data?from=${from}s&to=${to}s`));
	const report = (...args) => JSON.parse(execFileSync(rbpf, ['report', '--json', ...args, file], { maxBuffer: 1 << 28 }));
	const threads = report('--by', 'thread'), methods = report('-n', '200');
	// A busy machine leaves the process little time.
	check(threads.summary.selected_samples > 4 * (to - from), `there are samples: ${threads.summary.selected_samples} in ${to - from} s`);
	const samples = () => page.locator('[data-fact=samples]').innerText();
	await waitFor('the samples of a recording', async () => await samples() === threads.summary.selected_samples.toLocaleString('en'), 5000)
		.catch(async () => check(false, `overview: ${await samples()} samples, a recording of the same seconds has ${threads.summary.selected_samples}`));
	const [, shownThreads] = await cells(page);
	check(shownThreads.length === threads.rows.length && shownThreads.every((row, i) => shows(row[0], threads.rows[i].total_ns) && row[4] === threads.rows[i].thread), 'threads are those of a recording');
	await shoot(page, shots, 'live-overview');
	await page.locator('#tab-table').click();
	await ready(page, 'table');
	await sleep(1500);
	const now = await told(page);
	check(now.from === from && now.to === to && now.all > to, `a page that is paused stays where it is: ${now.text}`);
	const [rows] = await cells(page);
	check(rows.length === methods.rows.length && rows.every((row, i) => shows(row[0], methods.rows[i].self_ns) && row[4] === methods.rows[i].label), 'methods are those of a recording');
	await page.locator('#pause').click();
	await waitFor('the page to go on', async () => (await told(page)).to > to);
	await page.context().close();
}

async function testReconnect(url) {
	const tunnel = await tunnelTo(+url.port);
	const page = await open(`http://127.0.0.1:${tunnel.port}${url.pathname}`);
	const before = await waitFor('a live page', async () => {
		const now = await told(page);
		return now.state === 'live' && now.all > 0 && now;
	});
	await tunnel.cut();
	await waitFor('the cut to be said', async () => (await told(page)).state === 'lost');
	await shoot(page, shots, 'live-cut');
	await sleep(2000);
	await tunnel.mend();
	const after = await waitFor('the page to go on', async () => {
		const now = await told(page);
		return now.state === 'live' && now.all > before.all + 2 && now;
	});
	check(after.from <= before.all, 'the seconds of the cut are there, too');
	check(await page.locator('[data-fact=samples]').count() === 1, 'with their numbers');

	// The server ends, and another one takes its port: it has another token.
	await endServer();
	await waitFor('the end of the server to be said', async () => (await told(page)).state === 'lost');
	await serve(url.port);
	await waitFor('the other server to be said', async () => (await told(page)).text.includes('the address that it printed'));
	await shoot(page, shots, 'live-other');
	await page.context().close();
	await tunnel.cut();
	errors.splice(0, errors.length, ...errors.filter(e => !e.includes('ERR_') && !e.includes('404')));
}

const dir = mkdtempSync(join(tmpdir(), 'rbpf-live-'));
try {
	const url = await serve(0);
	const page = await testSeconds(url);
	await testNumbers(url, page, dir);
	await testReconnect(url);
	await endServer();
} catch (e) {
	check(false, e.stack);
	server?.kill('SIGKILL');
}
check(errors.length === 0, `errors: ${errors.join('; ')}`);
ruby.kill('SIGKILL');
rmSync(dir, { recursive: true });
await browser.close();
finish();
