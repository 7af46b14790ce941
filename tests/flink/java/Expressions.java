import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Files of expressions, one a line, and what Flink gives for each. */
final class Expressions {
    static final String ARROW = "  --> ";
    static final int TOGETHER = 40;

    /** file evaluates the expressions of a file and writes the answers beside them, or prints them. */
    static void file(Path p, boolean record) throws Exception {
        String before = Files.readString(p);
        List<String> lines = new ArrayList<>(before.lines().toList());
        TableEnvironment t = Ask.env(false);
        List<Integer> todo = new ArrayList<>();
        List<String> exprs = new ArrayList<>();
        List<LogicalType> types = new ArrayList<>();
        String[] answers = new String[lines.size()];
        String from = "";
        for (int i = 0; i < lines.size(); i++) {
            String l = lines.get(i);
            if (l.isBlank() || l.startsWith("--")) {
                flush(t, from, todo, exprs, types, answers);
                if (l.startsWith("-- set ")) {
                    String[] kv = l.substring(7).split("=", 2);
                    Ask.set(t, kv[0].strip(), kv[1].strip());
                } else if (l.startsWith("-- run ")) {
                    t.executeSql(l.substring(7));
                } else if (l.startsWith("-- from ")) {
                    from = " FROM " + l.substring(8).strip();
                }
                continue;
            }
            String e = l.split(ARROW, 2)[0].stripTrailing();
            lines.set(i, e);
            try {
                LogicalType type = t.sqlQuery("SELECT " + e + " AS x" + from).getResolvedSchema().getColumnDataTypes().get(0).getLogicalType();
                if (from.isEmpty()) {
                    t.explainSql("SELECT " + e); // constants are folded now: what fails by that need not fail a query of many
                }
                todo.add(i);
                exprs.add(e);
                types.add(type);
            } catch (Throwable x) {
                answers[i] = error(x);
            }
            if (todo.size() >= TOGETHER) {
                flush(t, from, todo, exprs, types, answers);
            }
        }
        flush(t, from, todo, exprs, types, answers);
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < lines.size(); i++) {
            out.append(lines.get(i));
            if (answers[i] != null) {
                out.append(ARROW).append(answers[i]);
            }
            out.append('\n');
        }
        if (!record) {
            System.out.print(out);
        } else if (!out.toString().equals(before)) {
            System.out.println("CHANGED " + p);
            Files.writeString(p, out);
        }
    }

    static String error(Throwable x) {
        return "!! " + Ask.failure(x).strip().substring("error: ".length()).replaceAll("\\s+", " ");
    }

    static void flush(TableEnvironment t, String from, List<Integer> todo, List<String> exprs, List<LogicalType> types, String[] answers) {
        eval(t, from, new ArrayList<>(todo), new ArrayList<>(exprs), new ArrayList<>(types), answers);
        todo.clear();
        exprs.clear();
        types.clear();
    }

    /** eval evaluates expressions in one query; when it fails, in halves, so that the one at fault gets the error. */
    static void eval(TableEnvironment t, String from, List<Integer> at, List<String> exprs, List<LogicalType> types, String[] answers) {
        int n = at.size();
        if (n == 0) {
            return;
        }
        List<String> cols = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            cols.add(exprs.get(i) + " AS x" + i);
        }
        List<List<String>> values = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            values.add(new ArrayList<>());
        }
        try {
            TableResult r = t.executeSql("SELECT " + String.join(", ", cols) + from);
            try (CloseableIterator<Row> it = r.collect()) {
                while (it.hasNext()) {
                    Row row = it.next();
                    for (int i = 0; i < n; i++) {
                        values.get(i).add(Text.of(row.getField(i), types.get(i)));
                    }
                }
            }
        } catch (Throwable x) {
            if (n == 1) {
                answers[at.get(0)] = error(x);
                return;
            }
            int h = n / 2;
            eval(t, from, at.subList(0, h), exprs.subList(0, h), types.subList(0, h), answers);
            eval(t, from, at.subList(h, n), exprs.subList(h, n), types.subList(h, n), answers);
            return;
        }
        for (int i = 0; i < n; i++) {
            answers[at.get(i)] = String.join(" | ", values.get(i)) + " :: " + types.get(i).asSummaryString();
        }
    }
}
