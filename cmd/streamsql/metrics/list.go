package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamsql/streamsql/exec"
)

// scope is what a figure is about: its labels behind those of the job.
type scope struct {
	name   string
	labels []string
}

var (
	jobScope      = scope{name: "job"}
	stateScope    = scope{name: "state"}
	operatorScope = scope{"operator", []string{"operator_id", "operator_name"}}
	splitScope    = scope{"split", []string{"operator_id", "split"}}
	sinkScope     = scope{"sink", []string{"sink", "operator_name"}}
)

// figure is one metric. Flink says that its name, and unit, are Flink's.
type figure struct {
	scope scope
	name  string
	extra string // one more label, "" = none
	kind  prometheus.ValueType
	flink bool
	help  string
}

// The figures. Times whose name is Flink's are in milliseconds, as Flink's; the others say their unit.
var (
	jobState        = figure{jobScope, "state", "state", prometheus.GaugeValue, false, "1 for the state that the job is in, 0 for the others"}
	jobUptime       = figure{jobScope, "uptime", "", prometheus.GaugeValue, true, "time since the job was started by this process, in ms"}
	jobRestarts     = figure{jobScope, "numRestarts", "", prometheus.CounterValue, true, "restarts after failures, in this process"}
	jobCompleted    = figure{jobScope, "numberOfCompletedCheckpoints", "", prometheus.CounterValue, true, "checkpoints that became durable, in this process"}
	jobGivenUp      = figure{jobScope, "numberOfFailedCheckpoints", "", prometheus.CounterValue, true, "checkpoints that expired, failed or were declined, in this process"}
	jobCheckpoints  = figure{jobScope, "checkpoints", "result", prometheus.CounterValue, false, "checkpoints by what became of them, in this process"}
	jobInARow       = figure{jobScope, "failedCheckpointsInARow", "", prometheus.GaugeValue, false, "checkpoints that failed since the last one that completed"}
	jobLast         = figure{jobScope, "lastCompletedCheckpointId", "", prometheus.GaugeValue, true, "newest durable checkpoint; absent when there is none"}
	jobCommitted    = figure{jobScope, "lastCommittedCheckpointId", "", prometheus.GaugeValue, false, "newest checkpoint whose output is committed; absent when there is none"}
	jobDuration     = figure{jobScope, "lastCheckpointDuration", "", prometheus.GaugeValue, true, "from the trigger of the newest durable checkpoint to its commit point, in ms"}
	jobLastAge      = figure{jobScope, "lastCheckpointAgeSeconds", "", prometheus.GaugeValue, false, "how long ago the newest checkpoint became durable; since the start when none has in this process"}
	jobSize         = figure{jobScope, "lastCheckpointFullSize", "", prometheus.GaugeValue, true, "bytes of state that the newest checkpoint lists"}
	jobWritten      = figure{jobScope, "checkpointWrittenBytes", "", prometheus.CounterValue, false, "bytes that checkpoints added: files that the one before did not have"}
	jobAlignment    = figure{jobScope, "lastCheckpointAlignmentSeconds", "", prometheus.GaugeValue, false, "longest alignment of the newest checkpoint"}
	jobPause        = figure{jobScope, "lastCheckpointPauseSeconds", "", prometheus.GaugeValue, false, "longest that a subtask stood still for the newest checkpoint"}
	jobQuantile     = figure{jobScope, "checkpointDurationSeconds", "quantile", prometheus.GaugeValue, false, "over the last checkpoints, from the trigger to the commit point"}
	jobCommitP99    = figure{jobScope, "checkpointCommitSeconds", "quantile", prometheus.GaugeValue, false, "over the last checkpoints, from the commit point to the commit"}
	jobBudget       = figure{jobScope, "transactionTimeoutAtRisk", "", prometheus.GaugeValue, false, "1 when checkpoints take more than half of what a sink's transaction timeout leaves them"}
	jobRestore      = figure{jobScope, "restoreSeconds", "part", prometheus.GaugeValue, false, "how long the running attempt took to be restored, by part; absent when it began afresh"}
	jobLate         = figure{jobScope, "numLateRecordsDropped", "", prometheus.CounterValue, true, "rows dropped because their window had closed"}
	jobSkipped      = figure{jobScope, "skippedRecords", "", prometheus.CounterValue, false, "records left out by a table's policy for bad records"}
	jobFuture       = figure{jobScope, "futureRows", "", prometheus.CounterValue, false, "rows too far in the future to move event time ('scan.watermark.max-future-skew')"}
	jobReadAgain    = figure{jobScope, "rowsReadAgain", "", prometheus.CounterValue, false, "rows read a second time after restarts in this process"}
	jobDegradations = figure{jobScope, "guaranteesGivenUp", "lost", prometheus.GaugeValue, false, "how often the job gave a guarantee up, as the user allowed, ever: rows twice (lost=\"false\") or missing"}

	jobAlarm = figure{jobScope, "alarm", "alarm", prometheus.GaugeValue, false, "1 while the alarm of that name is on; docs/runbooks has a page for each"}

	stateUsed        = figure{stateScope, "memoryUsedBytes", "", prometheus.GaugeValue, false, "what resident rows and the block cache take; shared by all jobs of the process"}
	stateLimit       = figure{stateScope, "memoryLimitBytes", "", prometheus.GaugeValue, false, "what they may take (--memory)"}
	stateHits        = figure{stateScope, "blockCacheHits", "", prometheus.CounterValue, false, "reads of state on disk that found their block in the cache; shared by all jobs of the process"}
	stateMisses      = figure{stateScope, "blockCacheMisses", "", prometheus.CounterValue, false, "reads of state on disk that did not"}
	stateDatabases   = figure{stateScope, "databases", "", prometheus.GaugeValue, false, "tasks with rows on disk, in a Pebble each"}
	stateFiles       = figure{stateScope, "files", "", prometheus.GaugeValue, false, "their table files"}
	stateNewFiles    = figure{stateScope, "newFiles", "", prometheus.GaugeValue, false, "of these, files that no compaction has merged yet"}
	stateBytes       = figure{stateScope, "bytes", "", prometheus.GaugeValue, false, "bytes of their table files"}
	stateMemtable    = figure{stateScope, "memtableBytes", "", prometheus.GaugeValue, false, "bytes of their memtables"}
	stateCompactions = figure{stateScope, "compactions", "", prometheus.CounterValue, false, "compactions since the Pebbles were opened"}
	stateDebt        = figure{stateScope, "compactionDebtBytes", "", prometheus.GaugeValue, false, "bytes that have to be compacted until the levels are in shape"}
	stateStalls      = figure{stateScope, "writeStalls", "", prometheus.CounterValue, false, "times that writes were held back"}
	stateStallTime   = figure{stateScope, "writeStallSeconds", "", prometheus.CounterValue, false, "for how long in all"}
	stateSyncs       = figure{stateScope, "fsyncs", "", prometheus.CounterValue, false, "fsyncs of the state directory: checkpoints and state on disk, since the job took it"}
	stateSyncTime    = figure{stateScope, "fsyncSecondsTotal", "", prometheus.CounterValue, false, "how long they took in all"}
	stateSync        = figure{stateScope, "fsyncSeconds", "quantile", prometheus.GaugeValue, false, "how long one took, over the last ones; absent in memory"}

	operatorIn        = figure{operatorScope, "numRecordsIn", "", prometheus.CounterValue, true, "rows into the operator"}
	operatorOut       = figure{operatorScope, "numRecordsOut", "", prometheus.CounterValue, true, "rows out of the operator"}
	operatorWatermark = figure{operatorScope, "currentInputWatermark", "", prometheus.GaugeValue, true, "lowest watermark of its subtasks, in ms since 1970; absent before the first"}
	operatorCounter   = figure{operatorScope, "counter", "name", prometheus.GaugeValue, false, "the operator's own figures, such as keys and bytes of state"}

	splitRecords   = figure{splitScope, "numRecordsIn", "", prometheus.CounterValue, true, "records read of the split"}
	splitBytes     = figure{splitScope, "numBytesIn", "", prometheus.CounterValue, true, "bytes read of the split"}
	splitPending   = figure{splitScope, "pendingRecords", "", prometheus.GaugeValue, true, "records behind the end of the split; absent when unknown"}
	splitWatermark = figure{splitScope, "currentOutputWatermark", "", prometheus.GaugeValue, true, "watermark of the split, in ms since 1970; absent before the first"}
	splitIdle      = figure{splitScope, "idle", "", prometheus.GaugeValue, false, "1 when the split counts as idle"}

	sinkPending   = figure{sinkScope, "pendingCommittables", "", prometheus.GaugeValue, true, "outputs of durable checkpoints that are not known to be committed"}
	sinkOldest    = figure{sinkScope, "oldestPendingSeconds", "", prometheus.GaugeValue, false, "how long ago the first of them was pre-committed"}
	sinkOpen      = figure{sinkScope, "openTransactions", "", prometheus.GaugeValue, false, "transactions that hold rows which are not committed"}
	sinkOpenAge   = figure{sinkScope, "oldestTransactionSeconds", "", prometheus.GaugeValue, false, "age of the oldest of them"}
	sinkTimeout   = figure{sinkScope, "transactionTimeoutSeconds", "", prometheus.GaugeValue, false, "how old a transaction may become before the other side aborts it; absent when it may become any age"}
	sinkPreCommit = figure{sinkScope, "preCommitSeconds", "quantile", prometheus.GaugeValue, false, "the sink's part of a checkpoint while rows stand still, over the last ones"}
	sinkCommit    = figure{sinkScope, "commitSeconds", "quantile", prometheus.GaugeValue, false, "a commit of what a checkpoint lists, over the last ones"}
)

