package expr

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Hashes and encodings.
func hashFuncs() []*Func {
	var out []*Func
	for _, h := range hashes {
		usage := h.name + "(string)"
		out = append(out, &Func{Name: h.name, Category: "hash", Usage: usage, Doc: "The " + h.title + " hash as lower case hexadecimal digits.",
			Bind: fn(usage, spec{params: "q", ret: types.Lengthed(types.Char, 2*h.new().Size()), eval: hashEval(h.new)})})
	}
	return append(out,
		&Func{Name: "SHA2", Category: "hash", Usage: "SHA2(string, bits)", Doc: "The SHA-2 hash of 224, 256, 384 or 512 bits as lower case hexadecimal digits.",
			Bind: fn("SHA2(string, bits)", spec{params: "qi", ret: types.Lengthed(types.Varchar, 128), check: sha2Check, eval: sha2Eval})},
		stringFn("HEX", "HEX(value)", "An integer in upper case hexadecimal without leading zeros, or the bytes of a string.",
			spec{params: "x", ret: types.StringType, check: hexCheck, eval: hexEval}),
		stringFn("UNHEX", "UNHEX(string)", "The bytes that hexadecimal digits stand for; NULL for other characters. Of an odd number of digits the first counts as a byte 0.",
			spec{params: "s", ret: types.BytesType, nullable: true, eval: texts(unhex)}),
		stringFn("TO_BASE64", "TO_BASE64(value)", "A string or bytes in base 64.",
			spec{params: "q", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				return appendBase64(dst, x.str(0)), nil
			})}),
		stringFn("FROM_BASE64", "FROM_BASE64(string)", "The text that base 64 stands for. Other text is an error of the row.",
			spec{params: "s", ret: types.StringType, nullable: true, eval: texts(fromBase64)}),
		stringFn("ENCODE", "ENCODE(string, charset)", "The bytes of a string in US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE or UTF-16LE.",
			spec{params: "ss", ret: types.BytesType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				return encodeCharset(dst, x.str(0), x.str(1))
			})}),
		stringFn("DECODE", "DECODE(bytes, charset)", "The string that bytes stand for in US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE or UTF-16LE; bad bytes become U+FFFD.",
			spec{params: "bs", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				return decodeCharset(dst, x.str(0), x.str(1))
			})}),
		stringFn("IS_VALID_UTF8", "IS_VALID_UTF8(bytes)", "Whether the bytes are well-formed UTF-8.",
			spec{params: "b", ret: types.BoolType, eval: bools(func(x row) (bool, *diag.Error) { return utf8.ValidString(x.str(0)), nil })}),
		stringFn("MAKE_VALID_UTF8", "MAKE_VALID_UTF8(bytes)", "The bytes as a string, with U+FFFD for what is not well-formed UTF-8.",
			spec{params: "b", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				return appendValid(dst, x.str(0)), nil
			})}),
		stringFn("HASH_CODE", "HASH_CODE(string)", "The absolute value of Java's hash of the string.",
			spec{params: "s", ret: types.IntType, eval: ints(func(x row) (int64, *diag.Error) {
				var h int32
				for _, u := range utf16.Encode([]rune(x.str(0))) {
					h = 31*h + int32(u)
				}
				if h < 0 {
					h = -h
				}
				return int64(h), nil
			})}),
	)
}

var hashes = []struct {
	name, title string
	new         func() hash.Hash
}{
	{"MD5", "MD5", md5.New}, {"SHA1", "SHA-1", sha1.New}, {"SHA224", "SHA-224", sha256.New224}, {"SHA256", "SHA-256", sha256.New},
	{"SHA384", "SHA-384", sha512.New384}, {"SHA512", "SHA-512", sha512.New},
}

func hashEval(mk func() hash.Hash) func(*site) func(Session) Eval {
	return func(*site) func(Session) Eval {
		return func(Session) Eval {
			h, in, sum := mk(), []byte(nil), []byte(nil)
			return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
				h.Reset()
				in = append(in[:0], x.str(0)...)
				h.Write(in)
				sum = h.Sum(sum[:0])
				return hex.AppendEncode(dst, sum), nil
			})
		}
	}
}

