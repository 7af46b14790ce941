package checkpoint

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// TestDegraded is the table of what a restore does that cannot be exact, by what the user allowed: rather rows twice than
// rows lost, and nothing without having been allowed. Method: the real store; checkpoints 1 to 3 of which 3 lists 2 and 3.
func TestDegraded(t *testing.T) {
	const c, a, u, g = OutcomeCommitted, OutcomeAborted, OutcomeUnknown, OutcomeGivenUp
	for _, tc := range []struct {
		name   string
		out    map[ID]Outcome
		policy OnDegraded
		damage bool // of checkpoint 3, whose output is committed
		want   ID   // what is resumed, 0 = refused
		noted  string
	}{
		{"a sibling is committed, nothing allowed", map[ID]Outcome{1: c, 2: a, 3: c}, DegradedFail, false, 0, ""},
		{"a sibling is committed, rows may repeat", map[ID]Outcome{1: c, 2: a, 3: c}, DegradedRepeat, false, 1, "went back from checkpoint 3 to 1"},
		{"unknown, nothing allowed", map[ID]Outcome{1: c, 2: c, 3: u}, DegradedFail, false, 0, ""},
		{"unknown, rows may repeat", map[ID]Outcome{1: c, 2: c, 3: u}, DegradedRepeat, false, 2, "went back from checkpoint 3 to 2"},
		{"exact all the same", map[ID]Outcome{1: c, 2: c, 3: a}, DegradedRepeat, false, 2, ""},
		{"going back would lose rows, too", map[ID]Outcome{1: a, 2: a, 3: c}, DegradedRepeat, false, 0, ""},
		{"the table gives up, going back is exact", map[ID]Outcome{1: c, 2: c, 3: g}, DegradedFail, false, 2, ""},
		{"the table gives up, nothing is exact", map[ID]Outcome{1: c, 2: g, 3: c}, DegradedFail, false, 3, "went on from checkpoint 3 without output that was lost"},
		{"the table gives up, but rows may repeat", map[ID]Outcome{1: c, 2: g, 3: c}, DegradedRepeat, false, 1, "went back from checkpoint 3 to 1"},
		{"the table gives up, another one does not", map[ID]Outcome{1: c, 2: g, 3: u}, DegradedFail, false, 0, ""},
		{"damaged and committed, nothing allowed", map[ID]Outcome{1: c, 2: c, 3: c}, DegradedFail, true, 0, ""},
		{"damaged and committed, rows may repeat", map[ID]Outcome{1: c, 2: c, 3: c}, DegradedRepeat, true, 2, "went back from checkpoint 3 to 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := vfs.NewMem()
			owner, s := openStore(t, mem)
			var last *Checkpoint
			for id := ID(1); id <= 3; id++ {
				last = testCheckpoint(t, owner, id)
				if id > 1 {
					last.Pending = append([]Committable{{Sink: "s", Checkpoint: id - 1, Lineage: "l", Payload: []byte{byte(id - 1)}}}, last.Pending...)
				}
				if tc.out[1] != c && id == 3 {
					last.Pending = append([]Committable{{Sink: "s", Checkpoint: 1, Lineage: "l", Payload: []byte{1}}}, last.Pending...)
				}
				if err := s.Publish(bg, last); err != nil {
					t.Fatal(err)
				}
			}
			if tc.out[1] == c {
				if err := s.Confirm(bg, 1); err != nil {
					t.Fatal(err)
				}
			}
			if tc.damage {
				for _, f := range last.Subtasks[0].Files {
					overwrite(t, mem, "/job/"+f.Path, []byte("x"))
				}
			}
			cp, err := Recover(bg, s, map[SinkID]Committer{"s": &fakeCommitter{out: tc.out}}, RecoverOptions{OnDegraded: tc.policy})
			noted, rerr := s.Degraded(bg)
			if rerr != nil {
				t.Fatal(rerr)
			}
			switch {
			case tc.want == 0 && diag.CodeOf(err) != diag.Lost:
				t.Fatalf("resumes at %v, %v; want a refusal", cp, err)
			case tc.want == 0 && len(noted) > 0:
				t.Fatalf("refused, and noted %v", noted)
			case tc.want == 0:
				return
			case err != nil || cp.ID != tc.want:
				t.Fatalf("resumes at %v, %v; want %d", cp, err, tc.want)
			}
			if len(noted) > 1 || len(noted) == 1 != (tc.noted != "") || len(noted) == 1 && !strings.Contains(noted[0].String(), tc.noted) {
				t.Errorf("noted %v, want %q", noted, tc.noted)
			}
			if s.NextID() != 4 {
				t.Errorf("next id %d, want 4: an id would name other output", s.NextID())
			}
			if _, confirmed, err := s.Latest(bg); !confirmed || err != nil {
				t.Errorf("not confirmed after recovery: %v", err)
			}
		})
	}
}

