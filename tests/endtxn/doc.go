// Package endtxn records what real Kafka brokers answer to EndTxn in every state a transactional id can be in after a
// crash, and that the control marker in the topic's log tells the outcome where the answer does not.
//
// The Kafka sink's recovery rests on these answers, and they have changed between patch releases. testdata holds them, one
// file per release and transaction.version; the test asks the brokers again and compares. docs/kafka-endtxn.md explains
// them. A release that answers differently makes the test fail: read the difference against the rules there before
// recording it with -rewrite.
package endtxn
