import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Period;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;

/** Writes values the way text.go of this folder does, so that answers can be compared as text. */
final class Text {
    static String of(Object v, LogicalType t) {
        if (v == null) {
            return "NULL";
        }
        List<LogicalType> kids = t.getChildren();
        switch (t.getTypeRoot()) {
            case FLOAT:
                return number((Float) v, new BigDecimal(Float.toString(finite((Float) v) ? (Float) v : 0f)), true);
            case DOUBLE:
                return number((Double) v, new BigDecimal(finite((Double) v) ? (Double) v : 0d), false);
            case DECIMAL:
                return ((BigDecimal) v).toPlainString();
            case CHAR:
            case VARCHAR:
                return quote((String) v);
            case BINARY:
            case VARBINARY: {
                StringBuilder b = new StringBuilder("x'");
                for (byte x : (byte[]) v) {
                    b.append(String.format("%02x", x));
                }
                return b.append('\'').toString();
            }
            case DATE: {
                LocalDate d = (LocalDate) v;
                return d.toString();
            }
            case TIME_WITHOUT_TIME_ZONE:
                return time((LocalTime) v);
            case TIMESTAMP_WITHOUT_TIME_ZONE: {
                LocalDateTime d = (LocalDateTime) v;
                return d.toLocalDate() + " " + time(d.toLocalTime());
            }
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE: {
                LocalDateTime d = LocalDateTime.ofInstant((Instant) v, ZoneOffset.UTC);
                return d.toLocalDate() + " " + time(d.toLocalTime()) + "Z";
            }
            case INTERVAL_DAY_TIME:
                return ((Duration) v).toMillis() + " ms";
            case INTERVAL_YEAR_MONTH:
                return ((Period) v).toTotalMonths() + " months";
            case ARRAY: {
                List<String> out = new ArrayList<>();
                int n = java.lang.reflect.Array.getLength(v);
                for (int i = 0; i < n; i++) {
                    out.add(of(java.lang.reflect.Array.get(v, i), kids.get(0)));
                }
                return "[" + String.join(", ", out) + "]";
            }
            case MAP: {
                List<String> out = new ArrayList<>();
                ((Map<?, ?>) v).forEach((k, x) -> out.add(of(k, kids.get(0)) + ": " + of(x, kids.get(1))));
                out.sort(null);
                return "{" + String.join(", ", out) + "}";
            }
            case MULTISET: {
                List<String> out = new ArrayList<>();
                ((Map<?, ?>) v).forEach((k, n) -> out.add(of(k, kids.get(0)) + " x " + n));
                out.sort(null);
                return "{" + String.join(", ", out) + "}";
            }
            case ROW: {
                Row r = (Row) v;
                List<String> out = new ArrayList<>();
                for (int i = 0; i < r.getArity(); i++) {
                    out.add(of(r.getField(i), kids.get(i)));
                }
                return "(" + String.join(", ", out) + ")";
            }
            default:
                return String.valueOf(v);
        }
    }

    private static boolean finite(double d) {
        return !Double.isNaN(d) && !Double.isInfinite(d);
    }

    /** number is the shortest decimal that reads back as the same value, in plain notation up to 21 digits. */
    private static String number(double d, BigDecimal exact, boolean single) {
        if (!finite(d)) {
            return Double.isNaN(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
        }
        if (d == 0) {
            return 1 / d < 0 ? "-0" : "0";
        }
        BigDecimal x = exact;
        for (int p = 1; p <= 17; p++) {
            x = exact.round(new MathContext(p, RoundingMode.HALF_EVEN));
            if (single ? x.floatValue() == (float) d : x.doubleValue() == d) {
                break;
            }
        }
        x = x.stripTrailingZeros();
        int exp = x.precision() - x.scale() - 1;
        if (exp >= -5 && exp < 21) {
            return x.toPlainString();
        }
        String digits = x.unscaledValue().abs().toString();
        return (d < 0 ? "-" : "") + digits.charAt(0) + (digits.length() > 1 ? "." + digits.substring(1) : "")
                + "e" + exp;
    }

    private static String time(LocalTime t) {
        String s = String.format("%02d:%02d:%02d", t.getHour(), t.getMinute(), t.getSecond());
        if (t.getNano() == 0) {
            return s;
        }
        return s + "." + String.format("%09d", t.getNano()).replaceAll("0+$", "");
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            boolean pair = Character.isHighSurrogate(c) && i + 1 < s.length() && Character.isLowSurrogate(s.charAt(i + 1));
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < 0x20 || c == 0x7f || !pair && Character.isSurrogate(c)) {
                b.append(String.format("\\u%04x", (int) c));
            } else if (pair) {
                b.append(c).append(s.charAt(++i));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