// When no copy of the newest manifest can be read, nothing is exact, and nothing is lost behind the newest one of which all output is
// there or can be made so. What is open behind it is aborted, for it is written again.
func TestDegradedUnreadable(t *testing.T) {
	const c, o, a, u = OutcomeCommitted, OutcomeOpen, OutcomeAborted, OutcomeUnknown
	for _, tc := range []struct {
		name      string
		out       map[ID]Outcome
		confirmed ID
		policy    OnDegraded
		want      ID     // what is resumed, 0 = refused
		run       string // the lineage that has begun and not ended
	}{
		{"nothing allowed", map[ID]Outcome{2: c}, 2, DegradedFail, 0, "l"},
		{"the one before is confirmed", map[ID]Outcome{2: u}, 2, DegradedRepeat, 2, "l"},
		{"the unreadable one is confirmed", map[ID]Outcome{2: u}, 3, DegradedRepeat, 2, "l"},
		{"the one before is committed", map[ID]Outcome{2: c}, 1, DegradedRepeat, 2, "l"},
		{"the one before can be committed", map[ID]Outcome{2: o}, 1, DegradedRepeat, 2, "l"},
		{"the one before was aborted", map[ID]Outcome{2: a}, 1, DegradedRepeat, 1, "l"},
		{"nobody knows of the one before", map[ID]Outcome{2: u}, 1, DegradedRepeat, 1, "l"},
		{"none is whole", map[ID]Outcome{1: a, 2: a}, 0, DegradedRepeat, 0, "l"},
		{"those before may be of another run", map[ID]Outcome{2: c}, 2, DegradedRepeat, 0, "m"},
		{"the run has ended", map[ID]Outcome{2: c}, 2, DegradedRepeat, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem := vfs.NewMem()
			owner, s := openStore(t, mem)
			if tc.run != "" {
				if err := s.Begin(bg, tc.run); err != nil {
					t.Fatal(err)
				}
			}
			for id := ID(1); id <= 3; id++ {
				if err := s.Publish(bg, testCheckpoint(t, owner, id)); err != nil {
					t.Fatal(err)
				}
			}
			if tc.confirmed > 0 {
				if err := s.Confirm(bg, tc.confirmed); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{manifestName, manifest2Name} {
				overwrite(t, mem, "/job/"+chkName(3)+"/"+name, []byte("x"))
			}
			f := &fakeCommitter{out: tc.out}
			cp, err := Recover(bg, s, map[SinkID]Committer{"s": f}, RecoverOptions{OnDegraded: tc.policy})
			noted, rerr := s.Degraded(bg)
			if rerr != nil {
				t.Fatal(rerr)
			}
			if tc.want == 0 {
				if diag.CodeOf(err) != diag.Lost || len(noted) > 0 {
					t.Fatalf("resumes at %v, %v, and noted %v; want a refusal", cp, err, noted)
				}
				return
			}
			if err != nil || cp.ID != tc.want {
				t.Fatalf("resumes at %v, %v; want %d", cp, err, tc.want)
			}
			if len(noted) != 1 || noted[0].From != 3 || noted[0].To != tc.want || noted[0].Lost {
				t.Errorf("noted %v", noted)
			}
			if s.NextID() != 4 {
				t.Errorf("next id %d, want 4", s.NextID())
			}
			if _, confirmed, err := s.Latest(bg); !confirmed || err != nil {
				t.Errorf("not confirmed after recovery: %v", err)
			}
		})
	}
}

