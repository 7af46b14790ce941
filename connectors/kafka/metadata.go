package kafka

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

type metaKind uint8

const (
	metaTopic metaKind = iota
	metaPartition
	metaHeaders
	metaHeaderList
	metaLeaderEpoch
	metaOffset
	metaTimestamp
	metaTimestampType
)

var metaKinds = map[string]metaKind{"topic": metaTopic, "partition": metaPartition, "headers": metaHeaders, "header-list": metaHeaderList,
	"leader-epoch": metaLeaderEpoch, "offset": metaOffset, "timestamp": metaTimestamp, "timestamp-type": metaTimestampType}

// metaColumn fills output column out from a record.
type metaColumn struct {
	kind metaKind
	out  int
}

// addMetadata routes a metadata column: to the record, or to the value format.
func (r *rowReader) addMetadata(spec *format.DecodeSpec, c catalog.Column, out int) error {
	x := r.s.x
	m := x.metadata(c.Key)
	if t := r.s.spec.Schema.Columns[out].Type; t.Phys() != m.Type.Phys() {
		return diag.New(diag.Internal, diag.Pos{}, "table %s: metadata column '%s' is read as %s, but the source supplies %s", x.t.Name, c.Name, t, m.Type)
	}
	if k, ok := strings.CutPrefix(c.Key, "value."); ok {
		spec.Metadata = append(spec.Metadata, format.MetaTarget{Key: k, Col: out})
		return nil
	}
	r.meta = append(r.meta, metaColumn{kind: metaKinds[c.Key], out: out})
	return nil
}

// appendFormatMeta adds the columns that only the value format could fill.
func appendFormatMeta(nulls []int, c catalog.Column, out int) []int {
	if strings.HasPrefix(c.Key, "value.") {
		return append(nulls, out)
	}
	return nulls
}

var timestampTypes = map[int8]string{-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}

func (m *metaColumn) append(out *batch.Builder, r *kgo.Record) {
	c := out.Cols[m.out]
	switch m.kind {
	case metaTopic:
		c.AppendStr(r.Topic)
	case metaPartition:
		c.AppendI64(int64(r.Partition))
	case metaHeaders:
		c.AppendStr(headerMap(r.Headers))
	case metaHeaderList:
		c.AppendStr(headerList(r.Headers))
	case metaLeaderEpoch:
		if r.LeaderEpoch < 0 {
			c.AppendNull()
		} else {
			c.AppendI64(int64(r.LeaderEpoch))
		}
	case metaOffset:
		c.AppendI64(r.Offset)
	case metaTimestamp:
		c.AppendI64(r.Timestamp.UnixMicro())
	case metaTimestampType:
		c.AppendStr(timestampTypes[r.Attrs.TimestampType()])
	}
}

var noHeaders = string(types.AppendNested(nil, types.ListDatum(), headersType))

// headerMap is the headers as MAP<STRING, BYTES>: of equal keys the last wins, in the place of the first.
func headerMap(hs []kgo.RecordHeader) string {
	if len(hs) == 0 {
		return noHeaders
	}
	list := make([]types.Datum, 0, 2*len(hs))
next:
	for _, h := range hs {
		for i := 0; i < len(list); i += 2 {
			if list[i].Str == h.Key {
				list[i+1] = headerValue(h.Value)
				continue next
			}
		}
		list = append(list, types.StrDatum(h.Key), headerValue(h.Value))
	}
	return string(types.AppendNested(nil, types.Datum{List: list}, headersType))
}

func headerList(hs []kgo.RecordHeader) string {
	if len(hs) == 0 {
		return noHeaders // an empty list is encoded alike
	}
	list := make([]types.Datum, len(hs))
	for i, h := range hs {
		list[i] = types.ListDatum(types.StrDatum(h.Key), headerValue(h.Value))
	}
	return string(types.AppendNested(nil, types.Datum{List: list}, headerListType))
}

func headerValue(v []byte) types.Datum {
	if v == nil {
		return types.NullDatum
	}
	return types.StrDatum(string(v))
}
