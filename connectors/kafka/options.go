package kafka

import (
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

const (
	commitProtocolOption = "sink.commit-protocol"
	maxBytesOption       = "sink.write-ahead.max-bytes"
	markerTopicOption    = "sink.write-ahead.marker-topic"
	splitOption          = "sink.transaction.max-bytes"
	slotsOption          = "sink.transactional-id-slots"
)

// The options, in the order docs list them. Flink's keys keep Flink's meaning; where the default differs the text says
// so.
var topicOptions = []connectors.Option{
	{Key: "topic", Type: connectors.ListOption, Flink: true, Doc: "topics to read, separated by ';'; to write: one topic, or the topics the metadata column 'topic' may name"},
	{Key: "topic-pattern", Flink: true, Doc: "regular expression that whole topic names must match; excludes 'topic'"},
	connectors.PropertyVersion,
}

var keyOptions = []connectors.Option{
	{Key: "key.fields-prefix", Flink: true, Doc: "prefix of the key columns' names, stripped for the key format; needs 'value.fields-include' = 'EXCEPT_KEY'"},
	{Key: "value.fields-include", Type: connectors.EnumOption, Default: "ALL", Values: []string{"ALL", "EXCEPT_KEY"}, Flink: true, Doc: "whether the value holds the key columns too; when reading, the value's copy wins"},
}

var keyFieldsOption = connectors.Option{Key: "key.fields", Type: connectors.ListOption, Flink: true, Doc: "columns of the record key, separated by ';'; needs 'key.format'"}

var startOptions = []connectors.Option{
	{Key: "scan.startup.mode", Type: connectors.EnumOption, Values: []string{"earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"}, Flink: true,
		Doc: "where reading starts without a checkpoint; default: group-offsets when 'properties.group.id' is given, else earliest-offset (Flink: always group-offsets)"},
	{Key: "scan.startup.specific-offsets", Flink: true, Doc: "'partition:0,offset:42;partition:1,offset:300'; other partitions start at the group's offset, else earliest"},
	{Key: "scan.startup.timestamp-millis", Type: connectors.IntOption, Flink: true, Doc: "start at the first record not older than this; at the end where there is none"},
}

var scanOptions = []connectors.Option{
	{Key: "scan.bounded.mode", Type: connectors.EnumOption, Default: "unbounded", Values: []string{"unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"}, Flink: true,
		Doc: "where reading ends; the offsets are taken once, at the start, and kept in the checkpoint"},
	{Key: "scan.bounded.specific-offsets", Flink: true, Doc: "'partition:0,offset:42;...': the first offset not to read; partitions that are not listed are not read"},
	{Key: "scan.bounded.timestamp-millis", Type: connectors.IntOption, Flink: true, Doc: "end before the first record not older than this"},
	{Key: "scan.topic-partition-discovery.interval", Type: connectors.DurationOption, Default: "5 min", Flink: true, Doc: "how often to look for new partitions and topics, 0 = never; they are read from their first record"},
	{Key: "scan.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of reading subtasks"},
	{Key: "scan.on-out-of-range", Type: connectors.EnumOption, Default: "fail", Values: []string{"fail", "earliest", "latest"}, Doc: "what to do when the position to resume at was deleted"},
	{Key: "scan.on-error", Type: connectors.EnumOption, Default: "fail", Values: []string{"fail", "skip", "dead-letter"}, Doc: "what to do with a record that cannot be decoded"},
	{Key: "scan.dead-letter.topic", Doc: "topic for records that cannot be decoded, as they came, with the reason in headers; at-least-once"},
	{Key: "scan.watermark.emit.strategy", Type: connectors.EnumOption, Default: "on-periodic", Values: []string{"on-periodic", "on-event"}, Flink: true, Doc: "when watermarks are emitted"},
	{Key: "scan.watermark.idle-timeout", Type: connectors.DurationOption, Flink: true, Doc: "a partition without records for this long no longer holds the watermark back"},
	{Key: "scan.watermark.max-future-skew", Type: connectors.DurationOption, Doc: "rows whose time lies further ahead of the clock do not move event time; unset: every row does"},
}

var sinkOptions = []connectors.Option{
	{Key: "sink.delivery-guarantee", Type: connectors.EnumOption, Default: "exactly-once", Values: []string{"exactly-once", "at-least-once", "none"}, Flink: true, Doc: "how rows are written (Flink's default is at-least-once)"},
	{Key: "sink.semantic", Deprecated: "sink.delivery-guarantee", Flink: true, Type: connectors.EnumOption, Values: []string{"exactly-once", "at-least-once", "none"}, Doc: "old name of sink.delivery-guarantee"},
	{Key: "sink.transactional-id-prefix", Flink: true, Doc: "prefix of the transactional ids, unique per cluster; default: made from the job's name and lineage"},
	{Key: "sink.transaction-naming-strategy", Type: connectors.EnumOption, Default: "INCREMENTING", Values: []string{"INCREMENTING", "POOLING"}, Flink: true, Doc: "accepted for compatibility; ids are always pooled"},
	{Key: commitProtocolOption, Type: connectors.EnumOption, Default: "transaction", Values: []string{"transaction", writeAhead}, Doc: "exactly-once: 'transaction' writes rows into an open transaction, 'write-ahead' keeps them in the checkpoint and writes them in one transaction when that is durable"},
	{Key: maxBytesOption, Type: connectors.MemoryOption, Default: "256mb", Doc: "write-ahead: records one subtask may hold per checkpoint"},
	{Key: markerTopicOption, Default: "streamsql-commits", Doc: "write-ahead: compacted topic that notes which checkpoints are in the topics; made when it is missing"},
	{Key: "sink.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of writing subtasks"},
	{Key: "sink.transaction-scope", Type: connectors.EnumOption, Default: "job", Values: []string{"job", "subtask"}, Doc: "one transaction per checkpoint for all writers of the job on a cluster, or one per writer"},
	{Key: slotsOption, Type: connectors.IntOption, Default: "5", Doc: "transactional ids used in turn, at least 3"},
	{Key: splitOption, Type: connectors.MemoryOption, Doc: "once a transaction holds this many bytes of keys and values, the rows of the checkpoint go on in another one, as long as an id can be spared; default: one transaction per checkpoint"},
	{Key: "sink.recovery.on-lost-transaction", Type: connectors.EnumOption, Default: "fail", Values: []string{"fail", "ignore"}, Doc: "what to do when a transaction of the restored checkpoint is proven aborted and no earlier checkpoint can replace it; 'ignore' goes on without its rows and puts that on record"},
}

var partitionerOption = connectors.Option{Key: "sink.partitioner", Default: "default", Flink: true,
	Doc: "'default' (hash of the key; sticky without key), 'fixed' (one partition per subtask), 'round-robin' (as default, as in Flink)"}

var bufferOptions = []connectors.Option{
	{Key: "sink.buffer-flush.max-rows", Type: connectors.IntOption, Default: "0", Flink: true, Doc: "collapse changes of one key among this many rows; needs sink.buffer-flush.interval"},
	{Key: "sink.buffer-flush.interval", Type: connectors.DurationOption, Default: "0", Flink: true, Doc: "longest time a change is held back for collapsing; needs sink.buffer-flush.max-rows"},
}

func concat(lists ...[]connectors.Option) []connectors.Option {
	var out []connectors.Option
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func kafkaOptions() []connectors.Option {
	return concat(topicOptions, []connectors.Option{keyFieldsOption}, keyOptions, startOptions, scanOptions, sinkOptions, []connectors.Option{partitionerOption})
}

func upsertOptions() []connectors.Option {
	return concat(topicOptions, keyOptions, scanOptions, sinkOptions, bufferOptions)
}

var (
	headersType    = types.MapOf(types.StringType, types.BytesType).NotNull()
	headerListType = types.ArrayOf(types.RowOf(types.Field{Name: "key", Type: types.StringType}, types.Field{Name: "value", Type: types.BytesType})).NotNull()
)

// metadataColumns are the keys of METADATA columns, beside value.<key> of the format.
var metadataColumns = []connectors.MetadataColumn{
	{Key: "topic", Type: types.StringType.NotNull(), Writable: true, Doc: "topic name; writable when the table names several topics or a pattern"},
	{Key: "partition", Type: types.IntType.NotNull(), Doc: "partition number"},
	{Key: "headers", Type: headersType, Writable: true, Doc: "headers as a map; of equal keys the last wins"},
	{Key: "header-list", Type: headerListType, Writable: true, Doc: "headers in order, repeated keys included"},
	{Key: "leader-epoch", Type: types.IntType, Doc: "leader epoch of the record"},
	{Key: "offset", Type: types.BigIntType.NotNull(), Doc: "offset in the partition"},
	{Key: "timestamp", Type: types.TimestampOf(types.TimestampLTZ, 3).NotNull(), Writable: true, Doc: "timestamp of the record"},
	{Key: "timestamp-type", Type: types.StringType.NotNull(), Doc: "'NoTimestampType', 'CreateTime' or 'LogAppendTime'"},
}
