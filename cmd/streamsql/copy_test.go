package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Commands on a state directory whose checkpoints count in a store say so: reading goes on, a savepoint is refused.
func TestCopyOfCheckpoints(t *testing.T) {
	state, ctx := t.TempDir(), context.Background()
	job := filepath.Join(state, "jobs", "abc")
	owner, err := checkpoint.OwnDir(job)
	if err != nil {
		t.Fatal(err)
	}
	where := filepath.Join(t.TempDir(), "shared")
	objects, err := checkpoint.OpenDirObjects(vfs.Default, where)
	if err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.OpenRemote(ctx, owner, objects, "abc", checkpoint.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(ctx, &checkpoint.Checkpoint{ID: 1, Lineage: "l", Fence: owner.Fence(), StartedAt: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := showCheckpoints(&out, state, false, time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "checkpoint 1") || !strings.Contains(out.String(), "kept in "+where+"/abc; this is the copy") {
		t.Errorf("checkpoint show:\n%s", out.String())
	}
	_, err = offline(ctx, state, "", "")
	if diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), where+"/abc") {
		t.Errorf("savepoint: %v, want a refusal that names the storage", err)
	}
}
