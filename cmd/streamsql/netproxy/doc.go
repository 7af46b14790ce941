// Package netproxy is a TCP proxy that breaks connections on purpose: between a job and its Kafka brokers or its PostgreSQL
// server. `streamsql chaos` and tests/network use it.
//
//	client ──▶ accept ─▶ read a message ─▶ queue ─▶ judge ─▶ write ──▶ server
//	client ◀── write ◀─ judge ◀─ queue ◀─ read a message ◀──────────── server
//
// A Proxy forwards to one address and does nothing else until a Fault is injected. Faults stay in force until they have struck as often
// as they should, their time is up, or End is called; several may be in force at once. A proxy that knows the protocol
// forwards message by message, so that the reply to one request can be lost; TLS hides messages, and is then forwarded as bytes.
//
// What a proxy cannot do: lose a SYN (a new connection is accepted by this machine's kernel, then refused or left without an answer), or make
// the peer's kernel miss packets (its keepalive probes are answered here). Both make half-open connections harder to notice, not easier.
//
// Invariant: bytes are delivered in order and unchanged, or the connection never delivers another byte in that direction.
//
// It imports no package of streamsql.
package netproxy
