package expr

// op is an operator of the reference; usage is what its examples are filed under.
func op(group, name, usage, doc string) Entry {
	return Entry{Name: name, Group: group, Usage: usage, Doc: doc, Kind: OperatorEntry}
}

// operators are the expressions with a syntax of their own.
var operators = []Entry{
	op("comparison", "=", "a = b", "Whether a equals b; UNKNOWN if one is NULL. Strings are compared without padding."),
	op("comparison", "<>", "a <> b", "Whether a differs from b. Also written !=."),
	op("comparison", "<", "a < b", "Whether a is less than b. Strings are ordered by code points."),
	op("comparison", "<=", "a <= b", "Whether a is less than or equal to b."),
	op("comparison", ">", "a > b", "Whether a is greater than b."),
	op("comparison", ">=", "a >= b", "Whether a is greater than or equal to b."),
	op("comparison", "IS NULL", "a IS NULL", "Whether a is NULL."),
	op("comparison", "IS NOT NULL", "a IS NOT NULL", "Whether a is not NULL."),
	op("comparison", "IS DISTINCT FROM", "a IS DISTINCT FROM b", "As a <> b, where NULLs are equal to each other and to nothing else."),
	op("comparison", "IS NOT DISTINCT FROM", "a IS NOT DISTINCT FROM b", "As a = b, where NULLs are equal to each other and to nothing else."),
	op("comparison", "BETWEEN", "a BETWEEN [ASYMMETRIC | SYMMETRIC] b AND c", "a >= b AND a <= c; with SYMMETRIC the bounds may stand in either order."),
	op("comparison", "NOT BETWEEN", "a NOT BETWEEN [ASYMMETRIC | SYMMETRIC] b AND c", "The opposite of BETWEEN."),
	op("comparison", "LIKE", "string LIKE pattern [ESCAPE char]", "Whether the whole string fits the pattern, in which % stands for any text and _ for one character. Nothing escapes them unless ESCAPE says so."),
	op("comparison", "NOT LIKE", "string NOT LIKE pattern [ESCAPE char]", "The opposite of LIKE."),
	op("comparison", "SIMILAR TO", "string SIMILAR TO pattern [ESCAPE char]", "LIKE with alternatives |, repetitions * + ? {n,m}, groups and classes such as [a-z] and [:DIGIT:]."),
	op("comparison", "NOT SIMILAR TO", "string NOT SIMILAR TO pattern [ESCAPE char]", "The opposite of SIMILAR TO."),
	op("comparison", "IN", "a IN (b, c, …)", "Whether a equals a value of the list; UNKNOWN when it equals none and one is NULL."),
	op("comparison", "NOT IN", "a NOT IN (b, c, …)", "The opposite of IN."),

	op("comparison", "IN", "a IN (query)", "Whether a equals a value of the query's only column; also NOT IN."),
	op("comparison", "EXISTS", "EXISTS (query)", "Whether the query has a row; also NOT EXISTS. It may use the columns of the query around it."),

	op("logical", "OR", "a OR b", "TRUE if one is TRUE, FALSE if both are FALSE, else UNKNOWN."),
	op("logical", "AND", "a AND b", "FALSE if one is FALSE, TRUE if both are TRUE, else UNKNOWN."),
	op("logical", "NOT", "NOT a", "The opposite; UNKNOWN stays UNKNOWN."),
	op("logical", "IS TRUE", "a IS TRUE", "Whether a is TRUE; never UNKNOWN."),
	op("logical", "IS NOT TRUE", "a IS NOT TRUE", "Whether a is FALSE or UNKNOWN."),
	op("logical", "IS FALSE", "a IS FALSE", "Whether a is FALSE."),
	op("logical", "IS NOT FALSE", "a IS NOT FALSE", "Whether a is TRUE or UNKNOWN."),
	op("logical", "IS UNKNOWN", "a IS UNKNOWN", "Whether a is UNKNOWN, that is NULL."),
	op("logical", "IS NOT UNKNOWN", "a IS NOT UNKNOWN", "Whether a is TRUE or FALSE."),

	op("arithmetic", "+", "+ number", "The number itself."),
	op("arithmetic", "-", "- number", "The negative number; that of the smallest integer is itself."),
	op("arithmetic", "+", "a + b", "The sum. Integers wrap around; a DECIMAL that does not fit is NULL. Also time + interval and interval + interval."),
	op("arithmetic", "-", "a - b", "The difference."),
	op("arithmetic", "*", "a * b", "The product. Also interval * number."),
	op("arithmetic", "/", "a / b", "The quotient, of integers cut toward zero. Division by zero is an error of the row, of FLOAT and DOUBLE infinite."),
	op("arithmetic", "%", "a % b", "The remainder, with the sign of a and, of integers, the type of b."),

	op("string", "||", "a || b", "The strings one after the other; NULL if one is NULL."),

	op("temporal", "DATE", "DATE 'yyyy-MM-dd'", "A date."),
	op("temporal", "TIME", "TIME 'HH:mm:ss[.SSS]'", "A time of day; its type has as many fraction digits as are written."),
	op("temporal", "TIMESTAMP", "TIMESTAMP 'yyyy-MM-dd HH:mm:ss[.fraction]'", "A date and time; its type has as many fraction digits as are written, at most 9."),
	op("temporal", "INTERVAL", "INTERVAL 'value' unit [TO unit]", "A number of months (YEAR, QUARTER, MONTH) or of milliseconds (WEEK, DAY, HOUR, MINUTE, SECOND). A number of more than two digits needs a precision: DAY(3)."),
	op("temporal", "-", "(time - time) unit [TO unit]", "The interval between two times, in complete months or in milliseconds."),
	op("temporal", "OVERLAPS", "(start, end) OVERLAPS (start, end)", "Whether two periods have a moment in common, their ends included. An end may be an interval behind the start."),

	op("conditional", "CASE", "CASE a WHEN b THEN x … [ELSE y] END", "The x of the first b that equals a, else y or NULL. WHEN takes several values: WHEN 1, 2 THEN."),
	op("conditional", "CASE", "CASE WHEN condition THEN x … [ELSE y] END", "The x of the first condition that is TRUE, else y or NULL. What is not taken is not evaluated."),

	op("conversion", "CAST", "CAST(value AS type)", "The value in another type. A value without a form in that type is an error of the row, and of the query when it is a constant."),
	op("conversion", "TRY_CAST", "TRY_CAST(value AS type)", "CAST that gives NULL where it would fail."),

	op("collection", "[]", "array[index]", "The element at an index that counts from 1; NULL outside."),
	op("collection", "[]", "map[key]", "The value of a key; NULL when there is none."),

	op("variant", "[]", "variant[index], variant['key']", "An element, counted from 1, or the value of a key as a VARIANT; NULL when there is none."),

	op("JSON", "IS JSON", "string IS [NOT] JSON [VALUE | SCALAR | ARRAY | OBJECT]", "Whether the string is JSON text of that kind."),

	op("construction", "ROW", "ROW(a, …) or (a, b, …)", "A row of values."),
	op("construction", "ARRAY", "ARRAY[a, …]", "An array of values in their common type."),
	op("construction", "MAP", "MAP[key, value, …]", "A map; of equal keys the last one counts."),

	op("access", ".", "row.field", "A field of a row; NULL of a NULL row."),
	op("access", ".*", "row.*", "All fields of a row, as columns of a SELECT list."),
}
