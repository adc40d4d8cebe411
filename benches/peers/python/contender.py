"""The Python contenders, as benches/peers/README.md asks: redis-py's Lock and python-redis-lock, one thread per task."""
import array
import sys
import threading
import time
from importlib.metadata import version

import redis
import redis_lock

GAME = dict(word.split("=", 1) for word in sys.argv[1:])
TASKS, LENGTH, WARM = int(GAME["tasks"]), int(GAME["ms"]) / 1e3, int(GAME["warm_ms"]) / 1e3
SECTION, PAUSE, STEP = (int(GAME[key]) / 1e6 for key in ("section_us", "pause_us", "step_us"))
LIMIT = 200_000
now = time.monotonic_ns


def redis_py(client, name):
    # `Redis.lock` of the documentation: blocking, a timeout as lease, and its own sleep of 0.1 s between tries.
    lock = client.lock(name, timeout=30)
    return lock.acquire, lock.release


def python_redis_lock(client, name):
    # The README's `Lock(conn, name, expire=…)`; a lease that renews itself is asked for only where holds are long.
    lock = redis_lock.Lock(client, name, expire=30, auto_renewal=GAME["play"] == "hold")
    return lock.acquire, lock.release


PEERS = {
    "redis-py": (redis_py, "redis", {
        "readers": "it has no read-write lock", "reenter": "its locks cannot be acquired again by their holder",
        "hold": "it has `extend`, but renews nothing by itself"}),
    "python-redis-lock": (python_redis_lock, "python-redis-lock", {
        "readers": "it has no read-write lock", "reenter": "its locks cannot be acquired again by their holder"}),
}


class Tally:
    def __init__(self):
        self.waits, self.pairs, self.stamps = array.array("Q"), array.array("Q"), array.array("Q")
        self.errors, self.error, self.asked = 0, None, None


def turns(acquire, release, section, pause, tally, until=None):
    while until is None or now() < until:
        tally.asked = asked = now()
        try:
            acquire()
            held = now()
            if section:
                time.sleep(section)
            left = now()
            release()
        except Exception as error:
            tally.errors += 1
            tally.error = tally.error or repr(error)
            time.sleep(0.001)
        else:
            tally.waits.append(held - asked)
            tally.pairs.append(now() - asked)
            if "stamps" in GAME and len(tally.stamps) < 3 * LIMIT // TASKS:
                tally.stamps.extend((asked, held, left))
        tally.asked = None
        if pause:
            time.sleep(pause)


def buckets(values):
    found = {}
    for value in values:
        e = max(0, value.bit_length() - 8)
        bucket = 128 * e + (value >> e)
        found[bucket] = found.get(bucket, 0) + 1
    return found


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def ready():
    print("ready", flush=True)
    sys.stdin.readline()
    return now()


def tell(rss, start, complete, tallies, held=None, lost=0):
    import json
    end = now()
    if "stamps" in GAME:
        with open(GAME["stamps"], "wb") as file:
            for tally in tallies:
                file.write(tally.stamps.tobytes())
    waits = [wait for tally in tallies for wait in tally.waits]
    pairs = [pair for tally in tallies for pair in tally.pairs]
    print(json.dumps({
        "version": f"{PACKAGE} {version(PACKAGE)}", "rss_before_kib": rss, "elapsed_ns": end - start,
        "complete_ns": complete, "acquisitions": held or [len(tally.waits) for tally in tallies],
        "wait": buckets(waits), "wait_max_ns": max(waits, default=0),
        "pair": buckets(pairs), "pair_max_ns": max(pairs, default=0),
        # Another thread may ask, or stop waiting, while this one looks.
        "still_waiting_ns": max((max(0, end - (tally.asked or end)) for tally in tallies), default=0),
        "errors": sum(tally.errors for tally in tallies),
        "error": next((tally.error for tally in tallies if tally.error), None), "lost": lost,
    }), flush=True)
    sys.stdin.readline()


def hold(client, make):
    rss = resident_kib()
    locks = [redis_lock.Lock(client, f"{GAME['name']}:{n}", expire=30, auto_renewal=True) for n in range(TASKS)]
    for lock in locks:
        lock.acquire()
    start = ready()
    time.sleep(LENGTH)
    # In one question: ten thousand would take a minute beside as many threads that renew.
    owners = client.mget(f"lock:{GAME['name']}:{n}" for n in range(TASKS))
    lost = sum(owner is None or owner.decode() != lock.id for owner, lock in zip(owners, locks))
    tell(rss, start, start, [], [TASKS], lost)


def play(client, make):
    shared = GAME["play"] == "shared"
    name = lambda task: GAME["name"] if shared else f"{GAME['name']}:{GAME['process']}:{task}"
    # One lock object per thread, one pool for all: the client is safe to share, a lock's token is its own.
    locks = [make(client, name(task)) for task in range(TASKS)]
    turns(*make(client, f"warm:{GAME['process']}"), 0, 0, Tally(), now() + int(WARM * 1e9))
    threading.stack_size(256 * 1024)
    # What only the game needs is there before anything is weighed.
    tallies = [Tally() for _ in locks]
    rss = resident_kib()
    start = ready()
    for (acquire, release), tally in zip(locks, tallies):
        threading.Thread(target=turns, args=(acquire, release, SECTION, PAUSE, tally), daemon=True).start()
        if STEP:
            time.sleep(STEP)
    complete = now()
    time.sleep(LENGTH)
    tell(rss, start, complete, tallies)


MAKE, PACKAGE, LACKS = PEERS[GAME["peer"]]
if GAME["play"] in LACKS:
    print("lacks", LACKS[GAME["play"]], flush=True)
else:
    CLIENT = redis.Redis.from_url(GAME["url"], max_connections=100_000)
    (hold if GAME["play"] == "hold" else play)(CLIENT, MAKE)
    # Threads that still wait end with the process.
    import os
    os._exit(0)
