import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.formats.json.JsonFormatFactory;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/** The format 'changelog-json', {"op":"-U","data":{…}}, which Flink does not bring: JSON rows with their kind. */
public final class ChangelogJson implements DeserializationFormatFactory {
    private final JsonFormatFactory json = new JsonFormatFactory();

    @Override
    public String factoryIdentifier() {
        return "changelog-json";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return json.optionalOptions();
    }

    @Override
    public DecodingFormat<DeserializationSchema<RowData>> createDecodingFormat(DynamicTableFactory.Context c, ReadableConfig o) {
        DecodingFormat<DeserializationSchema<RowData>> inner = json.createDecodingFormat(c, o);
        return new DecodingFormat<DeserializationSchema<RowData>>() {
            @Override
            public DeserializationSchema<RowData> createRuntimeDecoder(DynamicTableSource.Context x, DataType rows) {
                DataType env = DataTypes.ROW(DataTypes.FIELD("op", DataTypes.STRING()), DataTypes.FIELD("data", rows));
                int arity = rows.getLogicalType().getChildren().size();
                return new Decoder(inner.createRuntimeDecoder(x, env), arity, x.createTypeInformation(rows));
            }

            @Override
            public ChangelogMode getChangelogMode() {
                return ChangelogMode.all();
            }
        };
    }

    static final class Decoder implements DeserializationSchema<RowData> {
        final DeserializationSchema<RowData> inner;
        final int arity;
        final TypeInformation<RowData> type;

        Decoder(DeserializationSchema<RowData> inner, int arity, TypeInformation<RowData> type) {
            this.inner = inner;
            this.arity = arity;
            this.type = type;
        }

        @Override
        public void open(InitializationContext c) throws Exception {
            inner.open(c);
        }

        @Override
        public RowData deserialize(byte[] m) throws IOException {
            RowData env = inner.deserialize(m);
            RowData row = env.getRow(1, arity);
            row.setRowKind(kind(env.getString(0).toString()));
            return row;
        }

        static RowKind kind(String op) {
            for (RowKind k : RowKind.values()) {
                if (k.shortString().equals(op)) {
                    return k;
                }
            }
            throw new IllegalArgumentException("op " + op);
        }

        @Override
        public boolean isEndOfStream(RowData r) {
            return false;
        }

        @Override
        public TypeInformation<RowData> getProducedType() {
            return type;
        }
    }
}
