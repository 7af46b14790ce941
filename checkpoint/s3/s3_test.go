package s3

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// server is a store in this process, and the options that reach it. wrap may change what it answers.
func server(t *testing.T, wrap func(http.Handler) http.Handler) Options {
	t.Helper()
	if o := (Options{Endpoint: os.Getenv("STREAMSQL_TEST_S3"), AccessKey: "key", SecretKey: "secret", PathStyle: true}); o.Endpoint != "" && wrap == nil {
		return o // a real one, with an empty bucket chk
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("chk"); err != nil {
		t.Fatal(err)
	}
	h := gofakes3.New(backend).Server()
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Options{Endpoint: s.URL, AccessKey: "key", SecretKey: "secret", PathStyle: true, Region: "us-east-1"}
}

// The four things that package checkpoint expects of a store.
func TestBucket(t *testing.T) {
	b, err := Open(t.Context(), "chk", server(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := b.Create(ctx, "a/1", []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(ctx, "a/1", []byte("second")); !errors.Is(err, checkpoint.ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 512<<10) // 8 MiB
	if os.Getenv("STREAMSQL_TEST_S3") != "" {
		big = append(big, bytes.Repeat(big, 3)...) // in parts: the server in this process keeps the signatures between chunks of a part
	}
	if err := b.Put(ctx, "a/2", bytes.NewReader(big), int64(len(big))); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][]byte{"a/1": []byte("first"), "a/2": big} {
		r, err := b.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
		r.Close()
	}
	if _, err := b.Get(ctx, "a/3"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such object: %v", err)
	}
	keys := map[string]bool{}
	if err := b.List(ctx, "a/", func(o checkpoint.ObjectInfo) error { keys[o.Key] = !o.Modified.IsZero(); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || !keys["a/1"] || !keys["a/2"] {
		t.Errorf("listed %v", keys)
	}
	if err := errors.Join(b.Remove(ctx, "a/1"), b.Remove(ctx, "a/1")); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if err := b.Create(ctx, "a/1", []byte("third")); err != nil {
		t.Errorf("made again after it was removed: %v", err)
	}
}

// A store that overwrites in spite of the condition is refused, and so are addresses and buckets that are not there.
func TestRefusals(t *testing.T) {
	ignores := server(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Header.Del("If-None-Match"); h.ServeHTTP(w, r) })
	})
	if _, err := Open(t.Context(), "chk", ignores); err == nil || !strings.Contains(err.Error(), "condition") {
		t.Errorf("a store without conditions: %v", err)
	}
	if _, err := Open(t.Context(), "other", server(t, nil)); diag.CodeOf(err) != diag.External {
		t.Errorf("no such bucket: %v", err)
	}
	for _, address := range []string{"ftp://host", "http://", "http://host/path"} {
		if _, err := Open(t.Context(), "chk", Options{Endpoint: address}); diag.CodeOf(err) != diag.Config {
			t.Errorf("%s: %v", address, err)
		}
	}
}
