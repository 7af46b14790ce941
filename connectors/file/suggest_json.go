package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// shape is the type of the values seen in one place of JSON documents.
type shape struct {
	typ    string // of a scalar; "" = only NULL so far, "ARRAY", "ROW"
	elem   *shape
	fields []*field
}

type field struct {
	name string
	*shape
}

var (
	isoZoned = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$`)
	isoLocal = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?$`)
)

// sketchJSON guesses the columns of a file with one JSON object a line: nil when it is none.
func sketchJSON(text []byte) (columns []column, options []string) {
	all := &shape{}
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := all.see(d); err != nil || all.typ != "ROW" {
			return nil, nil
		}
	}
	if all.typ != "ROW" || len(all.fields) == 0 {
		return nil, nil
	}
	options = []string{"'format' = 'json'"}
	if all.has(isoTypes) && !all.has([]string{"TIMESTAMP(3)"}) {
		options = append(options, "'json.timestamp-format.standard' = 'ISO-8601'")
		all.rename(map[string]string{isoTypes[0]: "TIMESTAMP_LTZ(3)", isoTypes[1]: "TIMESTAMP(3)"})
	} else {
		all.rename(map[string]string{isoTypes[0]: "STRING", isoTypes[1]: "STRING"}) // a table has one notation
	}
	for _, f := range all.fields {
		columns = append(columns, column{f.name, f.text()})
	}
	return columns, options
}

var isoTypes = []string{"iso zoned", "iso local"}

// see widens s so that it holds the next value of d too.
func (s *shape) see(d *json.Decoder) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '{' {
			return s.object(d)
		}
		return s.array(d)
	case json.Number:
		s.scalar(cellType(v.String()))
	case bool:
		s.scalar("BOOLEAN")
	case string:
		s.scalar(textType(v))
	}
	return nil
}

func textType(v string) string {
	switch {
	case isoZoned.MatchString(v):
		return isoTypes[0]
	case isoLocal.MatchString(v):
		return isoTypes[1]
	case timeCell.MatchString(v), dateCell.MatchString(v):
		return cellType(v)
	}
	return "STRING"
}

func (s *shape) scalar(typ string) { s.typ = merged(s.typ, typ) }

var errMixed = errors.New("closing bracket expected")

func (s *shape) object(d *json.Decoder) error {
	s.scalar("ROW")
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		i := slices.IndexFunc(s.fields, func(f *field) bool { return f.name == name })
		if i < 0 {
			i = len(s.fields)
			s.fields = append(s.fields, &field{name, &shape{}})
		}
		if err := s.fields[i].see(d); err != nil {
			return err
		}
	}
	return closing(d)
}

func (s *shape) array(d *json.Decoder) error {
	s.scalar("ARRAY")
	if s.elem == nil {
		s.elem = &shape{}
	}
	for d.More() {
		if err := s.elem.see(d); err != nil {
			return err
		}
	}
	return closing(d)
}

func closing(d *json.Decoder) error {
	tok, err := d.Token()
	if _, ok := tok.(json.Delim); err == nil && !ok {
		err = errMixed
	}
	return err
}

// has reports one of types anywhere in s.
func (s *shape) has(types []string) bool {
	if slices.Contains(types, s.typ) || s.elem != nil && s.typ == "ARRAY" && s.elem.has(types) {
		return true
	}
	return s.typ == "ROW" && slices.ContainsFunc(s.fields, func(f *field) bool { return f.has(types) })
}

func (s *shape) rename(to map[string]string) {
	if t := to[s.typ]; t != "" {
		s.typ = t
	}
	if s.elem != nil {
		s.elem.rename(to)
	}
	for _, f := range s.fields {
		f.rename(to)
	}
}

// text is the SQL type.
func (s *shape) text() string {
	switch s.typ {
	case "":
		return "STRING"
	case "ARRAY":
		return "ARRAY<" + s.elem.text() + ">"
	case "ROW":
		if len(s.fields) == 0 {
			return "MAP<STRING, STRING>"
		}
		var parts []string
		for _, f := range s.fields {
			parts = append(parts, quoted(f.name)+" "+f.text())
		}
		return "ROW<" + strings.Join(parts, ", ") + ">"
	}
	return s.typ
}