// The record is durable before what it is about: a process that dies in between leaves it, and the next one does not note
// the same again.
func TestDegradedIsNotedFirst(t *testing.T) {
	mem := vfs.NewMem()
	owner, s := openStore(t, mem)
	for id := ID(1); id <= 3; id++ {
		cp := testCheckpoint(t, owner, id)
		if err := s.Publish(bg, cp); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Confirm(bg, 2); err != nil {
		t.Fatal(err)
	}
	f := &fakeCommitter{out: map[ID]Outcome{3: OutcomeUnknown}}
	if err := SetFailpoint("restore.degraded:1:error"); err != nil {
		t.Fatal(err)
	}
	defer SetFailpoint("")
	if _, err := Recover(bg, s, map[SinkID]Committer{"s": f}, RecoverOptions{OnDegraded: DegradedRepeat}); err == nil {
		t.Fatal("the failpoint was not passed")
	}
	for round := range 2 {
		owner.Close()
		owner, s = openStore(t, mem)
		noted, err := s.Degraded(bg)
		if err != nil || len(noted) != 1 {
			t.Fatalf("round %d: noted %v, %v", round, noted, err)
		}
		if c, _, _ := s.Latest(bg); round == 0 && c.ID != 3 {
			t.Fatalf("checkpoint %d was left before the record was durable", c.ID)
		}
		cp, err := Recover(bg, s, map[SinkID]Committer{"s": f}, RecoverOptions{OnDegraded: DegradedRepeat})
		if err != nil || cp.ID != 2 {
			t.Fatalf("round %d: %v, %v", round, cp, err)
		}
	}
	owner.Close()
	overwrite(t, mem, "/job/"+degradedName, []byte("x"))
	if _, err := ReadDegraded(mem, "/job"); diag.CodeOf(err) != diag.External {
		t.Errorf("a damaged record is read as none: %v", err)
	}
}

// The record goes where the checkpoints count: another machine has it, and so has storage that a directory moved into.
func TestDegradedInStorage(t *testing.T) {
	bucket, err := OpenDirObjects(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	first := &machine{fs: vfs.NewMem()}
	owner, s := openStore(t, first.fs)
	if err := s.Publish(bg, testCheckpoint(t, owner, 1)); err != nil {
		t.Fatal(err)
	}
	d := Degradation{At: time.Unix(1e9, 0).UTC(), Lineage: "l", From: 2, To: 1, By: "'x' = 'y'", Why: "because"}
	if err := s.Degrade(bg, d); err != nil {
		t.Fatal(err)
	}
	owner.Close()
	if err := first.open(bucket); err != nil {
		t.Fatal(err)
	}
	d.From = 3
	if err := first.store.Degrade(bg, d); err != nil {
		t.Fatal(err)
	}
	second := &machine{fs: vfs.NewMem()}
	if err := second.open(bucket); err != nil {
		t.Fatal(err)
	}
	local, err := ReadDegraded(second.fs, "/job")
	noted, rerr := second.store.Degraded(context.Background())
	if err != nil || rerr != nil || len(local) != 2 || len(noted) != 2 || local[1] != d || noted[1] != d {
		t.Fatalf("the log says %v (%v), the directory %v (%v)", noted, rerr, local, err)
	}
	// Noted by hand in the copy while nobody owned it: it reaches the log, and by that the next machine.
	hand := Degradation{At: time.Unix(2e9, 0).UTC(), Lineage: "l", From: 1, To: 1, Lost: true, Hand: true, By: "hand", Why: "one"}
	other := hand
	other.Why = "another"
	for _, h := range []Degradation{hand, other, hand} {
		if err := NoteByHand(second.fs, "/job", h); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.open(bucket); err != nil {
		t.Fatal(err)
	}
	third := &machine{fs: vfs.NewMem()}
	if err := third.open(bucket); err != nil {
		t.Fatal(err)
	}
	if noted, err := third.store.Degraded(bg); err != nil || len(noted) != 4 || noted[2] != hand || noted[3] != other {
		t.Fatalf("noted by hand, and not in the log: %v, %v", noted, err)
	}
	d.From = 4
	if err := first.store.Degrade(bg, d); diag.CodeOf(err) != diag.Conflict {
		t.Errorf("an owner that was replaced notes: %v", err)
	}
}
