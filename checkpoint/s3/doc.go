// Package s3 keeps checkpoints in a bucket of an S3-compatible store. It is checkpoint.ObjectStore and nothing else; what is
// written, and in which order, is package checkpoint's. The client is minio-go: kept well, Apache licence, a fifth of the
// size of the AWS SDK, and it speaks to every store that speaks S3.
//
// Invariant: an object that Create made was made under a condition that the store checked (If-None-Match: *). A store that
// does not know the condition is refused.
//
// It may import checkpoint and sql/diag.
package s3
