import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The Java contenders, as lab/README.md asks: Redisson's lock, fair lock and read-write lock, one thread per task. */
public final class Contender {
    static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    static final Map<String, String> GAME = new HashMap<>();
    static RedissonClient client;
    // One of each for all tasks: each with its own, they would weigh more than their locks.
    static Histogram waits = new Histogram(), pairs = new Histogram();
    static volatile boolean over;

    public static void main(String[] words) throws Exception {
        for (String word : words) GAME.put(word.split("=", 2)[0], word.split("=", 2)[1]);
        Config config = new Config();
        // As the documentation connects to one server; pools, watchdog (30 s) and timeouts as they come.
        var server = config.useSingleServer().setAddress(GAME.get("url"));
        // Each thread that waits for a fair lock subscribes to a channel of its own; more of them than fit into the pool fail.
        int needed = number("tasks") / server.getSubscriptionConnectionPoolSize() + 2;
        server.setSubscriptionsPerConnection(Math.max(server.getSubscriptionsPerConnection(), needed));
        client = Redisson.create(config);
        switch (GAME.get("play")) {
            case "hold" -> hold();
            case "reenter" -> reenter();
            default -> play();
        }
        System.exit(0);
    }

    static int number(String key) {
        return Integer.parseInt(GAME.get(key));
    }

    /** `lock()` without a lease is the one that the watchdog renews. */
    static RLock[] locks(String name) {
        if (GAME.get("play").equals("readers")) {
            var both = client.getReadWriteLock(name);
            return new RLock[] {both.readLock(), both.writeLock()};
        }
        return new RLock[] {GAME.get("peer").equals("redisson-fair") ? client.getFairLock(name) : client.getLock(name)};
    }

    static void play() throws Exception {
        warm();
        // What only the game needs is there before anything is weighed.
        List<Tally> tallies = new ArrayList<>();
        for (int task = 0; task < number("tasks"); task++) tallies.add(new Tally());
        long rss = residentKib();
        long start = ready();
        for (int task = 0; task < number("tasks"); task++) {
            begin(GAME.get("name"), task, number("section_us"), number("pause_us"), tallies.get(task), Long.MAX_VALUE);
            pause(number("step_us"));
        }
        long complete = System.nanoTime();
        say("all");
        Thread.sleep(number("ms"));
        tell(rss, start, complete, done(), tallies, 0);
    }

    /** Plays for nothing on another name, with the others: the virtual machine compiles what runs often, and a free lock runs little of the game. */
    static void warm() throws InterruptedException {
        long until = System.nanoTime() + number("warm_ms") * 1_000_000L;
        List<Thread> threads = new ArrayList<>();
        for (int task = 0; task < Math.min(number("tasks"), 8); task++) threads.add(begin("warm", task, 0, 0, new Tally(), until));
        for (Thread thread : threads) thread.join();
        forget();
    }

    static void forget() {
        waits = new Histogram();
        pairs = new Histogram();
    }

