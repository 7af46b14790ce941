import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryStringData;

/**
 * The events of the connector nexmark, value for value those of connectors/nexmark: a field is a function of the seed, the event's
 * number and the field. Texts are views of bytes made once, so that a row costs Flink as little as it can.
 */
final class Events {
    static final int PERSON = 0;
    static final int AUCTION = 1;
    static final int BID = 2;

    // Numbers of fields are part of their random numbers.
    static final int EVENT_TYPE = 1;
    static final int TIME = 2;
    static final int PERSON_NAME = 4;
    static final int PERSON_EMAIL = 5;
    static final int PERSON_CITY = 7;
    static final int AUCTION_NAME = 11;
    static final int AUCTION_DESCRIPTION = 12;
    static final int AUCTION_INITIAL = 13;
    static final int BID_CHANNEL = 22;

    /** fields are the names of each kind's fields; a field's number is firstField of the kind plus its place, but for the time. */
    static final String[][] FIELDS = {
        {"id", "name", "emailaddress", "creditcard", "city", "state", "extra"},
        {"id", "itemname", "description", "initialbid", "reserve", "expires", "seller", "category", "extra"},
        {"auction", "bidder", "price", "channel", "url", "extra"},
    };
    static final int[] FIRST_FIELD = {3, 10, 19};

    private static final long FIRST_ID = 1000;
    private static final long ACTIVE = 1000;
    private static final long IN_FLIGHT = 100;
    private static final long LEAD = 10;
    private static final long HOT_BATCH = 100;
    private static final int POOL = 256 << 10;
    private static final int PRICE_STEPS = 4096;
    private static final long PEOPLE = 1;
    private static final long AUCTIONS = 3;
    private static final long BIDS = 46;
    static final long GROUP = PEOPLE + AUCTIONS + BIDS;
    private static final long BASE_MS = 1436918400000L; // 2015-07-15

    private final long seed = mix(1);
    private final double usPer;
    private final byte[] letters = new byte[POOL];
    private final byte[] words = new byte[POOL];
    private final StringData[] hotNames = strings("Google", "Facebook", "Baidu", "Apple");
    private final StringData[] cities =
            strings("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne");
    private final StringData[] states = strings("AZ", "CA", "ID", "OR", "WA", "WY");
    private final StringData[] hotUrls;
    private final StringData[] channels = new StringData[10000];
    private final StringData[] urls = new StringData[10000];
    private final StringData[] names;
    private final double[] prices = new double[PRICE_STEPS + 1];
    private long state; // of the random numbers being drawn

