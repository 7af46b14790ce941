package connectors

import "sync"

// Shared holds what the sources and sinks of one job share with each other, such as the Kafka transaction that several
// sinks write into. The executor makes one per attempt of a job and hands it out in JobInfo; connectors put their own
// unexported key types in it, so two connectors never see each other's values. The zero Shared is ready to use.
type Shared struct {
	mu     sync.Mutex
	values map[any]any
}

// LoadOrStore returns the value of key, made by create when there is none yet. create runs under the lock: it must not
// block and must not use s.
func (s *Shared) LoadOrStore(key any, create func() any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v
	}
	if s.values == nil {
		s.values = map[any]any{}
	}
	v := create()
	s.values[key] = v
	return v
}

// Delete forgets key if its value is still v.
func (s *Shared) Delete(key, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[key] == v {
		delete(s.values, key)
	}
}