// figures are all of them, in the order of docs/metrics.md.
var figures = []*figure{
	&jobState, &jobUptime, &jobRestarts, &jobCompleted, &jobGivenUp, &jobCheckpoints, &jobInARow, &jobLast, &jobCommitted, &jobDuration,
	&jobLastAge, &jobSize, &jobWritten, &jobAlignment, &jobPause, &jobQuantile, &jobCommitP99, &jobBudget, &jobRestore, &jobLate,
	&jobSkipped, &jobFuture, &jobReadAgain, &jobDegradations, &jobAlarm,
	&stateUsed, &stateLimit, &stateHits, &stateMisses, &stateDatabases, &stateFiles, &stateNewFiles, &stateBytes, &stateMemtable,
	&stateCompactions, &stateDebt, &stateStalls, &stateStallTime,
	&stateSyncs, &stateSyncTime, &stateSync,
	&operatorIn, &operatorOut, &operatorWatermark, &operatorCounter,
	&splitRecords, &splitBytes, &splitPending, &splitWatermark, &splitIdle,
	&sinkPending, &sinkOldest, &sinkOpen, &sinkOpenAge, &sinkTimeout, &sinkPreCommit, &sinkCommit,
}

// Name is the metric's name in full.
func (f *figure) Name() string { return "streamsql_" + f.scope.name + "_" + f.name }

// labels are the names of the metric's labels.
func (f *figure) labels() []string {
	l := append([]string{"job_id", "job_name"}, f.scope.labels...)
	if f.extra != "" {
		l = append(l, f.extra)
	}
	return l
}

// states are the states of a job.
var states = []exec.State{exec.Created, exec.Restoring, exec.Running, exec.Restarting, exec.Finished, exec.Suspended, exec.Canceled, exec.Failed}

// millis is a time in Flink's unit.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
