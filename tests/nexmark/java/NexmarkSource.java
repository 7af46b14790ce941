import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceEnumerator;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceReader;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceSplit;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.types.RowKind;
import org.apache.flink.types.variant.Variant;

/** Makes the events: split i of n has the groups i, i+n, i+2n, ..., as in connectors/nexmark, so that both engines read alike. */
final class NexmarkSource implements Source<RowData, NexmarkSource.Split, Collection<NexmarkSource.Split>> {
    private final long rate;
    private final long events; // 0: no end
    private final int[][] columns; // see NexmarkTable.column
    private final int kinds; // a bit for each kind of events to make
    private final boolean pruned; // a ROW makes those of its fields that are read

    NexmarkSource(long rate, long events, int[][] columns, int kinds, boolean pruned) {
        this.rate = rate;
        this.events = events;
        this.columns = columns;
        this.kinds = kinds;
        this.pruned = pruned;
    }

    @Override
    public Boundedness getBoundedness() {
        return events > 0 ? Boundedness.BOUNDED : Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<Split, Collection<Split>> createEnumerator(SplitEnumeratorContext<Split> c) {
        List<Split> splits = new ArrayList<>();
        for (int i = 0; i < c.currentParallelism(); i++) {
            splits.add(new Split(i, c.currentParallelism(), 0, rate, events, columns, kinds, pruned));
        }
        return new IteratorSourceEnumerator<>(c, splits);
    }

    @Override
    public SplitEnumerator<Split, Collection<Split>> restoreEnumerator(SplitEnumeratorContext<Split> c, Collection<Split> left) {
        return new IteratorSourceEnumerator<>(c, left);
    }

    @Override
    public SourceReader<RowData, Split> createReader(SourceReaderContext c) {
        return new IteratorSourceReader<>(c);
    }

    @Override
    public SimpleVersionedSerializer<Split> getSplitSerializer() {
        return new Serializer<>();
    }

    @Override
    public SimpleVersionedSerializer<Collection<Split>> getEnumeratorCheckpointSerializer() {
        return new Serializer<>();
    }

    /** Split is part of the events, from the split's event next on. */
    static final class Split implements IteratorSourceSplit<RowData, Rows>, Serializable {
        final int index;
        final int of;
        final long next;
        final long rate;
        final long events;
        final int[][] columns;
        final int kinds;
        final boolean pruned;

        Split(int index, int of, long next, long rate, long events, int[][] columns, int kinds, boolean pruned) {
            this.index = index;
            this.of = of;
            this.next = next;
            this.rate = rate;
            this.events = events;
            this.columns = columns;
            this.kinds = kinds;
            this.pruned = pruned;
        }

        @Override
        public String splitId() {
            return Integer.toString(index);
        }

        @Override
        public Rows getIterator() {
            return new Rows(this);
        }

        @Override
        public IteratorSourceSplit<RowData, Rows> getUpdatedSplitForIterator(Rows at) {
            return new Split(index, of, at.next, rate, events, columns, kinds, pruned);
        }
    }

    /** Rows makes the rows of a split. */
    static final class Rows implements Iterator<RowData> {
        private final Events made;
        private final Split split;
        private final int[][] columns;
        private final long limit;
        private final boolean[] wanted = new boolean[(int) Events.GROUP]; // by place in a group
        long next;

        /** started are the ones of this process since it was cleared: how far a job has come that is stopped before its end. */
        static final List<Rows> started = Collections.synchronizedList(new ArrayList<>());

        /**
         * read is how many of the job's events have been read: the share of the rows of all its sources. One that has few
         * rows, such as the auctions of a join, can come to its end long before the others.
         */
        static long read() {
            Map<List<Object>, Rows> last = new HashMap<>();
            synchronized (started) {
                for (Rows r : started) { // the last one of a split counts
                    last.put(List.of(r.split.kinds, Arrays.deepToString(r.split.columns), r.split.index), r);
                }
            }
            double made = 0, all = 0;
            long events = 0;
            for (Rows r : last.values()) {
                made += r.rows(r.next);
                all += r.rows(r.limit);
                events = r.split.events;
            }
            return all == 0 ? 0 : (long) (made / all * events);
        }

        /** rows is how many rows the first n events of the split make. */
        private double rows(long n) {
            double perGroup = 0, rest = 0;
            for (int i = 0; i < wanted.length; i++) {
                if (wanted[i]) {
                    perGroup++;
                    rest += i < n % Events.GROUP ? 1 : 0;
                }
            }
            return n / Events.GROUP * perGroup + rest;
        }

        Rows(Split s) {
            made = new Events(s.rate);
            split = s;
            columns = s.columns;
            next = s.next;
            long groups = s.events / Events.GROUP;
            long rest = groups % s.of;
            long share = groups / s.of * Events.GROUP;
            share += s.index < rest ? Events.GROUP : s.index == rest ? s.events % Events.GROUP : 0;
            limit = s.kinds == 0 ? next : s.events == 0 ? Long.MAX_VALUE : share;
            for (int i = 0; i < wanted.length; i++) {
                wanted[i] = (s.kinds >> Events.kind(i) & 1) != 0;
            }
            skip();
            started.add(this);
        }

        /** skip passes over events that are not wanted. */
        private void skip() {
            int off = (int) (next % Events.GROUP);
            while (next < limit && !wanted[off]) {
                next++;
                off = off + 1 == wanted.length ? 0 : off + 1;
            }
        }

        @Override
        public boolean hasNext() {
            return next < limit;
        }

        @Override
        public RowData next() {
            long n = (next / Events.GROUP * split.of + split.index) * Events.GROUP + next % Events.GROUP;
            next++;
            skip();
            int kind = Events.kind(n);
            GenericRowData row = new GenericRowData(columns.length);
            for (int i = 0; i < columns.length; i++) {
                int[] c = columns[i];
                if (c[0] >= 0 && c[0] != kind) {
                    continue; // NULL
                }
                if (c[c.length - 1] >= 0) {
                    row.setField(i, made.value(c[1], n));
                    continue;
                }
                if (split.pruned) {
                    row.setField(i, new Nested(made, c, n));
                    continue;
                }
                GenericRowData nested = new GenericRowData(c.length - 2);
                for (int j = 1; j < c.length - 1; j++) {
                    nested.setField(j - 1, made.value(c[j], n));
                }
                row.setField(i, nested);
            }
            return row;
        }
    }

    /** Nested is a ROW of an event, which makes a field when it is read: with watermarks pushed down Flink asks for whole ROWs. */
    static final class Nested implements RowData {
        private final Events made;
        private final int[] column;
        private final long n;
        private RowKind kind = RowKind.INSERT;

        Nested(Events made, int[] column, long n) {
            this.made = made;
            this.column = column;
            this.n = n;
        }

        private Object at(int i) {
            return made.value(column[i + 1], n);
        }

        @Override
        public int getArity() {
            return column.length - 2;
        }

        @Override
        public RowKind getRowKind() {
            return kind;
        }

        @Override
        public void setRowKind(RowKind k) {
            kind = k;
        }

        @Override
        public boolean isNullAt(int i) {
            return false;
        }

        @Override
        public int getInt(int i) {
            return (int) at(i);
        }

        @Override
        public long getLong(int i) {
            return (long) at(i);
        }

        @Override
        public StringData getString(int i) {
            return (StringData) at(i);
        }

        @Override
        public TimestampData getTimestamp(int i, int precision) {
            return (TimestampData) at(i);
        }

        @Override
        public boolean getBoolean(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public byte getByte(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public short getShort(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public float getFloat(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public double getDouble(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public DecimalData getDecimal(int i, int precision, int scale) {
            throw new UnsupportedOperationException();
        }

        @Override
        public <T> RawValueData<T> getRawValue(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public byte[] getBinary(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ArrayData getArray(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public MapData getMap(int i) {
            throw new UnsupportedOperationException();
        }

        @Override
        public RowData getRow(int i, int fields) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Variant getVariant(int i) {
            throw new UnsupportedOperationException();
        }
    }

    /** Serializer is Java's: splits are written at checkpoints only. */
    static final class Serializer<T> implements SimpleVersionedSerializer<T> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T v) throws IOException {
            ByteArrayOutputStream b = new ByteArrayOutputStream();
            try (ObjectOutputStream o = new ObjectOutputStream(b)) {
                o.writeObject(v instanceof Collection ? new ArrayList<>((Collection<?>) v) : v);
            }
            return b.toByteArray();
        }

        @Override
        @SuppressWarnings("unchecked")
        public T deserialize(int version, byte[] b) throws IOException {
            try (ObjectInputStream o = new ObjectInputStream(new ByteArrayInputStream(b))) {
                return (T) o.readObject();
            } catch (ClassNotFoundException e) {
                throw new IOException(e);
            }
        }
    }
}
