package expr

import (
	"strings"
	"testing"
	"time"
)

// The facts in these tables are those of Flink's documentation and tests, and of the Java methods Flink calls.

func TestStringFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"UPPER('aß')", "ASS :: CHAR(2) NOT NULL"}, {"UPPER('éΩж')", "ÉΩЖ"}, {"LOWER('ÀΣ ΟΔΟΣ')", "àς οδος"}, {"UPPER('')", ""}, {"UPPER(NULL)", "NULL"},
		{"LOWER('ABC')", "abc"}, {"UPPER(1)", "plan:UPPER cannot be called with (INT)"}, {"UPPER()", "plan:UPPER cannot be called"},
		{"INITCAP('a fLinK-job 2b éa')", "A Flink-Job 2b éA"}, {"CHAR_LENGTH('a😀é')", "3 :: INT NOT NULL"}, {"CHARACTER_LENGTH('')", "0"},
		{"CONCAT('a', '', 'b')", "ab"}, {"CONCAT('a', CAST(NULL AS STRING))", "NULL"}, {"CONCAT('a', 1)", "plan:CONCAT cannot be called"},
		{"CONCAT_WS('~', NULL, 'AA', 'BB', '', NULL, 'CC')", "AA~BB~~CC"}, {"CONCAT_WS(CAST(NULL AS STRING), 'a')", "NULL"},
		{"CONCAT_WS('-', CAST(NULL AS STRING))", ""},
		{"REVERSE('a😀é')", "é😀a"}, {"REVERSE('')", ""}, {"REPEAT('ab', 3)", "ababab"}, {"REPEAT('ab', 0)", ""}, {"REPEAT('ab', -1)", ""},
		{"REPEAT('ab', 2000000000)", "error:64 MiB"},
		{"REPLACE(REPEAT('a', 9000), 'a', REPEAT('b', 9000))", "error:64 MiB"},
		{"REPLACE(REPEAT('a', 9000), '', REPEAT('b', 9000))", "error:64 MiB"},
		{"REPLACE('aaa', 'aa', 'b')", "ba"}, {"REPLACE('abc', '', '-')", "-a-b-c-"}, {"REPLACE('a😀', '😀', '')", "a"}, {"REPLACE('', 'a', 'b')", ""},
		{"TRANSLATE('www.apache.org', 'abcde', '123')", "www.1p13h.org"}, {"TRANSLATE('www.apache.org', '...', '123')", "www1apache1org"},
		{"TRANSLATE('abc', CAST(NULL AS STRING), 'x')", "abc"}, {"TRANSLATE('abc', 'b', CAST(NULL AS STRING))", "ac"},
		{"TRANSLATE(CAST(NULL AS STRING), 'b', 'c')", "NULL"}, {"TRANSLATE('w😀w', '😀w', '笑α')", "α笑α"},
		{"OVERLAY('xxxxxtest', 'xxxx', 6)", "xxxxxxxxx"}, {"OVERLAY('xxxxxtest', 'xxxx', 6, 2)", "xxxxxxxxxst"},
		{"OVERLAY('123456789', 'abc', 2, -1)", "1abc"}, {"OVERLAY('123', 'abc', 0)", "123"}, {"OVERLAY('123', 'abc', 4)", "123"},
		{"LPAD('hi', 4, '??')", "??hi"}, {"LPAD('hi', 1, '??')", "h"}, {"LPAD('111', -2, '?')", "NULL"}, {"LPAD('ab', 5, '')", "NULL"},
		{"LPAD('é', 4, 'ab')", "abaé"}, {"RPAD('hi', 5, 'ab')", "hiaba"}, {"RPAD('', 2, 'x')", "xx"}, {"RPAD('hi', 0, 'x')", ""},
		{"STARTSWITH('abc', 'ab')", "TRUE"}, {"STARTSWITH('abc', '')", "TRUE"}, {"ENDSWITH('in中文', 'n中文')", "TRUE"},
		{"ENDSWITH(x'0102', x'02')", "TRUE"}, {"STARTSWITH('a', x'02')", "plan:strings and bytes are mixed"}, {"STARTSWITH(CAST(NULL AS STRING), 'a')", "NULL"},
		{"ASCII('efg')", "101 :: INT NOT NULL"}, {"ASCII('')", "0"}, {"ASCII('é')", "-61"},
		{"CHR(97)", "a"}, {"CHR(353)", "a"}, {"CHR(-9)", ""}, {"CHAR_LENGTH(CHR(0))", "1"}, {"CHR(233)", "é"},
		{"ELT(2, 'a', 'b')", "b"}, {"ELT(0, 'a', 'b')", "NULL"}, {"ELT(3, 'a', 'b')", "NULL"}, {"ELT(-1, 'a')", "plan:the index is negative"},
		{"ELT(CAST(NULL AS INT), 'a')", "NULL"}, {"ELT(1, 'a', CAST(NULL AS STRING))", "a"},
		{"IS_ALPHA('abcÉ')", "TRUE"}, {"IS_ALPHA('')", "FALSE"}, {"IS_ALPHA(CAST(NULL AS STRING))", "FALSE :: BOOLEAN NOT NULL"}, {"IS_ALPHA('a1')", "FALSE"},
		{"IS_DIGIT('123')", "TRUE"}, {"IS_DIGIT('1.5')", "FALSE"}, {"IS_DECIMAL('11.4445')", "TRUE"}, {"IS_DECIMAL('NaN')", "TRUE"}, {"IS_DECIMAL('1d')", "TRUE"},
		{"IS_DECIMAL('x')", "FALSE"}, {"IS_DECIMAL(CAST(NULL AS STRING))", "FALSE"},
	})
}

func TestSubstringFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"SUBSTRING('hello world', 0, 3)", "hel"}, {"SUBSTR('hello', -2)", "lo"}, {"SUBSTRING('abc', 2, -1)", "NULL"}, {"SUBSTRING('abc', 2, 0)", ""},
		{"SUBSTRING('abc', 5)", ""}, {"SUBSTRING('abc', -5)", ""}, {"SUBSTRING('a😀é', 2, 1)", "😀"}, {"SUBSTRING('', 1, 1)", ""},
		{"SUBSTRING('abc', 2, 100)", "bc"}, {"SUBSTRING(CAST('abc' AS STRING), CAST(2 AS BIGINT))", "bc :: STRING"},
		{"LEFT('a😀é', 2)", "a😀"}, {"LEFT('abc', -2)", ""}, {"LEFT('abc', 9)", "abc"}, {"RIGHT('a😀é', 2)", "😀é"}, {"RIGHT('abc', 0)", ""}, {"RIGHT('abc', 9)", "abc"},
		{"TRIM('  a ')", "a"}, {"TRIM(LEADING 'x', 'xxax')", "ax"}, {"TRIM(TRAILING 'x', 'xxax')", "xxa"}, {"TRIM(BOTH 'abc', 'abcddcba')", "dd"},
		{"BTRIM('/www.apache.org/', '/')", "www.apache.org"}, {"LTRIM('This is a test', 'This ')", "a test"}, {"RTRIM('aé😀', '😀é')", "a"}, {"BTRIM('a', '')", "a"},
		{"POSITION('b', 'aéb')", "3"}, {"POSITION('', 'abc')", "1"}, {"POSITION('x', 'abc')", "0"}, {"LOCATE('a', 'aba', 2)", "3"}, {"LOCATE('a', 'aba', 0)", "0"},
		{"LOCATE('a', 'aba', 9)", "0"}, {"INSTR('Corporate Floor', 'or', 3, 2)", "14"}, {"INSTR('Corporate Floor', 'or', -3, 2)", "2"},
		{"INSTR('abc', 'c')", "3"}, {"INSTR('abc', 'b', 1, 0)", "error:must be positive"}, {"INSTR('abc', 'b', 0)", "0"}, {"INSTR('aaa', 'aa', 1, 2)", "2"},
		{"SPLIT_INDEX('Jack,John,Mary', ',', 2)", "Mary"}, {"SPLIT_INDEX('Jack,John', ',', 3)", "NULL"}, {"SPLIT_INDEX('', ',', 0)", "NULL"},
		{"SPLIT_INDEX('a,,b', 44, 1)", ""}, {"SPLIT_INDEX('a,b', 300, 0)", "NULL"}, {"SPLIT_INDEX('ab--cd', '--', 1)", "cd"}, {"SPLIT_INDEX('a,b', ',', -1)", "NULL"},
		{"SPLIT(',123,123,', ',')", "[, 123, 123, ]"}, {"SPLIT('a😀', '')", "[a, 😀]"}, {"SPLIT('', ',')", "[]"}, {"SPLIT(CAST(NULL AS STRING), ',')", "NULL"},
	})
}

func TestHashFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"MD5('abc')", "900150983cd24fb0d6963f7d28e17f72 :: CHAR(32) NOT NULL"}, {"SHA1('')", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
		{"SHA224('abc')", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
		{"SHA256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}, {"SHA2('abc', 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"LEFT(SHA384('abc'), 8)", "cb00753f"}, {"LEFT(SHA512('abc'), 8)", "ddaf35a1"}, {"SHA2('abc', 1)", "plan:no hash of 1 bits"}, {"MD5(CAST(NULL AS STRING))", "NULL"},
		{"HEX(100)", "64"}, {"HEX(-1)", "FFFFFFFFFFFFFFFF"}, {"HEX('ö')", "C3B6"}, {"HEX('')", ""}, {"HEX(1.5)", "plan:HEX cannot be called"},
		{"HEX(CAST(UNHEX('146') AS STRING))", "0046"}, {"UNHEX('1-')", "NULL"}, {"UNHEX('z')", "NULL"},
		{"TO_BASE64('hello world')", "aGVsbG8gd29ybGQ="}, {"FROM_BASE64('aGVsbG8gd29ybGQ=')", "hello world"}, {"FROM_BASE64('aGk')", "hi"}, {"FROM_BASE64('%')", "error:no"},
		{"HEX(CAST(ENCODE('aé', 'ISO-8859-1') AS STRING))", "error:"}, {"DECODE(ENCODE('aé😀', 'UTF-16'), 'utf-16')", "aé😀"}, {"DECODE(ENCODE('é', 'UTF-16LE'), 'UTF-16LE')", "é"},
		{"DECODE(x'E9', 'ISO-8859-1')", "é"}, {"DECODE(x'E9', 'UTF-8')", "\uFFFD"}, {"ENCODE('a', 'KOI8')", "error:unknown character set"},
		{"HASH_CODE('abc')", "96354"}, {"BIN(12)", "1100"}, {"BIN(-1)", "1111111111111111111111111111111111111111111111111111111111111111"}, {"BIN(0)", "0"},
		{"IS_VALID_UTF8(x'c3a9')", "TRUE"}, {"IS_VALID_UTF8(x'80')", "FALSE"}, {"MAKE_VALID_UTF8(x'4180e28241')", "A\uFFFD\uFFFDA"},
	})
}

func TestURLFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"URL_ENCODE('a b*-_.é/')", "a+b*-_.%C3%A9%2F"}, {"URL_DECODE('a+b%C3%A9')", "a bé"}, {"URL_DECODE('%')", "NULL"}, {"URL_DECODE('%zz')", "NULL"},
		{"PARSE_URL('http://user@h.org:80/p?q=1&r=2#f', 'HOST')", "h.org"}, {"PARSE_URL('http://user@h.org:80/p?q=1&r=2#f', 'AUTHORITY')", "user@h.org:80"},
		{"PARSE_URL('http://h/p?q=1&r=2#f', 'QUERY', 'r')", "2"}, {"PARSE_URL('http://h/p?q=1', 'QUERY', 'x')", "NULL"}, {"PARSE_URL('http://h/p', 'QUERY')", "NULL"},
		{"PARSE_URL('http://h/?', 'QUERY')", ""}, {"PARSE_URL('nope', 'HOST')", "NULL"}, {"PARSE_URL('', 'HOST')", "NULL"}, {"PARSE_URL('http://h/p', 'host')", "NULL"},
		{"INET_ATON('127.1')", "2130706433"}, {"INET_ATON('256')", "NULL"}, {"INET_ATON('1.2.3.4')", "16909060"}, {"INET_NTOA(16909060)", "1.2.3.4"},
		{"INET_NTOA(-1)", "NULL"}, {"INET_NTOA(4294967296)", "NULL"},
	})
}

func TestPrintf(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"PRINTF('%08d', 1024)", "00001024"}, {"PRINTF('%,d|%(d|%+d', 1234567, -5, 5)", "1,234,567|(5)|+5"}, {"PRINTF('%x %X %o', 255, 255, -1)", "ff FF 37777777777"},
		{"PRINTF('%.1f %.0f', 10.25E0, 2.5E0)", "10.3 3"}, {"PRINTF('%e %g', 12345.678E0, 0.0001E0)", "1.234568e+04 0.000100000"}, {"PRINTF('%s %s', 1.50, TRUE)", "1.50 true"},
		{"PRINTF('%5s|%-5s|%.2s', 'ab', 'ab', 'abc')", "   ab|ab   |ab"}, {"PRINTF('%2$s %1$s %<s %s', 'a', 'b')", "b a a a"}, {"PRINTF('%b %S %%%n', 1, 'x')", "true X %\n"},
		{"PRINTF('%d', 'x')", "NULL"}, {"PRINTF('%s')", "NULL"}, {"PRINTF('%q', 1)", "NULL"}, {"PRINTF('%-08d', 1)", "NULL"}, {"PRINTF('%s', CAST(NULL AS STRING))", "null"},
		{"PRINTF('%s', DATE '2024-07-30')", "19934"}, {"PRINTF('%s', TIMESTAMP '2024-07-30 10:24:00')", "2024-07-30T10:24"}, {"PRINTF('%c', 97)", "a"},
		{"PRINTF('%f', 'NaN')", "NULL"}, {"PRINTF('%5.1f', CAST('NaN' AS DOUBLE))", "  NaN"}, {"PRINTF(CAST(NULL AS STRING))", "NULL"},
	})
}

// A text that is longer than a replacement may make it is replaced in all the same, as long as it does not grow.
func TestReplacementsOfLongTexts(t *testing.T) {
	long := strings.Repeat("a", maxText+1)
	for _, c := range []struct {
		n       int
		s       string
		refused bool
	}{{maxText, "", false}, {maxText + 1, "", true}, {len(long), long, false}, {len(long) + 1, long, true}} {
		if err := outgrown("REPLACE", c.n, c.s); (err != nil) != c.refused {
			t.Errorf("%d bytes of %d: %v", c.n, len(c.s), err)
		}
	}
	const grows = "REGEXP_REPLACE(REPEAT('a', 9000), 'a', REPEAT('b', 9000))" // up to 64 MiB are made: once is enough
	e, err := parseExpr(grows, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := evalForm(t, e, Session{Zone: time.UTC}, 0); !sameOutcome(got, "error:64 MiB") {
		t.Errorf("%s: %s", grows, got)
	}
}
