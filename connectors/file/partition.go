package file

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Partition directories are named k=v. Characters that mean something in paths are written as %XX, as Hive does.

const escaped = "\"#%'*/:=?\\\x7f{}[]^"

func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || strings.IndexByte(escaped, c) >= 0 {
			dst = fmt.Appendf(dst, "%%%02X", c)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				sb.WriteByte(byte(v))
				i += 2
				continue
			}
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

// partitionOf reads the partition values from the directories of rel, a file's path relative to the table. ok is false
// when the directories are not the table's partitions.
func (c *config) partitionOf(rel string) (values []types.Datum, ok bool, err error) {
	if len(c.keys) == 0 {
		return nil, true, nil
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) != len(c.keys)+1 {
		return nil, false, nil
	}
	for i, k := range c.keys {
		name, text, found := strings.Cut(parts[i], "=")
		if !found || unescape(name) != k.Name {
			return nil, false, nil
		}
		text = unescape(text)
		if text == c.v.String("partition.default-name") {
			values = append(values, types.NullDatum)
			continue
		}
		d, err := format.ParseText(text, k.Type)
		if err != nil {
			return nil, false, fmt.Errorf("partition column %s: %q: %w", k.Name, text, err)
		}
		values = append(values, d)
	}
	return values, true, nil
}

// appendDir appends the directory of physical row r: "k=v/k2=v2". cols are the partition columns in the batch.
func (c *config) appendDir(dst []byte, b *batch.Batch, cols []int, r int) []byte {
	for i, k := range c.keys {
		if i > 0 {
			dst = append(dst, '/')
		}
		dst = append(appendEscaped(dst, k.Name), '=')
		v := b.Cols[cols[i]]
		n := len(dst)
		if !v.IsNull(r) {
			x := v.Idx(r)
			switch {
			case k.Type.IsString():
				dst = appendEscaped(dst, v.Str[x])
			case k.Type.Kind == types.Boolean:
				dst = strconv.AppendBool(dst, v.Bool[x])
			case k.Type.Kind == types.Date:
				dst = types.AppendISODate(dst, v.I64[x])
			default:
				dst = strconv.AppendInt(dst, v.I64[x], 10)
			}
		}
		if len(dst) == n {
			dst = appendEscaped(dst, c.v.String("partition.default-name"))
		}
	}
	return dst
}