    Events(long rate) {
        usPer = 1e6 / rate;
        state = mix(seed);
        for (int i = 0; i < POOL; i++) {
            letters[i] = (byte) ('a' + below(26));
        }
        System.arraycopy(letters, 0, words, 0, POOL);
        for (int i = 0; i < POOL; i++) {
            if (below(13) == 0) {
                words[i] = ' ';
            }
        }
        hotUrls = new StringData[hotNames.length];
        for (int i = 0; i < hotUrls.length; i++) {
            hotUrls[i] = string(url());
        }
        for (int i = 0; i < channels.length; i++) {
            channels[i] = string("channel-" + i);
            String url = url();
            if (below(10) > 0) {
                url += "&channel_id=" + Math.abs((long) Integer.reverse(i));
            }
            urls[i] = string(url);
        }
        List<StringData> all = new ArrayList<>();
        for (String first : new String[] {"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}) {
            for (String last : new String[] {"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}) {
                all.add(string(first + " " + last));
            }
        }
        names = all.toArray(new StringData[0]);
        for (int i = 0; i <= PRICE_STEPS; i++) {
            prices[i] = Math.pow(10, 6.0 * i / PRICE_STEPS) * 100;
        }
    }

    private static StringData string(String s) {
        return BinaryStringData.fromBytes(s.getBytes(StandardCharsets.UTF_8));
    }

    private static StringData[] strings(String... all) {
        StringData[] out = new StringData[all.length];
        for (int i = 0; i < all.length; i++) {
            out[i] = string(all[i]);
        }
        return out;
    }

    private String url() {
        StringBuilder b = new StringBuilder("https://www.nexmark.com/");
        for (int i = 0; i < 3; i++) {
            for (long n = 3 + below(2); n > 0; n--) {
                b.append(below(13) == 0 ? '_' : (char) ('a' + below(26)));
            }
            b.append('/');
        }
        return b.append("item.htm?query=1").toString();
    }

    private static long mix(long z) {
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    private long next() {
        state += 0x9e3779b97f4a7c15L;
        return mix(state);
    }

    private long below(long n) {
        return (next() >>> 32) * n >>> 32;
    }

    /** of starts the random numbers of field f of event n. */
    private void of(int f, long n) {
        state = mix(seed ^ mix(n << 8 | f));
    }

    static int kind(long n) {
        long off = n % GROUP;
        return off < PEOPLE ? PERSON : off < PEOPLE + AUCTIONS ? AUCTION : BID;
    }

    private long millis(long n) {
        return BASE_MS + (long) (n * usPer) / 1000;
    }

    private static long lastPerson(long n) {
        return n / GROUP * PEOPLE + Math.min(n % GROUP, PEOPLE - 1);
    }

    private static long lastAuction(long n) {
        long group = n / GROUP;
        long off = n % GROUP;
        if (off < PEOPLE) {
            return group * AUCTIONS - 1;
        }
        return off >= PEOPLE + AUCTIONS ? group * AUCTIONS + AUCTIONS - 1 : group * AUCTIONS + off - PEOPLE;
    }

    private long someone(long n) {
        long people = lastPerson(n) + 1;
        long active = Math.min(people, ACTIVE);
        return people - active + below(active + LEAD);
    }

    private long someAuction(long n) {
        long last = lastAuction(n);
        long low = Math.max(last - IN_FLIGHT, 0);
        return low + below(last - low + 1 + LEAD);
    }

    private long price() {
        long u = next() >>> 20;
        int i = (int) (u >>> 32);
        double part = (u & 0xffffffffL) / 4294967296.0;
        return (long) (prices[i] + (prices[i + 1] - prices[i]) * part + 0.5);
    }

    /** value is field f of event n as Flink's internal data. */
    Object value(int f, long n) {
        of(f, n);
        switch (f) {
            case EVENT_TYPE:
                return kind(n);
            case TIME:
                return TimestampData.fromEpochMillis(millis(n));
            case 3:
                return FIRST_ID + lastPerson(n);
            case PERSON_NAME:
                return names[(int) below(names.length)];
            case PERSON_EMAIL:
                return string(piece(7) + "@" + piece(5) + ".com");
            case 6:
                return card();
            case PERSON_CITY:
                return cities[(int) below(cities.length)];
            case 8:
                return states[(int) below(states.length)];
            case 9: {
                int used = 8 + 19 + 2 + length(PERSON_NAME, n) + length(PERSON_EMAIL, n) + length(PERSON_CITY, n);
                of(f, n);
                return fill(used, 200);
            }
            case 10:
                return FIRST_ID + lastAuction(n);
            case AUCTION_NAME:
                return phrase(20);
            case AUCTION_DESCRIPTION:
                return phrase(100);
            case AUCTION_INITIAL:
                return price();
            case 14: {
                long price = price();
                of(AUCTION_INITIAL, n);
                return price + price();
            }
            case 15: {
                long horizon = millis(n + IN_FLIGHT * GROUP / AUCTIONS) - millis(n);
                return TimestampData.fromEpochMillis(millis(n) + 1 + below(Math.max(2 * horizon, 1)));
            }
            case 16:
                return FIRST_ID + (below(4) > 0 ? lastPerson(n) / HOT_BATCH * HOT_BATCH : someone(n));
            case 17:
                return 10 + below(5);
            case 18: {
                int used = 6 * 8 + length(AUCTION_NAME, n) + length(AUCTION_DESCRIPTION, n);
                of(f, n);
                return fill(used, 500);
            }
            case 19:
                return FIRST_ID + (below(2) > 0 ? lastAuction(n) / HOT_BATCH * HOT_BATCH : someAuction(n));
            case 20:
                return FIRST_ID + (below(4) > 0 ? lastPerson(n) / HOT_BATCH * HOT_BATCH + 1 : someone(n));
            case 21:
                return price();
            case BID_CHANNEL:
                return channel(hotNames, channels);
            case 23:
                of(BID_CHANNEL, n); // follows from the same draw
                return channel(hotUrls, urls);
            case 24:
                return fill(4 * 8, 100);
            default:
                throw new IllegalArgumentException("field " + f);
        }
    }

    private int length(int f, long n) {
        return ((BinaryStringData) value(f, n)).getSizeInBytes();
    }

    private StringData channel(StringData[] hot, StringData[] others) {
        StringData[] from = below(2) > 0 ? hot : others;
        return from[(int) below(from.length)];
    }

    private StringData card() {
        byte[] b = new byte[19];
        for (int i = 0, at = 0; i < 4; i++) {
            if (i > 0) {
                b[at++] = ' ';
            }
            long d = below(10000);
            b[at++] = (byte) ('0' + d / 1000);
            b[at++] = (byte) ('0' + d / 100 % 10);
            b[at++] = (byte) ('0' + d / 10 % 10);
            b[at++] = (byte) ('0' + d % 10);
        }
        return BinaryStringData.fromBytes(b);
    }

    private String piece(long limit) {
        int n = (int) (3 + below(limit - 3));
        return new String(letters, (int) below(POOL - n), n, StandardCharsets.US_ASCII);
    }

    private StringData phrase(long limit) {
        int n = (int) (3 + below(limit - 3));
        int at = (int) below(POOL - n);
        int end = at + n;
        while (at < end && words[at] == ' ') {
            at++;
        }
        while (end > at && words[end - 1] == ' ') {
            end--;
        }
        return BinaryStringData.fromBytes(words, at, end - at);
    }

    private StringData fill(long used, long size) {
        if (used > size) {
            return BinaryStringData.EMPTY_UTF8;
        }
        size -= used;
        long delta = Math.round(size * 0.2);
        long n = size - delta;
        if (delta > 0) {
            n += below(2 * delta);
        }
        return BinaryStringData.fromBytes(letters, (int) below(POOL - n), (int) n);
    }
}
