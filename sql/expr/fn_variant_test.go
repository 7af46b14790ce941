package expr

import "testing"

func TestVariant(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{`PARSE_JSON('{"b": 1, "a": [true, null, "x\u0041"]}')`, `{"a":[true,null,"xA"],"b":1} :: VARIANT NOT NULL`},
		{`PARSE_JSON(' 1.50 ')`, "1.5"}, {`PARSE_JSON('1e2')`, "100.0"}, {`PARSE_JSON('-0')`, "0"}, {`PARSE_JSON('-0.00')`, "0"}, {`PARSE_JSON('null')`, "null"},
		{`PARSE_JSON('12345678901234567890123456789012345678')`, "12345678901234567890123456789012345678"},
		{`PARSE_JSON('123456789012345678901234567890123456789')`, "1.2345678901234568E38"},
		{`PARSE_JSON('1e400')`, "error:'1e400' is no JSON"}, {`TRY_PARSE_JSON('1e400')`, "NULL"}, {`PARSE_JSON('')`, "error:is no JSON"},
		{`PARSE_JSON('{"a":1} x')`, "error:is no JSON"}, {`PARSE_JSON('[1] []')`, "error:is no JSON"}, {`PARSE_JSON('"]" ')`, `"]"`}, {`PARSE_JSON('"a" "b"')`, "error:is no JSON"},
		{`PARSE_JSON('{"a":1,"a":2}')`, "error:is no JSON"}, {`PARSE_JSON('{"a":1,"a":2}', TRUE)`, `{"a":2}`}, {`TRY_PARSE_JSON('{"a":1,"a":2}')`, "NULL"},
		{`PARSE_JSON('{"a":{"a":1}}')`, `{"a":{"a":1}}`}, {"PARSE_JSON(CAST(NULL AS STRING))", "NULL :: VARIANT"}, {"PARSE_JSON(1)", "plan:cannot be called"},
		{`PARSE_JSON('[1, 2]')[2]`, "2 :: VARIANT"}, {`PARSE_JSON('[1, 2]')[0]`, "NULL"}, {`PARSE_JSON('[1, 2]')[3]`, "NULL"}, {`PARSE_JSON('[1, 2]')['a']`, "NULL"},
		{`PARSE_JSON('{"a":{"b":[7]}}')['a']['b'][1]`, "7"}, {`PARSE_JSON('{"a":null}')['a']`, "null"}, {`PARSE_JSON('{"a":1}')[1]`, "NULL"}, {`PARSE_JSON('5')['a']`, "NULL"},
		{`PARSE_JSON('[1]')[1.5]`, "plan:index of a VARIANT"},
		{"CAST(PARSE_JSON('40000') AS SMALLINT)", "-25536 :: SMALLINT NOT NULL"}, {"CAST(PARSE_JSON('1e20') AS INT)", "2147483647"}, {"CAST(PARSE_JSON('3.9') AS INT)", "3"},
		{"CAST(PARSE_JSON('-3.9') AS BIGINT)", "-3"}, {"CAST(PARSE_JSON('9223372036854775808') AS BIGINT)", "-9223372036854775808"},
		{"CAST(PARSE_JSON('2.25') AS DOUBLE)", "2.25"}, {"CAST(PARSE_JSON('2.25') AS DECIMAL(5,1))", "2.3"}, {"CAST(PARSE_JSON('1e2') AS DECIMAL(5,1))", "100.0"},
		{"CAST(PARSE_JSON('12345') AS DECIMAL(3,0))", "NULL"}, {"CAST(PARSE_JSON('true') AS BOOLEAN)", "TRUE"}, {"CAST(PARSE_JSON('1') AS BOOLEAN)", "error:cannot cast '1' to BOOLEAN"},
		{`CAST(PARSE_JSON('"1"') AS INT)`, "error:cannot cast"}, {`TRY_CAST(PARSE_JSON('"1"') AS INT)`, "NULL :: INT"}, {"CAST(PARSE_JSON('null') AS INT)", "NULL"},
		{"CAST(PARSE_JSON('1') AS STRING)", "plan:cannot cast VARIANT to STRING"}, {"CAST(PARSE_JSON('[1]') AS ARRAY<INT>)", "plan:cannot cast"},
		{"PARSE_JSON('1') = PARSE_JSON('1')", "plan:cannot compare VARIANT"}, {"COALESCE(TRY_PARSE_JSON('{'), PARSE_JSON('[]'))", "[] :: VARIANT NOT NULL"},
		{`JSON_STRING(PARSE_JSON('{"b":1, "a":"é"}'))`, `{"a":"é","b":1}`}, {`JSON_OBJECT('k', PARSE_JSON('[1]'))`, `{"k":[1]}`},
		{`JSON_UNQUOTE(JSON_STRING(PARSE_JSON('{"a":"x"}')['a']))`, "x"}, {"TYPEOF(PARSE_JSON('1'))", "VARIANT NOT NULL"},
	})
}
