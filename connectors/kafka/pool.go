package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// recordPool lets the client reuse the structs of records. The bytes of keys and values are not pooled: strings in
// columns alias them for as long as anybody keeps those.
type recordPool struct {
	records sync.Pool // *[]kgo.Record
	raw     sync.Pool // *[]kmsg.Record
}

// GetRecords implements kgo.PoolRecords.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, _ := p.records.Get().(*[]kgo.Record); s != nil && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kgo.Record, 0, n)
}

// PutRecords implements kgo.PoolRecords.
func (p *recordPool) PutRecords(s []kgo.Record) { p.records.Put(&s) }

// GetKRecords implements kgo.PoolKRecords.
func (p *recordPool) GetKRecords(n int) []kmsg.Record {
	if s, _ := p.raw.Get().(*[]kmsg.Record); s != nil && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kmsg.Record, 0, n)
}

// PutKRecords implements kgo.PoolKRecords.
func (p *recordPool) PutKRecords(s []kmsg.Record) { p.raw.Put(&s) }
