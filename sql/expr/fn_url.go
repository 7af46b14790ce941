package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func urlFuncs() []*Func {
	return []*Func{
		stringFn("URL_ENCODE", "URL_ENCODE(string)", "The string in the encoding of HTML forms: a space is +, other special bytes are %XX.",
			spec{params: "s", ret: types.StringType, eval: texts(urlEncode)}),
		stringFn("URL_DECODE", "URL_DECODE(string)", "The reverse of URL_ENCODE; NULL for a broken escape.",
			spec{params: "s", ret: types.StringType, nullable: true, eval: texts(urlDecode)}),
		stringFn("PARSE_URL", "PARSE_URL(url, part [, key])",
			"A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO; with a key the value of that QUERY parameter. NULL for what is not there.",
			spec{params: "ss|s", ret: types.StringType, nullable: true, eval: pieces(parseURL)}),
		stringFn("INET_ATON", "INET_ATON(string)", "The number of an IPv4 address such as '127.0.0.1'; NULL for other text.",
			spec{params: "s", ret: types.BigIntType, nullable: true, eval: ints(inetAton)}),
		stringFn("INET_NTOA", "INET_NTOA(number)", "The IPv4 address of a number; NULL outside 0 .. 4294967295.",
			spec{params: "l", ret: types.StringType, nullable: true, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				n := x.i64(0)
				if n < 0 || n > 1<<32-1 {
					return dst, isNull
				}
				for shift := 24; shift >= 0; shift -= 8 {
					dst = strconv.AppendInt(dst, n>>shift&255, 10)
					if shift > 0 {
						dst = append(dst, '.')
					}
				}
				return dst, nil
			})}),
	}
}

func urlEncode(dst []byte, x row) ([]byte, *diag.Error) {
	for i, s := 0, x.str(0); i < len(s); i++ {
		switch c := s[i]; {
		case isASCIIAlnum(rune(c)) || strings.IndexByte("*-_.", c) >= 0:
			dst = append(dst, c)
		case c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst, nil
}

func urlDecode(dst []byte, x row) ([]byte, *diag.Error) {
	start := len(dst)
	for i, s := 0, x.str(0); i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			dst = append(dst, ' ')
		case '%':
			if i+3 > len(s) {
				return dst, isNull
			}
			v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return dst, isNull
			}
			dst = append(dst, byte(v))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	if b := dst[start:]; !utf8.Valid(b) {
		return appendValid(dst[:start:start], string(b)), nil
	}
	return dst, nil
}

// javaURL is a URL as java.net.URL takes it apart. The flags say which parts are there.
type javaURL struct {
	protocol, authority, userInfo, host, path, query, ref string
	hasUser, hasQuery, hasRef, hasAuth                    bool
}

// urlProtocols are those java.net.URL has handlers for.
var urlProtocols = []string{"http", "https", "ftp", "file", "jar", "mailto", "jmod", "jrt"}

func splitURL(s string) (u javaURL, ok bool) {
	s = strings.Trim(s, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
	if len(s) >= 4 && strings.EqualFold(s[:4], "url:") {
		s = s[4:]
	}
	proto, rest, found := strings.Cut(s, ":")
	if !found || strings.Contains(proto, "/") {
		return u, false
	}
	u.protocol = strings.ToLower(proto)
	known := false
	for _, p := range urlProtocols {
		known = known || p == u.protocol
	}
	if !known {
		return u, false
	}
	rest, u.ref, u.hasRef = strings.Cut(rest, "#")
	if i := strings.LastIndexByte(rest, '?'); i >= 0 {
		i = strings.IndexByte(rest, '?')
		u.query, u.hasQuery, rest = rest[i+1:], true, rest[:i]
	}
	if !strings.HasPrefix(rest, "//") {
		u.path = rest
		return u, true
	}
	rest = rest[2:]
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	u.authority, u.path, u.hasAuth = rest[:end], rest[end:], true
	return u, u.splitAuthority()
}

func (u *javaURL) splitAuthority() bool {
	u.host = u.authority
	if i := strings.IndexByte(u.host, '@'); i >= 0 {
		if strings.LastIndexByte(u.host, '@') != i { // more than one: Java takes none of it
			u.host = ""
			return true
		}
		u.userInfo, u.host, u.hasUser = u.host[:i], u.host[i+1:], true
	}
	port := ""
	if strings.HasPrefix(u.host, "[") {
		i := strings.IndexByte(u.host, ']')
		if i < 0 {
			return false
		}
		if port = u.host[i+1:]; port != "" && port[0] != ':' {
			return false
		}
		u.host, port = u.host[:i+1], strings.TrimPrefix(port, ":")
	} else if i := strings.IndexByte(u.host, ':'); i >= 0 {
		u.host, port = u.host[:i], u.host[i+1:]
	}
	if port != "" {
		if n, err := strconv.ParseInt(port, 10, 32); err != nil || n < -1 {
			return false
		}
	}
	return true
}

func parseURL(x row) (string, *diag.Error) {
	u, ok := splitURL(x.str(0))
	if !ok {
		return "", isNull
	}
	part := x.str(1)
	if x.has(2) {
		if part != "QUERY" || !u.hasQuery {
			return "", isNull
		}
		return queryParam(u.query, x.str(2))
	}
	value, there := "", true
	switch part {
	case "HOST":
		value = u.host
	case "PATH":
		value = u.path
	case "QUERY":
		value, there = u.query, u.hasQuery
	case "REF":
		value, there = u.ref, u.hasRef
	case "PROTOCOL":
		value = u.protocol
	case "FILE":
		if value = u.path; u.hasQuery {
			value += "?" + u.query
		}
	case "AUTHORITY":
		value, there = u.authority, u.hasAuth
	case "USERINFO":
		value, there = u.userInfo, u.hasUser
	default:
		there = false
	}
	if !there {
		return "", isNull
	}
	return value, nil
}

// queryParam is the value of the first parameter of that name.
func queryParam(query, key string) (string, *diag.Error) {
	for _, kv := range strings.Split(query, "&") {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v, nil
		}
	}
	return "", isNull
}

func inetAton(x row) (int64, *diag.Error) {
	parts := strings.Split(x.str(0), ".")
	if len(parts) > 4 {
		return 0, isNull
	}
	var v int64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return 0, isNull
		}
		if i == len(parts)-1 { // the last part fills the rest: 127.1 is 127.0.0.1
			v <<= 8 * (4 - len(parts))
		}
		v = v<<8 | int64(n)
	}
	return v, nil
}
