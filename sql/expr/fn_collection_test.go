package expr

import "testing"

func TestCollectionFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"CARDINALITY(ARRAY[1, 2])", "2"}, {"CARDINALITY(MAP['a', 1])", "1"}, {"CARDINALITY(CAST(NULL AS ARRAY<INT>))", "NULL"}, {"CARDINALITY(1)", "plan:CARDINALITY cannot be called"},
		{"ELEMENT(ARRAY[7])", "7"}, {"ELEMENT(ARRAY[1, 2])", "error:has 2 elements"}, {"ELEMENT(ARRAY_REMOVE(ARRAY[1], 1))", "NULL"},
		{"ARRAY_CONTAINS(ARRAY[1, 2], 2)", "TRUE"}, {"ARRAY_CONTAINS(ARRAY[1, NULL], NULL)", "TRUE"}, {"ARRAY_CONTAINS(ARRAY[1, 2], NULL)", "FALSE"}, {"ARRAY_CONTAINS(CAST(NULL AS ARRAY<INT>), 1)", "NULL"},
		{"ARRAY_CONTAINS(ARRAY[1], 'a')", "plan:has no elements of type"}, {"ARRAY_CONTAINS(ARRAY[1, 2], 2.5)", "FALSE"}, {"ARRAY_CONTAINS(ARRAY['ab'], 'abc')", "FALSE"},
		{"ARRAY_POSITION(ARRAY[1, 2, 2], 2)", "2"}, {"ARRAY_POSITION(ARRAY[1], 9)", "0"}, {"ARRAY_POSITION(ARRAY[1], CAST(NULL AS INT))", "NULL"}, {"ARRAY_POSITION(ARRAY[MAP[1, 2, 3, 4]], MAP[3, 4, 1, 2])", "1"},
		{"ARRAY_APPEND(ARRAY[1], 2)", "[1, 2] :: ARRAY<INT NOT NULL> NOT NULL"}, {"ARRAY_APPEND(ARRAY[1], NULL)", "[1, NULL]"}, {"ARRAY_PREPEND(ARRAY['b'], 'a')", "[a, b]"}, {"ARRAY_APPEND(CAST(NULL AS ARRAY<INT>), 1)", "NULL"},
		{"ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", "[2]"}, {"ARRAY_REMOVE(ARRAY[1, NULL], NULL)", "[1]"}, {"ARRAY_REMOVE(ARRAY[1], 5)", "[1]"},
		{"ARRAY_DISTINCT(ARRAY[1, NULL, 1, NULL, 2])", "[1, NULL, 2]"}, {"ARRAY_UNION(ARRAY[1, 2], ARRAY[2, NULL])", "[1, 2, NULL]"}, {"ARRAY_EXCEPT(ARRAY[1, 2, 2], ARRAY[1])", "[2]"}, {"ARRAY_INTERSECT(ARRAY[1, 1, 2], ARRAY[1, NULL])", "[1]"},
		{"ARRAY_CONCAT(ARRAY[1], ARRAY[2, NULL], ARRAY[3])", "[1, 2, NULL, 3]"}, {"ARRAY_CONCAT(ARRAY[1], CAST(NULL AS ARRAY<INT>))", "NULL"}, {"ARRAY_UNION(ARRAY[1], ARRAY['a'])", "plan:no common type"}, {"ARRAY_REVERSE(ARRAY[1, 2, NULL])", "[NULL, 2, 1]"},
		{"ARRAY_SLICE(ARRAY[1, 2, 3, 4, 5], -3)", "[3, 4, 5]"}, {"ARRAY_SLICE(ARRAY[1, 2, 3, 4, 5], -123, -231)", "[]"}, {"ARRAY_SLICE(ARRAY[1, 2], 1, 0)", "[1]"}, {"ARRAY_SLICE(ARRAY[1, 2, 3], 2, 9)", "[2, 3]"}, {"ARRAY_SLICE(ARRAY[1], 5)", "[]"}, {"ARRAY_SLICE(ARRAY[1, 2], 1, CAST(NULL AS INT))", "NULL"},
		{"ARRAY_SORT(ARRAY[2, NULL, 1])", "[NULL, 1, 2]"}, {"ARRAY_SORT(ARRAY[1, 2, 2, NULL], FALSE)", "[2, 2, 1, NULL]"}, {"ARRAY_SORT(ARRAY[1, NULL], TRUE, FALSE)", "[1, NULL]"}, {"ARRAY_SORT(ARRAY['é', 'z'])", "[z, é]"}, {"ARRAY_SORT(ARRAY[1], CAST(NULL AS BOOLEAN))", "NULL"},
		{"ARRAY_SORT(ARRAY[ARRAY[1]])", "plan:have no order"}, {"ARRAY_SORT(ARRAY[CAST('NaN' AS DOUBLE), 1e0])", "[1.0, NaN]"},
		{"ARRAY_MAX(ARRAY[1, NULL, 3])", "3"}, {"ARRAY_MIN(ARRAY[1.5, 0.5])", "0.5"}, {"ARRAY_MAX(ARRAY_REMOVE(ARRAY[1], 1))", "NULL"}, {"ARRAY_MAX(ARRAY[TRUE])", "plan:have no order"}, {"ARRAY_MAX(ARRAY[CAST(1 AS DECIMAL(30,2)), 2.5])", "2.50"},
		{"ARRAY_JOIN(ARRAY[NULL, '1', NULL], '+')", "1"}, {"ARRAY_JOIN(ARRAY[NULL, '1', NULL], '+', '')", "+1+"}, {"ARRAY_JOIN(ARRAY['a', 'b'], CAST(NULL AS STRING))", "NULL"}, {"ARRAY_JOIN(ARRAY[1], ',')", "plan:the array is of type"},
		{"MAP_KEYS(MAP['a', 1, 'b', 2])", "[a, b]"}, {"MAP_VALUES(MAP['a', 1, 'b', 2])", "[1, 2]"}, {"MAP_ENTRIES(MAP['a', 1])", "[(a, 1)]"}, {"MAP_KEYS(CAST(NULL AS MAP<INT, INT>))", "NULL"},
		{"MAP_FROM_ARRAYS(ARRAY['a', 'b', 'a'], ARRAY[1, 2, 3])", "{a=3, b=2}"}, {"MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1, 2])", "error:1 keys and 2 values"}, {"MAP_UNION(MAP['a', 1], MAP['a', 2, 'b', 3])", "{a=2, b=3}"},
		{"MAP_UNION(MAP['a', 1], CAST(NULL AS MAP<STRING, INT>))", "NULL"},
	})
}
