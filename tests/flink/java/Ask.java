import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.util.TestStreamEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.test.util.MiniClusterWithClientResource;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Asks Apache Flink: runs .sql scripts and files of expressions in one JVM on one local cluster and writes what came out.
 * See README.md beside this folder for the format of files and answers.
 */
public final class Ask {
    static final String VERSION = System.getProperty("flink.version", "?");
    static final int TIMEOUT_SECONDS = Integer.getInteger("ask.timeout", 120);
    static MiniClusterWithClientResource cluster;
    /** digest: results are written as their size, a hash and their first rows. */
    static boolean digest;
    /** changes: results are the changes, else the rows that they leave. */
    static boolean changes;
    static ExecutorService pool = Executors.newCachedThreadPool(r -> {
        Thread t = new Thread(r);
        t.setDaemon(true);
        return t;
    });

    public static void main(String[] args) throws Exception {
        boolean record = false;
        List<String> files = new ArrayList<>();
        for (String a : args) {
            if (a.equals("-record")) {
                record = true;
            } else {
                files.add(a);
            }
        }
        Configuration conf = new Configuration();
        conf.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(256));
        conf.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(256));
        conf.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(256));
        cluster = new MiniClusterWithClientResource(new MiniClusterResourceConfiguration.Builder()
                .setConfiguration(conf).setNumberTaskManagers(1).setNumberSlotsPerTaskManager(8).build());
        cluster.before();
        TestStreamEnvironment.setAsContext(cluster.getMiniCluster(), 1);
        for (String f : files) {
            Path p = Path.of(f);
            long begin = System.nanoTime();
            if (f.endsWith(".txt")) {
                Expressions.file(p, record);
            } else {
                String answer = script(Files.readString(p));
                if (record) {
                    String suffix = System.getenv().getOrDefault("ASK_SUFFIX", "");
                    Path g = Path.of(f.replaceAll("\\.sql$", "") + suffix + ".golden");
                    String before = Files.exists(g) ? Files.readString(g) : null;
                    if (!answer.equals(before)) {
                        System.out.println((before == null ? "new     " : "CHANGED ") + g);
                        Files.writeString(g, answer);
                    }
                } else {
                    System.out.print(answer);
                }
            }
            System.err.printf("%5d ms %s%n", (System.nanoTime() - begin) / 1_000_000, f);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** env makes a session with what every file starts from. */
    static TableEnvironment env(boolean batch) {
        StreamExecutionEnvironment se = StreamExecutionEnvironment.getExecutionEnvironment();
        se.setParallelism(1);
        if (batch) {
            se.setRuntimeMode(RuntimeExecutionMode.BATCH);
        }
        EnvironmentSettings.Builder s = EnvironmentSettings.newInstance();
        TableEnvironment t = StreamTableEnvironment.create(se, (batch ? s.inBatchMode() : s.inStreamingMode()).build());
        set(t, "table.local-time-zone", "UTC");
        set(t, "pipeline.auto-watermark-interval", "0 ms");
        set(t, "restart-strategy.type", "none");
        return t;
    }

    static void set(TableEnvironment t, String k, String v) {
        t.getConfig().getConfiguration().setString(k, v);
    }

    static final Pattern HEADER = Pattern.compile("(?m)^-- (mode|compare|timeout|digest): *(.*)$");
    static final Pattern SET = Pattern.compile("(?is)^SET\\s+'([^']*)'\\s*=\\s*'([^']*)'$");

    /** script runs the statements of a file and returns the answer file. */
    static String script(String text) {
        Map<String, String> head = new TreeMap<>();
        Matcher m = HEADER.matcher(text);
        while (m.find()) {
            head.put(m.group(1), m.group(2).trim());
        }
        digest = head.containsKey("digest");
        boolean changelog = changes = head.containsKey("compare");
        int seconds = Integer.parseInt(head.getOrDefault("timeout", "" + TIMEOUT_SECONDS));
        StringBuilder out = new StringBuilder("-- Apache Flink " + VERSION + "\n");
        MemorySink.clear();
        Future<String> f = pool.submit(() -> statements(text, "batch".equals(head.get("mode")), changelog));
        try {
            out.append(f.get(seconds, TimeUnit.SECONDS));
        } catch (TimeoutException e) {
            f.cancel(true);
            out.append("error: does not end within " + seconds + " s\n");
        } catch (Exception e) {
            out.append(failure(e.getCause() == null ? e : e.getCause()));
        }
        return out.toString();
    }

    static String statements(String text, boolean batch, boolean changelog) throws Exception {
        TableEnvironment t = env(batch);
        StringBuilder out = new StringBuilder();
        for (String stmt : split(text)) {
            Matcher m = SET.matcher(stmt);
            if (m.matches()) {
                set(t, m.group(1), m.group(2));
                continue;
            }
            // The events of this engine's connector, exported: see README.md.
            stmt = stmt.replaceAll("'connector' = 'nexmark'[^)]*", "'connector' = 'filesystem', 'path' = '"
                    + System.getenv("NEXMARK_EVENTS") + "', 'format' = 'json'");
            String word = stmt.replaceAll("(?s)^[\\s(]*(\\w+).*", "$1").toUpperCase();
            try {
                TableResult r = t.executeSql(stmt);
                if (word.equals("SELECT") || word.equals("WITH") || word.equals("VALUES")) {
                    out.append(rows(r, changelog));
                } else if (r.getJobClient().isPresent()) {
                    r.await();
                    out.append(MemorySink.dump(changelog));
                } else if (r.getResultKind() == ResultKind.SUCCESS_WITH_CONTENT) {
                    out.append(text(r));
                }
            } catch (Throwable e) {
                return out.append(failure(e)).toString();
            }
        }
        return out.toString();
    }

    /** text is a result of the session itself, such as EXPLAIN's. */
    static String text(TableResult r) throws Exception {
        StringBuilder out = new StringBuilder();
        try (CloseableIterator<Row> it = r.collect()) {
            while (it.hasNext()) {
                Row row = it.next();
                List<String> cells = new ArrayList<>();
                for (int i = 0; i < row.getArity(); i++) {
                    cells.add(String.valueOf(row.getField(i)));
                }
                out.append(String.join(" | ", cells)).append('\n');
            }
        }
        return out.toString();
    }

    static String rows(TableResult r, boolean changelog) throws Exception {
        ResolvedSchema schema = r.getResolvedSchema();
        List<LogicalType> types = new ArrayList<>();
        List<String> cols = new ArrayList<>();
        schema.getColumns().forEach(c -> {
            types.add(c.getDataType().getLogicalType());
            cols.add(c.getName() + " " + c.getDataType().getLogicalType().asSummaryString());
        });
        StringBuilder out = new StringBuilder("schema: " + String.join(", ", cols) + "\n");
        Log log = new Log(null);
        try (CloseableIterator<Row> it = r.collect()) {
            while (it.hasNext()) {
                Row row = it.next();
                List<String> cells = new ArrayList<>();
                for (int i = 0; i < row.getArity(); i++) {
                    cells.add(Text.of(row.getField(i), types.get(i)));
                }
                log.add(row.getKind().shortString(), cells);
            }
        }
        return out.append(log.print(changelog)).toString();
    }

    /** Log is the changes of a result, and the rows they leave. */
    static final class Log {
        final int[] key;
        final List<String> lines = new ArrayList<>();
        final Map<String, Integer> count = new TreeMap<>();
        final Map<String, String> byKey = new TreeMap<>();

        Log(int[] key) {
            this.key = key;
        }

        synchronized void add(String kind, List<String> cells) {
            String row = "(" + String.join(", ", cells) + ")";
            if (changes) {
                lines.add(kind + row);
            }
            boolean acc = kind.equals("+I") || kind.equals("+U");
            if (key == null) {
                count.merge(row, acc ? 1 : -1, (a, b) -> a + b == 0 ? null : (Integer) (a + b));
                return;
            }
            StringBuilder k = new StringBuilder();
            for (int i : key) {
                k.append(cells.get(i)).append(", ");
            }
            if (acc) {
                byKey.put(k.toString(), row);
            } else {
                byKey.remove(k.toString());
            }
        }

        synchronized String print(boolean changelog) {
            StringBuilder out = new StringBuilder();
            if (changelog) {
                lines.forEach(l -> out.append(l).append('\n'));
                return out.toString();
            }
            List<String> rows = new ArrayList<>(byKey.values());
            count.forEach((row, n) -> {
                for (int i = 0; i < Math.abs(n); i++) {
                    rows.add(n > 0 ? row : "missing: " + row);
                }
            });
            rows.sort((a, b) -> java.util.Arrays.compareUnsigned(
                    a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8)));
            if (digest) {
                return digest(rows);
            }
            rows.forEach(l -> out.append(l).append('\n'));
            return out.toString();
        }
    }

    static String digest(List<String> rows) {
        try {
            MessageDigest h = MessageDigest.getInstance("SHA-256");
            StringBuilder out = new StringBuilder("rows: " + rows.size() + "\n");
            for (String r : rows) {
                h.update((r + "\n").getBytes(StandardCharsets.UTF_8));
            }
            out.append("sha256: ").append(HexFormat.of().formatHex(h.digest())).append('\n');
            rows.subList(0, Math.min(5, rows.size())).forEach(r -> out.append(r).append('\n'));
            return out.toString();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    /** failure is the class of an error and the message of what caused it, without what differs from run to run. */
    static String failure(Throwable e) {
        StringBuilder out = new StringBuilder("error: ");
        List<Throwable> chain = new ArrayList<>();
        for (Throwable c = e; c != null && !chain.contains(c); c = c.getCause()) {
            chain.add(c);
        }
        Collections.reverse(chain);
        Throwable root = chain.get(0);
        for (Throwable c : chain) {
            if (c.getMessage() != null && !c.getMessage().isBlank()) {
                root = c;
                break;
            }
        }
        out.append(root.getClass().getSimpleName()).append(": ").append(clean(root.getMessage())).append('\n');
        return out.toString();
    }

    static String clean(String s) {
        if (s == null) {
            return "";
        }
        s = s.strip().replaceAll("@[0-9a-f]{5,}", "").replaceAll("\\$[0-9]+\\b", "\\$n");
        String[] lines = s.split("\n");
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < Math.min(lines.length, 4) && !lines[i].isBlank(); i++) {
            out.append(i > 0 ? "\n  " : "").append(lines[i].strip(), 0, Math.min(400, lines[i].strip().length()));
        }
        return out.toString();
    }

    /** split cuts a script into its statements: a semicolon outside quotes and comments ends one. */
    static List<String> split(String text) {
        List<String> out = new ArrayList<>();
        StringBuilder b = new StringBuilder();
        boolean set = false; // inside BEGIN STATEMENT SET … END
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '-' && text.startsWith("--", i)) {
                while (i < text.length() && text.charAt(i) != '\n') {
                    i++;
                }
                b.append('\n');
                continue;
            }
            if (c == '/' && text.startsWith("/*", i) && !text.startsWith("/*+", i)) {
                i = text.indexOf("*/", i) + 1;
                continue;
            }
            if (c == '\'' || c == '`' || c == '"') {
                int j = text.indexOf(c, i + 1);
                b.append(text, i, j + 1);
                i = j;
                continue;
            }
            if (c == ';') {
                String stmt = b.toString().strip();
                String up = stmt.toUpperCase();
                if (up.startsWith("EXECUTE STATEMENT SET") && !up.endsWith("END")) {
                    b.append(c);
                    continue;
                }
                if (!stmt.isEmpty()) {
                    out.add(stmt);
                }
                b.setLength(0);
                continue;
            }
            b.append(c);
        }
        if (!b.toString().isBlank()) {
            out.add(b.toString().strip());
        }
        return out;
    }
}
