// Package op holds the operators: one step of a subtask each, built by constructors the planner calls. An operator
// keeps keyed state in checkpoint tables only, emits nothing it has not been given a reason for by a batch, a watermark
// or a timer, and treats input batches as borrowed.
//
// It imports exec, checkpoint and the leaves of sql.
//
// The files by what they are about (_ stands for the rest of a name):
//
//	row by row           calc, union, unnest, correlate, replicate, expand, dropbefore
//	changelogs, sinks    normalize, materialize_, constraint
//	GROUP BY             aggregate, local_, agg_, accumulator, distinct_, extremes, percentile, mergetable, heldrows
//	windows              windowclock, tvf, window, windowfire, windowcache, windowsum, windowrank, windowjoin_, windowhash, session_
//	OVER, MATCH          over_, match_
//	joins                join_, insertjoin_, minijoin, heldtexts, intervaljoin, temporaljoin, temporalmatch, versioncache, leftpairs, pairs, lookup_
//	Top-N, duplicates    rank_, dedup_
//	order, limit         sort, sortmerge, timesort, limit
//	rows as bytes        rowcodec, rowstate, keycolumns, sortkey, page_, rowchanges
//	keys of a batch      batchkeys, rowgroups, keyruns, wordtable, textids, hashslots
//	state, many rows     multimap_, bucketparts, joinlog, valuelist, sortruns; by time: windowlog, cellindex, waitlog_, timequeue
//	what is due when     timers, timerset, idlekeys, retention, atend
package op