var sha2Bits = map[int64]func() hash.Hash{224: sha256.New224, 256: sha256.New, 384: sha512.New384, 512: sha512.New}

func sha2Check(b *site) error {
	if d, ok := b.literal(1); ok && sha2Bits[d.I64] == nil {
		return badCall(b.CallSite, "there is no hash of %d bits", d.I64).WithHint("use 224, 256, 384 or 512")
	}
	return nil
}

func sha2Eval(*site) func(Session) Eval {
	return func(Session) Eval {
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			mk := sha2Bits[x.i64(1)]
			if mk == nil {
				return dst, badValue("SHA2", "there is no hash of %d bits", x.i64(1)).WithHint("use 224, 256, 384 or 512")
			}
			h := mk()
			h.Write([]byte(x.str(0)))
			return hex.AppendEncode(dst, h.Sum(nil)), nil
		})
	}
}

func hexCheck(b *site) error {
	switch t := b.args[0].Type(); {
	case t.Kind == types.Null:
		b.args[0] = convert(b.args[0], types.StringType)
	case !t.IsString() && !t.IsInteger():
		return wrongArgs(b.CallSite, "HEX(integer or string)")
	}
	return nil
}

const upperHex = "0123456789ABCDEF"

func hexEval(b *site) func(Session) Eval {
	number := b.args[0].Type().IsInteger()
	return func(Session) Eval {
		return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
			if number {
				start := len(dst)
				dst = strconv.AppendUint(dst, uint64(x.i64(0)), 16)
				for i := start; i < len(dst); i++ {
					if dst[i] >= 'a' {
						dst[i] -= 'a' - 'A'
					}
				}
				return dst, nil
			}
			for i, s := 0, x.str(0); i < len(s); i++ {
				dst = append(dst, upperHex[s[i]>>4], upperHex[s[i]&15])
			}
			return dst, nil
		})
	}
}

func unhex(dst []byte, x row) ([]byte, *diag.Error) {
	s := x.str(0)
	if len(s)%2 == 1 { // as Flink: the odd digit counts as a byte 0
		if _, ok := hexDigit(s[0]); !ok {
			return dst, isNull
		}
		dst, s = append(dst, 0), s[1:]
	}
	for ; s != ""; s = s[2:] {
		hi, ok1 := hexDigit(s[0])
		lo, ok2 := hexDigit(s[1])
		if !ok1 || !ok2 {
			return dst, isNull
		}
		dst = append(dst, hi<<4|lo)
	}
	return dst, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func appendBase64(dst []byte, s string) []byte {
	return base64.StdEncoding.AppendEncode(dst, []byte(s))
}

func fromBase64(dst []byte, x row) ([]byte, *diag.Error) {
	s := x.str(0)
	enc := base64.StdEncoding
	if !strings.HasSuffix(s, "=") {
		enc = base64.RawStdEncoding
	}
	if strings.ContainsAny(s, "\r\n") {
		return dst, badBase64(s)
	}
	start := len(dst)
	b, err := enc.AppendDecode(dst, []byte(s))
	if err != nil {
		return dst, badBase64(s)
	}
	if !utf8.Valid(b[start:]) {
		return appendValid(b[:start:start], string(b[start:])), nil
	}
	return b, nil
}

func badBase64(s string) *diag.Error {
	return badValue("FROM_BASE64", "'%s' is not base 64", diag.Shorten(s, maxShown)).WithHint("filter such rows out, for example by REGEXP(x, '^[A-Za-z0-9+/]*=*$')")
}

// appendValid replaces what is not UTF-8 as Java's decoder does: one U+FFFD per maximal part of a sequence.
func appendValid(dst []byte, s string) []byte {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n <= 1 {
			dst = append(dst, "\uFFFD"...)
			s = s[badLength(s):]
			continue
		}
		dst = append(dst, s[:n]...)
		s = s[n:]
	}
	return dst
}

