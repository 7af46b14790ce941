package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Options say how to reach a store; their names are those of Flink's options s3.*.
type Options struct {
	Endpoint  string // a URL, or host[:port] for https; "" = Amazon's
	Region    string // "" = what the store says
	AccessKey string // "" = the environment (AWS_ACCESS_KEY_ID …), ~/.aws/credentials, the machine's role
	SecretKey string
	PathStyle bool // the bucket in the path, not in the host's name
}

// Bucket is one bucket as a checkpoint.ObjectStore.
type Bucket struct {
	client *minio.Client
	name   string
}

const defaultEndpoint = "s3.amazonaws.com"

// Open reaches for the bucket, which must exist, and makes sure that it can be trusted with checkpoints: that objects can be
// made, read and removed, and that making one twice is refused.
func Open(ctx context.Context, bucket string, o Options) (*Bucket, error) {
	host, secure, err := endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	creds := credentials.NewStaticV4(o.AccessKey, o.SecretKey, "")
	if o.AccessKey == "" {
		creds = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Transport: http.DefaultTransport}}})
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(host, &minio.Options{Creds: creds, Secure: secure, Region: o.Region, BucketLookup: lookup})
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "'s3.endpoint' = '%s' cannot be used", o.Endpoint).Wrap(err)
	}
	b := &Bucket{client: client, name: bucket}
	if err := b.probe(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// endpoint splits what the user wrote.
func endpoint(s string) (host string, secure bool, err error) {
	if s == "" {
		return defaultEndpoint, true, nil
	}
	if !strings.Contains(s, "://") {
		return s, true, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, diag.New(diag.Config, diag.Pos{}, "'s3.endpoint' = '%s' is not the address of a store", s).
			WithHint("write http://host:port or https://host")
	}
	return u.Host, u.Scheme == "https", nil
}

// probe makes an object twice and removes it.
func (b *Bucket) probe(ctx context.Context) error {
	key := ".streamsql-probe/" + rand.Text()
	err := b.Create(ctx, key, []byte("probe"))
	if err != nil {
		return diag.New(diag.External, diag.Pos{}, "checkpoint storage %s cannot be written", b).Wrap(err).
			WithHint("the bucket must exist; set 's3.endpoint', 's3.access-key' and 's3.secret-key', or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and for stores without host names per bucket 's3.path.style.access' = 'true'")
	}
	again := b.Create(ctx, key, []byte("probe again"))
	if err := b.Remove(ctx, key); err != nil {
		return diag.New(diag.External, diag.Pos{}, "checkpoint storage %s does not let objects be removed", b).Wrap(err).
			WithHint("grant s3:DeleteObject: old checkpoints are removed")
	}
	switch {
	case errors.Is(again, checkpoint.ErrExists):
		return nil
	case again != nil:
		return diag.New(diag.External, diag.Pos{}, "checkpoint storage %s cannot be written", b).Wrap(again)
	}
	return diag.New(diag.External, diag.Pos{}, "checkpoint storage %s does not keep a condition on a write", b).
		WithDetail("an object was made twice under If-None-Match: two processes could both take the same checkpoint for theirs").
		WithHint("use a store with conditional writes: Amazon S3, MinIO, Ceph, versitygw and others have them")
}

// String is s3://bucket, with the host where it is not Amazon's.
func (b *Bucket) String() string {
	if u := b.client.EndpointURL(); u.Host != defaultEndpoint {
		return fmt.Sprintf("s3://%s at %s", b.name, u.Host)
	}
	return "s3://" + b.name
}

// Create implements checkpoint.ObjectStore.
func (b *Bucket) Create(ctx context.Context, key string, data []byte) error {
	o := minio.PutObjectOptions{DisableMultipart: true}
	o.SetMatchETagExcept("*")
	_, err := b.client.PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), o)
	if code := minio.ToErrorResponse(err); code.StatusCode == http.StatusPreconditionFailed {
		return checkpoint.ErrExists
	}
	return err
}

// Put implements checkpoint.ObjectStore. Large objects go in parts, which appear together.
func (b *Bucket) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	_, err := b.client.PutObject(ctx, b.name, key, r, size, minio.PutObjectOptions{})
	return err
}

// Get implements checkpoint.ObjectStore.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	o, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, missing(err)
	}
	if _, err := o.Stat(); err != nil { // the request is sent at the first use
		o.Close()
		return nil, missing(err)
	}
	return o, nil
}

// missing makes the store's answer for no such object what package checkpoint looks for.
func missing(err error) error {
	if minio.ToErrorResponse(err).Code == "NoSuchKey" {
		return errors.Join(fs.ErrNotExist, err)
	}
	return err
}

// List implements checkpoint.ObjectStore.
func (b *Bucket) List(ctx context.Context, prefix string, f func(checkpoint.ObjectInfo) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return o.Err
		}
		if err := f(checkpoint.ObjectInfo{Key: o.Key, Modified: o.LastModified}); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements checkpoint.ObjectStore.
func (b *Bucket) Remove(ctx context.Context, key string) error {
	return b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
}