    static Thread begin(String name, int task, int section, int pause, Tally tally, long until) {
        RLock[] locks = locks(GAME.get("play").equals("pairs") ? name + ":" + GAME.get("process") + ":" + task : name);
        Thread thread = new Thread(null, () -> turns(locks, section, pause, tally, until), "task", 256 * 1024);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void turns(RLock[] locks, int section, int pause, Tally tally, long until) {
        for (int turn = 0; System.nanoTime() < until; turn++) {
            boolean reads = locks.length > 1 && turn % 10 != 9;
            RLock lock = locks[reads ? 0 : locks.length - 1];
            long asked = tally.asks();
            try {
                lock.lock();
                long held = System.nanoTime();
                pause(section);
                long left = System.nanoTime();
                lock.unlock();
                tally.held(asked, held, left, reads);
            } catch (Exception error) {
                tally.failed(error);
                pause(1000);
            }
            pause(pause);
        }
    }

    static void pause(int micros) {
        try {
            if (micros > 0) Thread.sleep(micros / 1000, micros % 1000 * 1000);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    static void reenter() throws Exception {
        RLock lock = locks(GAME.get("name"))[0];
        lock.lock();
        again(lock, new Tally(), System.nanoTime() + number("warm_ms") * 1_000_000L);
        forget();
        Tally tally = new Tally();
        long rss = residentKib();
        long start = ready();
        say("all");
        again(lock, tally, start + number("ms") * 1_000_000L);
        tell(rss, start, start, done(), List.of(tally), 0);
    }

    static void again(RLock lock, Tally tally, long until) {
        while (System.nanoTime() < until) {
            long before = System.nanoTime();
            lock.lock();
            lock.unlock();
            tally.pair(System.nanoTime() - before);
        }
    }

    static void hold() throws Exception {
        long rss = residentKib();
        List<RLock> locks = new ArrayList<>();
        Tally tally = new Tally();
        for (int task = 0; task < number("tasks"); task++) {
            RLock lock = locks(GAME.get("name") + ":" + task)[0];
            lock.lock();
            locks.add(lock);
            tally.count++;
        }
        long start = ready();
        say("all");
        Thread.sleep(number("ms"));
        tell(rss, start, start, done(), List.of(tally), lost(locks));
    }

    static long lost(List<RLock> locks) {
        long thread = Thread.currentThread().getId(), lost = 0;
        // A thousand questions at a time: with one after the other, a million would take minutes.
        for (int first = 0; first < locks.size(); first += 1000) {
            List<RFuture<Boolean>> answers = new ArrayList<>();
            for (RLock lock : locks.subList(first, Math.min(first + 1000, locks.size()))) answers.add(lock.isHeldByThreadAsync(thread));
            for (RFuture<Boolean> held : answers) if (!held.toCompletableFuture().join()) lost++;
        }
        return lost;
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static long ready() throws IOException {
        say("ready");
        INPUT.readLine();
        return System.nanoTime();
    }

    /** From here on nothing counts; the tasks go on. */
    static long done() {
        over = true;
        long end = System.nanoTime();
        say("done");
        return end;
    }

    static long residentKib() throws IOException {
        // What is garbage by now is not what the game is weighed against.
        System.gc();
        String line = Files.readAllLines(Path.of("/proc/self/status")).stream().filter(l -> l.startsWith("VmRSS:")).findFirst().orElse("VmRSS: 0 kB");
        return Long.parseLong(line.replaceAll("\\D", ""));
    }

    static void tell(long rss, long start, long complete, long end, List<Tally> tallies, long lost) throws Exception {
        List<Long> counts = new ArrayList<>();
        List<long[]> stamps = new ArrayList<>();
        long still = 0, errors = 0;
        String first = null;
        for (Tally tally : tallies) {
            synchronized (tally) {
                counts.add(tally.count);
                stamps.addAll(tally.stamps);
                errors += tally.errors;
                if (first == null) first = tally.error;
                if (tally.asked != 0) still = Math.max(still, end - tally.asked);
            }
        }
        if (GAME.containsKey("stamps")) {
            ByteBuffer bytes = ByteBuffer.allocate(stamps.size() * 24).order(ByteOrder.LITTLE_ENDIAN);
            for (long[] stamp : stamps) for (long number : stamp) bytes.putLong(number);
            Files.write(Path.of(GAME.get("stamps")), bytes.array());
        }
        String error = first == null ? "null" : "\"" + first.replaceAll("[^ -!#-\\[\\]-~]", " ") + "\"";
        System.out.printf("{\"version\":\"Redisson %s, Java %s\",\"rss_before_kib\":%d,\"elapsed_ns\":%d,\"complete_ns\":%d,\"acquisitions\":%s,"
            + "\"wait\":%s,\"wait_max_ns\":%d,\"pair\":%s,\"pair_max_ns\":%d,\"still_waiting_ns\":%d,\"errors\":%d,\"error\":%s,\"lost\":%d}%n",
            Redisson.class.getPackage().getImplementationVersion(), System.getProperty("java.version"), rss, end - start, complete, counts,
            waits.json(), waits.max.get(), pairs.json(), pairs.max.get(), still, errors, error, lost);
        System.out.flush();
        INPUT.readLine();
    }

    /** Counts in buckets that grow with the value. */
    static final class Histogram {
        final AtomicLongArray counts = new AtomicLongArray(128 * 58);
        final LongAccumulator max = new LongAccumulator(Math::max, 0);

        void add(long value) {
            int e = Math.max(0, 64 - Long.numberOfLeadingZeros(value) - 8);
            counts.incrementAndGet(128 * e + (int) (value >> e));
            max.accumulate(value);
        }

        String json() {
            return IntStream.range(0, counts.length()).filter(bucket -> counts.get(bucket) > 0)
                .mapToObj(bucket -> "\"" + bucket + "\":" + counts.get(bucket)).collect(Collectors.joining(",", "{", "}"));
        }
    }

    /** What one task has done so far. */
    static final class Tally {
        final List<long[]> stamps = new ArrayList<>();
        long asked, count, errors;
        String error;

        synchronized long asks() {
            long now = System.nanoTime();
            if (!over) asked = now;
            return now;
        }

        synchronized void pair(long nanos) {
            count++;
            pairs.add(nanos);
        }

        synchronized void held(long asked, long held, long left, boolean reads) {
            if (over) return;
            this.asked = 0;
            pair(System.nanoTime() - asked);
            waits.add(held - asked);
            if (GAME.containsKey("stamps") && stamps.size() < 200_000 / number("tasks"))
                stamps.add(new long[] {reads ? asked | Long.MIN_VALUE : asked, held, left});
        }

        synchronized void failed(Exception failure) {
            if (over) return;
            asked = 0;
            errors++;
            if (error == null) error = failure.toString();
        }
    }
}
