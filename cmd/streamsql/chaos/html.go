package chaos

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"seconds": func(ms int64) float64 { return float64(ms) / 1000 },
}).Parse(page))

// HTML writes the report as a page that needs nothing else.
func (rep *Report) HTML(out io.Writer) error { return pageTemplate.Execute(out, rep) }
