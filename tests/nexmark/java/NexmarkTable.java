import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;

/** The connector 'nexmark' for Flink: the options and columns that the benchmark's tables use. */
public final class NexmarkTable implements DynamicTableSourceFactory {
    private static final ConfigOption<Long> FIRST_RATE = ConfigOptions.key("first-event.rate").longType().defaultValue(10000L);
    private static final ConfigOption<Long> NEXT_RATE = ConfigOptions.key("next-event.rate").longType().defaultValue(10000L);
    private static final ConfigOption<Long> EVENTS = ConfigOptions.key("events.num").longType().defaultValue(0L);

    @Override
    public String factoryIdentifier() {
        return "nexmark";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(FIRST_RATE, NEXT_RATE, EVENTS);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context c) {
        FactoryUtil.TableFactoryHelper h = FactoryUtil.createTableFactoryHelper(this, c);
        h.validate();
        long rate = h.getOptions().get(FIRST_RATE);
        if (rate != h.getOptions().get(NEXT_RATE)) {
            throw new ValidationException("'next-event.rate' is not 'first-event.rate'");
        }
        RowType row = (RowType) c.getPhysicalRowDataType().getLogicalType();
        int[][] all = new int[row.getFieldCount()][];
        for (int i = 0; i < all.length; i++) {
            all[i] = new int[] {i};
        }
        // The official connector makes whole rows; one that makes what is read is the better peer.
        return Boolean.getBoolean("nexmark.full") ? new Whole(rate, h.getOptions().get(EVENTS), row, all)
                : new Pruned(rate, h.getOptions().get(EVENTS), row, all);
    }

    /** Whole makes all columns of the table. */
    static class Whole implements ScanTableSource {
        final long rate;
        final long events;
        final RowType row;
        int[][] read;

        Whole(long rate, long events, RowType row, int[][] read) {
            this.rate = rate;
            this.events = events;
            this.row = row;
            this.read = read;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext c) {
            int[][] columns = new int[read.length][];
            for (int i = 0; i < columns.length; i++) {
                columns[i] = column(read[i]);
            }
            return SourceProvider.of(new NexmarkSource(rate, events, columns));
        }

        /** column is the kind of event a column is of (-1: all) and its fields; a ROW has those of all its fields and a last -1. */
        private int[] column(int[] path) {
            RowType.RowField top = row.getFields().get(path[0]);
            if (norm(top.getName()).equals("eventtype")) {
                return new int[] {-1, Events.EVENT_TYPE};
            }
            int kind = List.of("person", "auction", "bid").indexOf(top.getName());
            if (kind < 0) {
                throw new ValidationException("connector 'nexmark' has no column " + top.getName());
            }
            List<RowType.RowField> fields = ((RowType) top.getType()).getFields();
            if (path.length == 2) {
                return new int[] {kind, field(kind, fields.get(path[1]).getName())};
            }
            int[] out = new int[fields.size() + 2];
            out[0] = kind;
            for (int i = 0; i < fields.size(); i++) {
                out[i + 1] = field(kind, fields.get(i).getName());
            }
            out[fields.size() + 1] = -1;
            return out;
        }

        private static int field(int kind, String name) {
            if (norm(name).equals("datetime")) {
                return Events.TIME;
            }
            int i = List.of(Events.FIELDS[kind]).indexOf(norm(name));
            if (i < 0) {
                throw new ValidationException("connector 'nexmark' has no field " + name);
            }
            return Events.FIRST_FIELD[kind] + i;
        }

        private static String norm(String name) {
            return name.replace("_", "").toLowerCase(Locale.ROOT);
        }

        @Override
        public DynamicTableSource copy() {
            return new Whole(rate, events, row, read);
        }

        @Override
        public String asSummaryString() {
            return "nexmark";
        }
    }

    /** Pruned makes the columns, and the fields of ROWs, that the query reads. */
    static final class Pruned extends Whole implements SupportsProjectionPushDown {
        Pruned(long rate, long events, RowType row, int[][] read) {
            super(rate, events, row, read);
        }

        @Override
        public boolean supportsNestedProjection() {
            return true;
        }

        @Override
        public void applyProjection(int[][] fields, DataType produced) {
            read = fields;
        }

        @Override
        public DynamicTableSource copy() {
            return new Pruned(rate, events, row, read);
        }
    }
}
