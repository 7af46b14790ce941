import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.util.TestStreamEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.test.util.MiniClusterWithClientResource;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * A Flink cluster in one process: JobManager, one TaskManager and the client. Runs the scripts that are named on its standard input, one
 * a line, and answers each with a line of key=value pairs. Arguments are the cluster's settings, key=value. The system property
 * nexmark.seconds bounds a job: it is cancelled, and the answer has the events that its source has made by then.
 */
public final class Runner {
    static final Pattern SET = Pattern.compile("(?is)^SET\\s+'([^']*)'\\s*=\\s*'([^']*)'$");
    static MiniClusterWithClientResource cluster;

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        for (String a : args) {
            String[] kv = a.split("=", 2);
            conf.setString(kv[0], kv[1]);
        }
        int slots = Integer.parseInt(conf.getString("taskmanager.numberOfTaskSlots", "1"));
        cluster = new MiniClusterWithClientResource(new MiniClusterResourceConfiguration.Builder()
                .setConfiguration(conf).setNumberTaskManagers(1).setNumberSlotsPerTaskManager(slots).build());
        cluster.before();
        TestStreamEnvironment.setAsContext(cluster.getMiniCluster(), slots);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, String> out = new TreeMap<>();
            try {
                run(Path.of(line), out);
            } catch (Throwable e) {
                Throwable root = e;
                while (root.getCause() != null && root.getCause() != root) {
                    root = root.getCause();
                }
                out.put("error", root.getClass().getSimpleName() + ": " + String.valueOf(root.getMessage()).replaceAll("\\s+", " "));
            }
            StringBuilder b = new StringBuilder("done");
            out.forEach((k, v) -> b.append('\t').append(k).append('=').append(v));
            System.out.println(b);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static void run(Path file, Map<String, String> out) throws Exception {
        System.gc(); // what the run before left is not this one's
        Files.writeString(Path.of("/proc/self/clear_refs"), "5"); // peak of resident memory from here on
        StreamTableEnvironment t = StreamTableEnvironment.create(StreamExecutionEnvironment.getExecutionEnvironment());
        for (String stmt : Files.readString(file).replaceAll("(?m)--.*$", "").split(";\\s*(\n|$)")) {
            stmt = stmt.strip();
            Matcher m = SET.matcher(stmt);
            if (m.matches()) {
                t.getConfig().getConfiguration().setString(m.group(1), m.group(2));
                continue;
            }
            if (stmt.isEmpty()) {
                continue;
            }
            long wall = System.nanoTime();
            long cpu = cpu();
            TableResult r = t.executeSql(stmt);
            String word = stmt.replaceAll("(?s)^(\\w+).*", "$1").toUpperCase(Locale.ROOT);
            if (word.equals("SELECT")) {
                String last = "";
                try (CloseableIterator<Row> it = r.collect()) {
                    while (it.hasNext()) {
                        last = it.next().toString();
                    }
                }
                out.put("row", last);
            } else if (r.getJobClient().isPresent()) {
                NexmarkSource.Rows.started.clear();
                try {
                    r.await(Long.getLong("nexmark.seconds", Integer.MAX_VALUE), TimeUnit.SECONDS);
                } catch (TimeoutException e) {
                    out.put("events", Long.toString(NexmarkSource.Rows.read()));
                }
                out.put("wall", Long.toString(System.nanoTime() - wall));
                out.put("cpu", Long.toString(cpu() - cpu));
                out.put("rss", Long.toString(peak()));
                if (out.containsKey("events")) {
                    r.getJobClient().get().cancel().get();
                    continue;
                }
                CheckpointStatsSnapshot s = cluster.getMiniCluster().getExecutionGraph(r.getJobClient().get().getJobID()).get().getCheckpointStatsSnapshot();
                out.put("checkpoints", Long.toString(s.getCounts().getNumberOfCompletedCheckpoints()));
                out.put("checkpoint_bytes", Long.toString(s.getSummaryStats().getCheckpointedSize().getSum()));
            }
        }
    }

    /** cpu is the processor time of all threads of this process, in ns: Flink's, RocksDB's, the compilers' and the collector's. */
    static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** peak is the most memory that was resident since it was reset, in bytes. */
    static long peak() throws Exception {
        for (String l : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (l.startsWith("VmHWM:")) {
                return Long.parseLong(l.replaceAll("\\D", "")) * 1024;
            }
        }
        return 0;
    }
}