// badLength is the number of bytes of a broken sequence that belong together: a lead byte and the valid continuation
// bytes behind it. Java takes the three bytes of an encoded surrogate as one.
func badLength(s string) int {
	lead := s[0]
	need, lo, hi := 0, byte(0x80), byte(0xBF)
	switch {
	case lead >= 0xC2 && lead <= 0xDF:
		need = 1
	case lead >= 0xE0 && lead <= 0xEF:
		need = 2
		if lead == 0xE0 {
			lo = 0xA0
		}
	case lead >= 0xF0 && lead <= 0xF4:
		need = 3
		if lead == 0xF0 {
			lo = 0x90
		} else if lead == 0xF4 {
			hi = 0x8F
		}
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= lo && s[n] <= hi; n++ {
		lo, hi = 0x80, 0xBF
	}
	return n
}

func encodeCharset(dst []byte, s, charset string) ([]byte, *diag.Error) {
	switch strings.ToUpper(charset) {
	case "UTF-8", "UTF8":
		return append(dst, s...), nil
	case "US-ASCII", "ASCII":
		return appendNarrow(dst, s, 0x80), nil
	case "ISO-8859-1", "LATIN1":
		return appendNarrow(dst, s, 0x100), nil
	case "UTF-16":
		return appendUTF16(append(dst, 0xFE, 0xFF), s, true), nil
	case "UTF-16BE":
		return appendUTF16(dst, s, true), nil
	case "UTF-16LE":
		return appendUTF16(dst, s, false), nil
	}
	return dst, badCharset("ENCODE", charset)
}

func badCharset(name, charset string) *diag.Error {
	return badValue(name, "unknown character set '%s'", charset).
		WithHint("use US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE or UTF-16LE")
}

func appendNarrow(dst []byte, s string, limit rune) []byte {
	for _, r := range s {
		if r >= limit {
			r = '?'
		}
		dst = append(dst, byte(r))
	}
	return dst
}

func appendUTF16(dst []byte, s string, big bool) []byte {
	for _, r := range s {
		units := []uint16{uint16(r)}
		if r > 0xFFFF {
			hi, lo := utf16.EncodeRune(r)
			units = []uint16{uint16(hi), uint16(lo)}
		}
		for _, u := range units {
			if big {
				dst = append(dst, byte(u>>8), byte(u))
			} else {
				dst = append(dst, byte(u), byte(u>>8))
			}
		}
	}
	return dst
}

func decodeCharset(dst []byte, s, charset string) ([]byte, *diag.Error) {
	big := true
	switch strings.ToUpper(charset) {
	case "UTF-8", "UTF8":
		return appendValid(dst, s), nil
	case "US-ASCII", "ASCII":
		for i := 0; i < len(s); i++ {
			if s[i] < 0x80 {
				dst = append(dst, s[i])
			} else {
				dst = append(dst, "\uFFFD"...)
			}
		}
		return dst, nil
	case "ISO-8859-1", "LATIN1":
		for i := 0; i < len(s); i++ {
			dst = append(dst, latin1[s[i]]...)
		}
		return dst, nil
	case "UTF-16":
		switch {
		case strings.HasPrefix(s, "\xFE\xFF"):
			s = s[2:]
		case strings.HasPrefix(s, "\xFF\xFE"):
			s, big = s[2:], false
		}
	case "UTF-16BE":
	case "UTF-16LE":
		big = false
	default:
		return dst, badCharset("DECODE", charset)
	}
	return appendFromUTF16(dst, s, big), nil
}

func appendFromUTF16(dst []byte, s string, big bool) []byte {
	units := make([]uint16, 0, len(s)/2)
	for ; len(s) >= 2; s = s[2:] {
		if big {
			units = append(units, uint16(s[0])<<8|uint16(s[1]))
		} else {
			units = append(units, uint16(s[1])<<8|uint16(s[0]))
		}
	}
	for _, r := range utf16.Decode(units) {
		dst = utf8.AppendRune(dst, r)
	}
	if s != "" {
		dst = append(dst, "\uFFFD"...)
	}
	return dst
}
