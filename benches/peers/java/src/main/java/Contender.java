import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The Java contenders, as benches/peers/README.md asks: Redisson's lock, fair lock and read-write lock, one thread per task. */
public final class Contender {
    static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    static final Map<String, String> GAME = new HashMap<>();
    static RedissonClient client;

    public static void main(String[] words) throws Exception {
        for (String word : words) GAME.put(word.split("=", 2)[0], word.split("=", 2)[1]);
        Config config = new Config();
        // As the documentation connects to one server; pools, watchdog (30 s) and timeouts as they come.
        config.useSingleServer().setAddress(GAME.get("url"));
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
        boolean own = GAME.get("play").equals("pairs");
        // The virtual machine compiles what it runs often: it gets longer to warm up than the others.
        Tally spare = new Tally();
        turns(locks("warm:" + GAME.get("process")), 0, 0, spare, System.nanoTime() + number("warm_ms") * 1_000_000L);
        // What only the game needs is there before anything is weighed.
        List<Tally> tallies = new ArrayList<>();
        for (int task = 0; task < number("tasks"); task++) tallies.add(new Tally());
        long rss = residentKib();
        long start = ready();
        for (int task = 0; task < number("tasks"); task++) {
            RLock[] locks = locks(own ? GAME.get("name") + ":" + GAME.get("process") + ":" + task : GAME.get("name"));
            Tally tally = tallies.get(task);
            Thread thread = new Thread(null, () -> turns(locks, number("section_us"), number("pause_us"), tally, Long.MAX_VALUE), "task", 256 * 1024);
            thread.setDaemon(true);
            thread.start();
            pause(number("step_us"));
        }
        long complete = System.nanoTime();
        Thread.sleep(number("ms"));
        tell(rss, start, complete, tallies, 0);
    }

    static void turns(RLock[] locks, int section, int pause, Tally tally, long until) {
        for (int turn = 0; System.nanoTime() < until; turn++) {
            RLock lock = locks[locks.length > 1 && turn % 10 == 9 ? 1 : 0];
            long asked = tally.asked = System.nanoTime();
            try {
                lock.lock();
                long held = System.nanoTime();
                pause(section);
                long left = System.nanoTime();
                lock.unlock();
                tally.held(asked, held, left);
            } catch (Exception error) {
                tally.failed(error);
                pause(1000);
            }
            tally.asked = 0;
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
        Tally tally = new Tally();
        Runnable once = () -> {
            long before = System.nanoTime();
            lock.lock();
            lock.unlock();
            tally.pair(System.nanoTime() - before);
        };
        for (long end = System.nanoTime() + number("warm_ms") * 1_000_000L; System.nanoTime() < end; ) once.run();
        tally.clear();
        long rss = residentKib();
        long start = ready();
        for (long end = start + number("ms") * 1_000_000L; System.nanoTime() < end; ) once.run();
        tell(rss, start, start, List.of(tally), 0);
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
        Thread.sleep(number("ms"));
        long lost = locks.stream().filter(lock -> !lock.isHeldByCurrentThread()).count();
        tell(rss, start, start, List.of(tally), lost);
    }

    static long ready() throws IOException {
        System.out.println("ready");
        INPUT.readLine();
        return System.nanoTime();
    }

    static long residentKib() throws IOException {
        String line = Files.readAllLines(Path.of("/proc/self/status")).stream().filter(l -> l.startsWith("VmRSS:")).findFirst().orElse("VmRSS: 0 kB");
        return Long.parseLong(line.replaceAll("\\D", ""));
    }

    static void tell(long rss, long start, long complete, List<Tally> tallies, long lost) throws Exception {
        long end = System.nanoTime();
        Tally all = new Tally();
        List<Long> counts = new ArrayList<>();
        long still = 0;
        for (Tally tally : tallies) {
            synchronized (tally) {
                counts.add(tally.count);
                all.merge(tally);
                if (tally.asked != 0) still = Math.max(still, end - tally.asked);
            }
        }
        if (GAME.containsKey("stamps")) {
            ByteBuffer bytes = ByteBuffer.allocate(all.stamps.size() * 24).order(ByteOrder.LITTLE_ENDIAN);
            for (long[] stamp : all.stamps) for (long number : stamp) bytes.putLong(number);
            Files.write(Path.of(GAME.get("stamps")), bytes.array());
        }
        String error = all.error == null ? "null" : "\"" + all.error.replaceAll("[^ -!#-\\[\\]-~]", " ") + "\"";
        System.out.printf("{\"version\":\"Redisson %s\",\"rss_before_kib\":%d,\"elapsed_ns\":%d,\"complete_ns\":%d,\"acquisitions\":%s,"
            + "\"wait\":%s,\"wait_max_ns\":%d,\"pair\":%s,\"pair_max_ns\":%d,\"still_waiting_ns\":%d,\"errors\":%d,\"error\":%s,\"lost\":%d}%n",
            Redisson.class.getPackage().getImplementationVersion(), rss, end - start, complete, counts, all.wait.json(), all.wait.max,
            all.pair.json(), all.pair.max, still, all.errors, error, lost);
        INPUT.readLine();
    }

    /** Counts in buckets that grow with the value. */
    static final class Histogram {
        final long[] counts = new long[128 * 58];
        long max;

        void add(long value) {
            int e = Math.max(0, 64 - Long.numberOfLeadingZeros(value) - 8);
            counts[128 * e + (int) (value >> e)]++;
            max = Math.max(max, value);
        }

        void merge(Histogram other) {
            for (int bucket = 0; bucket < counts.length; bucket++) counts[bucket] += other.counts[bucket];
            max = Math.max(max, other.max);
        }

        String json() {
            return java.util.stream.IntStream.range(0, counts.length).filter(bucket -> counts[bucket] > 0)
                .mapToObj(bucket -> "\"" + bucket + "\":" + counts[bucket]).collect(Collectors.joining(",", "{", "}"));
        }
    }

    /** What one task has done so far. */
    static final class Tally {
        final Histogram wait = new Histogram(), pair = new Histogram();
        final List<long[]> stamps = new ArrayList<>();
        volatile long asked;
        long count, errors;
        String error;

        synchronized void pair(long nanos) {
            count++;
            pair.add(nanos);
        }

        synchronized void held(long asked, long held, long left) {
            pair(System.nanoTime() - asked);
            wait.add(held - asked);
            if (GAME.containsKey("stamps") && stamps.size() < 200_000 / number("tasks")) stamps.add(new long[] {asked, held, left});
        }

        synchronized void failed(Exception failure) {
            errors++;
            if (error == null) error = failure.toString();
        }

        synchronized void clear() {
            count = 0;
            Arrays.fill(pair.counts, 0);
            pair.max = 0;
        }

        void merge(Tally other) {
            wait.merge(other.wait);
            pair.merge(other.pair);
            stamps.addAll(other.stamps);
            errors += other.errors;
            if (error == null) error = other.error;
        }
    }
}
