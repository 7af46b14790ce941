package expr

// agg is an aggregate of the reference. It is listed once the engine can compute it.
func agg(group, name, usage, doc string) Entry {
	return Entry{Name: name, Group: group, Usage: usage, Doc: doc, Kind: AggregateEntry}
}

// listed tells whether the engine can compute a.
func listed(a Entry) bool {
	_, ok := LookupAgg(a.Name)
	_, over := LookupOver(a.Name)
	return ok || over || IsGrouping(a.Name)
}

// aggregateEntries are all aggregate and window functions of Flink SQL. Those LookupAgg does not know are refused by name.
var aggregateEntries = []Entry{
	agg("aggregate", "APPROX_COUNT_DISTINCT", "APPROX_COUNT_DISTINCT(value)", "How many different values there are: exactly here, about in Flink. In batch mode only; else write COUNT(DISTINCT value)."),
	agg("aggregate", "ARRAY_AGG", "ARRAY_AGG([DISTINCT] value [{RESPECT | IGNORE} NULLS])", "The values as an array in order of arrival, NULLs included; NULL of no rows."),
	agg("aggregate", "AVG", "AVG([DISTINCT] number)", "The mean, in the type of the argument: of integers it is cut toward zero. Of DECIMAL(p, s) it is DECIMAL(38, max(6, s))."),
	agg("aggregate", "BITMAP_AND_AGG", "BITMAP_AND_AGG(bitmap)", "The numbers that all bitmaps have."),
	agg("aggregate", "BITMAP_BUILD_AGG", "BITMAP_BUILD_AGG(integer)", "The set of the numbers."),
	agg("aggregate", "BITMAP_OR_AGG", "BITMAP_OR_AGG(bitmap)", "The numbers that any bitmap has."),
	agg("aggregate", "BITMAP_XOR_AGG", "BITMAP_XOR_AGG(bitmap)", "The numbers that an odd number of bitmaps have."),
	agg("aggregate", "COLLECT", "COLLECT([DISTINCT] value)", "The values that are not NULL as a multiset."),
	agg("aggregate", "COUNT", "COUNT(*), COUNT([DISTINCT] value)", "The number of rows, or of values that are not NULL."),
	agg("aggregate", "FIRST_VALUE", "FIRST_VALUE(value)", "The first value to arrive that is not NULL."),
	agg("aggregate", "GROUPING", "GROUPING(key, …)", "A bit per expression of GROUP BY, the first the highest: 1 where the row's grouping set rolls it up."),
	agg("aggregate", "GROUPING_ID", "GROUPING_ID(key, …)", "The same as GROUPING."),
	agg("aggregate", "GROUP_ID", "GROUP_ID()", "0, and 1, 2, … for the rows of a grouping set that is listed again."),
	agg("aggregate", "JSON_ARRAYAGG", "JSON_ARRAYAGG(value [{NULL | ABSENT} ON NULL])", "The values as a JSON array. ABSENT ON NULL by default."),
	agg("aggregate", "JSON_OBJECTAGG", "JSON_OBJECTAGG([KEY] key VALUE value [{NULL | ABSENT} ON NULL])", "The pairs as a JSON object with sorted keys. A key that occurs twice is an error. NULL ON NULL by default."),
	agg("aggregate", "LAST_VALUE", "LAST_VALUE(value)", "The last value to arrive that is not NULL."),
	agg("aggregate", "LISTAGG", "LISTAGG([DISTINCT] string [, separator])", "The strings that are not NULL with a separator (default ',') between them."),
	agg("aggregate", "MAX", "MAX([DISTINCT] value)", "The largest value."),
	agg("aggregate", "MIN", "MIN([DISTINCT] value)", "The smallest value."),
	agg("aggregate", "PERCENTILE", "PERCENTILE(value, percentage [, frequency])", "The value below which a fraction of the values lies, interpolated; an array of them for an array of percentages."),
	agg("aggregate", "STDDEV_POP", "STDDEV_POP([DISTINCT] number)", "The standard deviation of the population, in the type AVG has."),
	agg("aggregate", "STDDEV_SAMP", "STDDEV_SAMP([DISTINCT] number)", "The standard deviation of a sample, in the type AVG has; NULL of a single row."),
	agg("aggregate", "STDDEV", "STDDEV([DISTINCT] number)", "The same as STDDEV_SAMP."),
	agg("aggregate", "SUM", "SUM([DISTINCT] number)", "The sum, in the type of the argument: integers wrap around. Of DECIMAL(p, s) it is DECIMAL(38, s)."),
	agg("aggregate", "VARIANCE", "VARIANCE([DISTINCT] number)", "The same as VAR_SAMP."),
	agg("aggregate", "VAR_POP", "VAR_POP([DISTINCT] number)", "The variance of the population, in the type AVG has."),
	agg("aggregate", "VAR_SAMP", "VAR_SAMP([DISTINCT] number)", "The variance of a sample, in the type AVG has; NULL of a single row."),
	agg("over", "CUME_DIST", "CUME_DIST() OVER (…)", "The fraction of rows up to the row."),
	agg("over", "DENSE_RANK", "DENSE_RANK() OVER (…)", "The rank of the row without gaps behind ties."),
	agg("over", "LAG", "LAG(value [, offset [, default]]) OVER (…)", "The value some rows before the row."),
	agg("over", "LEAD", "LEAD(value [, offset [, default]]) OVER (…)", "The value some rows behind the row."),
	agg("over", "NTILE", "NTILE(n) OVER (…)", "The number of the row's bucket of n."),
	agg("over", "PERCENT_RANK", "PERCENT_RANK() OVER (…)", "The rank as a fraction."),
	agg("over", "RANK", "RANK() OVER (…)", "The rank of the row, with gaps behind ties."),
	agg("over", "ROW_NUMBER", "ROW_NUMBER() OVER (…)", "The number of the row."),
}
