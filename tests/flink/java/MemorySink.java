import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;

/** The connector 'memory' as a sink: keeps the changes it is sent, in the order they come, for the answer file. */
public final class MemorySink implements DynamicTableSinkFactory {
    static final ConfigOption<String> CHANGELOG = ConfigOptions.key("changelog").stringType().defaultValue("append");
    static final ConfigOption<String> NAME = ConfigOptions.key("name").stringType().noDefaultValue();
    static final Map<String, Ask.Log> tables = Collections.synchronizedMap(new LinkedHashMap<>());

    static void clear() {
        tables.clear();
    }

    /** dump prints what the tables were sent since the last dump. */
    static String dump(boolean changelog) {
        StringBuilder out = new StringBuilder();
        new java.util.TreeMap<>(tables).forEach((n, log) -> out.append("table " + n + ":\n").append(log.print(changelog)));
        tables.values().forEach(l -> l.lines.clear());
        return out.toString();
    }

    @Override
    public String factoryIdentifier() {
        return "memory";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(CHANGELOG, NAME);
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context c) {
        FactoryUtil.TableFactoryHelper h = FactoryUtil.createTableFactoryHelper(this, c);
        h.validate();
        ReadableConfig o = h.getOptions();
        return new Table(c.getObjectIdentifier().getObjectName(), o.get(CHANGELOG), c.getPhysicalRowDataType(), c.getPrimaryKeyIndexes());
    }

    static final class Table implements DynamicTableSink {
        final String name;
        final String mode;
        final DataType type;
        final int[] key;

        Table(String name, String mode, DataType type, int[] key) {
            this.name = name;
            this.mode = mode;
            this.type = type;
            this.key = key;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return mode.equals("append") ? ChangelogMode.insertOnly()
                    : mode.equals("upsert") ? ChangelogMode.upsert(false) : ChangelogMode.all();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context c) {
            DataStructureConverter conv = c.createDataStructureConverter(type);
            List<LogicalType> types = new ArrayList<>();
            type.getChildren().forEach(d -> types.add(d.getLogicalType()));
            tables.putIfAbsent(name, new Ask.Log(mode.equals("upsert") ? key : null));
            return SinkV2Provider.of(new Rows(name, conv, types));
        }

        @Override
        public DynamicTableSink copy() {
            return new Table(name, mode, type, key);
        }

        @Override
        public String asSummaryString() {
            return "memory";
        }
    }

    static final class Rows implements Sink<RowData> {
        final String name;
        final DynamicTableSink.DataStructureConverter conv;
        final List<LogicalType> types;

        Rows(String name, DynamicTableSink.DataStructureConverter conv, List<LogicalType> types) {
            this.name = name;
            this.conv = conv;
            this.types = types;
        }

        @Override
        public SinkWriter<RowData> createWriter(WriterInitContext c) {
            return new SinkWriter<RowData>() {
                @Override
                public void write(RowData r, Context x) {
                    Row row = (Row) conv.toExternal(r);
                    List<String> cells = new ArrayList<>();
                    for (int i = 0; i < types.size(); i++) {
                        cells.add(Text.of(row.getField(i), types.get(i)));
                    }
                    tables.get(name).add(r.getRowKind().shortString(), cells);
                }

                @Override
                public void flush(boolean end) {}

                @Override
                public void close() {}
            };
        }
    }
}
