import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsFilterPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.expressions.CallExpression;
import org.apache.flink.table.expressions.FieldReferenceExpression;
import org.apache.flink.table.expressions.ResolvedExpression;
import org.apache.flink.table.expressions.ValueLiteralExpression;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.functions.BuiltInFunctionDefinitions;
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
                : new Pruned(rate, h.getOptions().get(EVENTS), row, all, c.getPhysicalRowDataType());
    }

    /** Whole makes all columns of the table. */
    static class Whole implements ScanTableSource {
        final long rate;
        final long events;
        final RowType row;
        int[][] read;
        int kinds = 7; // a bit for each kind of events to make

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
            return SourceProvider.of(new NexmarkSource(rate, events, columns, kinds, this instanceof Pruned));
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

        static String norm(String name) {
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

    /** Pruned makes the columns, and the fields of ROWs, that the query reads, of the kinds of events that its filter lets through. */
    static final class Pruned extends Whole implements SupportsProjectionPushDown, SupportsFilterPushDown, SupportsWatermarkPushDown {
        private DataType produced;
        private WatermarkStrategy<RowData> watermarks; // null: another operator makes them

        Pruned(long rate, long events, RowType row, int[][] read, DataType produced) {
            super(rate, events, row, read);
            this.produced = produced;
        }

        @Override
        public boolean supportsNestedProjection() {
            return true;
        }

        @Override
        public void applyProjection(int[][] fields, DataType type) {
            read = fields;
            produced = type;
        }

        /** applyFilters takes comparisons of the kind of events with a number, joined by OR. */
        @Override
        public Result applyFilters(List<ResolvedExpression> filters) {
            List<ResolvedExpression> taken = new ArrayList<>();
            List<ResolvedExpression> left = new ArrayList<>();
            for (ResolvedExpression f : filters) {
                int k = kinds(f);
                if (k < 0) {
                    left.add(f);
                } else {
                    kinds &= k;
                    taken.add(f);
                }
            }
            return Result.of(taken, left);
        }

        /** kinds is a bit for each kind of events that e is TRUE for, -1 if it is another condition. */
        private static int kinds(ResolvedExpression e) {
            if (!(e instanceof CallExpression)) {
                return -1;
            }
            CallExpression call = (CallExpression) e;
            List<ResolvedExpression> args = call.getResolvedChildren();
            if (call.getFunctionDefinition() == BuiltInFunctionDefinitions.OR) {
                int all = 0;
                for (ResolvedExpression a : args) {
                    int k = kinds(a);
                    if (k < 0) {
                        return -1;
                    }
                    all |= k;
                }
                return all;
            }
            if (call.getFunctionDefinition() != BuiltInFunctionDefinitions.EQUALS
                    || !(args.get(0) instanceof FieldReferenceExpression) || !(args.get(1) instanceof ValueLiteralExpression)
                    || !norm(((FieldReferenceExpression) args.get(0)).getName()).equals("eventtype")) {
                return -1;
            }
            return ((ValueLiteralExpression) args.get(1)).getValueAs(Integer.class).map(k -> k < 0 || k > 2 ? 0 : 1 << k).orElse(-1);
        }

        @Override
        public void applyWatermark(WatermarkStrategy<RowData> s) {
            watermarks = s;
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext c) {
            SourceProvider made = (SourceProvider) super.getScanRuntimeProvider(c);
            if (watermarks == null) {
                return made;
            }
            TypeInformation<RowData> type = c.createTypeInformation(produced);
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(ProviderContext p, StreamExecutionEnvironment env) {
                    DataStreamSource<RowData> s = env.fromSource(made.createSource(), watermarks, "nexmark", type);
                    p.generateUid("nexmark").ifPresent(s::uid);
                    return s;
                }

                @Override
                public boolean isBounded() {
                    return events > 0;
                }
            };
        }

        @Override
        public DynamicTableSource copy() {
            Pruned p = new Pruned(rate, events, row, read, produced);
            p.kinds = kinds;
            p.watermarks = watermarks;
            return p;
        }
    }
}
