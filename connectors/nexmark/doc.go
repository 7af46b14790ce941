// Package nexmark is the source of the Nexmark benchmark: the made-up events of an online auction site, people who register,
// auctions they open and bids on them, after the public specification (Beam's and the Flink connector's GeneratorConfig).
//
// Every value is a pure function of the seed, the event's number and the field, so the same table gives the same events
// on every machine, whatever the parallelism, the restarts and the columns that are read; only those columns are made.
// Split i of n has the event groups (persons + auctions + bids of one turn) i, i+n, i+2n, …, and a position is the number of
// splits and of the events of the split that were made.
//
// A table has the columns of the Flink connector (event_type, person, auction, bid, the last three a ROW), or with
// 'event' = 'bid' the fields of one kind of event as columns of their own.
//
// A filter that decides which kinds of events are rows, such as event_type = 1, is applied here: the others are not made. Where a
// watermark is made of the rows it stays that of all events, since the last row of a call has the time of the last event.
//
// It imports connectors and the leaves of sql.
package nexmark
