package control

import (
	"errors"

	"github.com/streamsql/streamsql/sql/diag"
)

// SocketName is the name of the socket in the state directory.
const SocketName = "control.sock"

// prefix begins every path: the version of the protocol.
const prefix = "/v1/"

// Job is a job of the process.
type Job struct {
	ID, Name   string
	State      string // Flink's word, such as RUNNING
	Checkpoint uint64 // newest durable checkpoint, 0 = none
	Committed  uint64 // newest one whose output is committed
	Restarts   int
	Error      string `json:",omitempty"` // why it failed, or restarted last
}

// SavepointRequest asks for a savepoint of a job. Job is an id, a unique beginning of one or a name; "" is the only job
// that runs. Dir is an absolute path that does not exist; "" is a new directory where the settings of the job say.
type SavepointRequest struct {
	Job, Dir string
}

// Savepoint is one that was made.
type Savepoint struct {
	Path       string
	Checkpoint uint64
	Job        string // its id
	Name       string
}

// StopRequest asks a job to end with a final checkpoint, committed. With Savepoint the checkpoint is copied to Dir, see
// SavepointRequest.
type StopRequest struct {
	Job       string
	Drain     bool
	Savepoint bool
	Dir       string
}

// Stopped is a job that has ended. Path is its savepoint, "" = none was asked for.
type Stopped struct {
	Job, Name  string
	Path       string
	Checkpoint uint64
}

// failure is an error on its way to the other process.
type failure struct {
	Code            diag.Code
	Message, Detail string `json:",omitempty"`
	Hint            string `json:",omitempty"`
}

func failed(err error) failure {
	var d *diag.Error
	if !errors.As(err, &d) {
		return failure{Code: diag.External, Message: err.Error()}
	}
	return failure{Code: d.Code, Message: err.Error(), Detail: d.Detail, Hint: d.Hint}
}

// err is the error that failed was given, as far as a user sees it.
func (f failure) err() error {
	e := diag.New(f.Code, diag.Pos{}, "%s", f.Message)
	e.Detail, e.Hint = f.Detail, f.Hint
	return e
}
