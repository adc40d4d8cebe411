// The Node contender, as benches/peers/README.md asks: redlock with one ioredis client, one async function per task.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(import.meta.url);
const { default: Redlock } = require("redlock");
const { default: Redis } = require("ioredis");

const game = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s)));
const [tasks, ms, warmMs] = [game.tasks, game.ms, game.warm_ms].map(Number);
const [section, pause, step] = [game.section_us, game.pause_us, game.step_us].map((us) => Number(us) / 1000);
const LIMIT = 200_000;
const now = () => Number(process.hrtime.bigint());
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const lacks = {
  readers: "it has no read-write lock",
  reenter: "its locks cannot be acquired again by their holder",
};

function bucketsOf(values) {
  const found = {};
  for (const value of values) {
    const e = Math.max(0, Math.floor(Math.log2(value)) - 7);
    const bucket = 128 * e + Math.floor(value / 2 ** e);
    found[bucket] = (found[bucket] ?? 0) + 1;
  }
  return found;
}

const residentKib = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);

async function ready() {
  console.log("ready");
  await input.next();
  return now();
}

const newTally = () => ({ waits: [], pairs: [], stamps: [], errors: 0, error: null, asked: null });

async function turns(redlock, name, section, pause, tally, until = Infinity) {
  while (now() < until) {
    const asked = (tally.asked = now());
    try {
      const lock = await redlock.acquire([name], 30_000);
      const held = now();
      if (section) await sleep(section);
      const left = now();
      await lock.release();
      tally.waits.push(held - asked);
      tally.pairs.push(now() - asked);
      if (game.stamps && tally.stamps.length < (3 * LIMIT) / tasks) tally.stamps.push(asked, held, left);
    } catch (error) {
      tally.errors += 1;
      tally.error ??= String(error);
      await sleep(1);
    }
    tally.asked = null;
    if (pause) await sleep(pause);
  }
}

const largest = (values) => values.reduce((a, b) => Math.max(a, b), 0);

async function tell(rss, start, complete, tallies, held, lost = 0) {
  const end = now();
  if (game.stamps) writeFileSync(game.stamps, BigUint64Array.from(tallies.flatMap((tally) => tally.stamps).map(BigInt)));
  const [waits, pairs] = [tallies.flatMap((tally) => tally.waits), tallies.flatMap((tally) => tally.pairs)];
  const { version } = JSON.parse(readFileSync(new URL("node_modules/redlock/package.json", import.meta.url)));
  console.log(JSON.stringify({
    version: `redlock ${version}`, rss_before_kib: rss, elapsed_ns: end - start, complete_ns: complete,
    acquisitions: held ?? tallies.map((tally) => tally.waits.length),
    wait: bucketsOf(waits), wait_max_ns: largest(waits), pair: bucketsOf(pairs), pair_max_ns: largest(pairs),
    still_waiting_ns: largest(tallies.map((tally) => (tally.asked ? end - tally.asked : 0))),
    errors: tallies.reduce((sum, tally) => sum + tally.errors, 0),
    error: tallies.map((tally) => tally.error).find(Boolean) ?? null, lost,
  }));
  await input.next();
}

async function hold(redlock) {
  const rss = residentKib();
  let [lost, come] = [0, 0];
  // `using` of the README is the one that renews.
  await new Promise((all) => {
    for (let task = 0; task < tasks; task += 1)
      redlock.using([`${game.name}:${task}`], 30_000, async (signal) => {
        signal.addEventListener("abort", () => (lost += 1));
        if ((come += 1) === tasks) all();
        await new Promise(() => {});
      });
  });
  const start = await ready();
  await sleep(ms);
  await tell(rss, start, start, [], [tasks], lost);
}

async function play(redlock) {
  const name = (task) => (game.play === "shared" ? game.name : `${game.name}:${game.process}:${task}`);
  await turns(redlock, `warm:${game.process}`, 0, 0, newTally(), now() + warmMs * 1e6);
  // What only the game needs is there before anything is weighed.
  const tallies = Array.from({ length: tasks }, newTally);
  const rss = residentKib();
  const start = await ready();
  for (let task = 0; task < tasks; task += 1) {
    turns(redlock, name(task), section, pause, tallies[task]);
    if (step) await sleep(step);
  }
  const complete = now();
  await sleep(ms);
  await tell(rss, start, complete, tallies);
}

if (lacks[game.play]) {
  console.log("lacks", lacks[game.play]);
} else {
  // The README's client and settings; by default it gives up after 10 tries, -1 is its word for never.
  const redlock = new Redlock([new Redis(game.url)], { retryCount: -1 });
  redlock.on("error", () => {});
  await (game.play === "hold" ? hold : play)(redlock);
}
process.exit(0);
