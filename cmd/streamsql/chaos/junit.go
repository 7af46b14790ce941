package chaos

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The format of JUnit's reports, as far as CI systems read it: https://github.com/testmoapp/junitxml.
type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Time       string          `xml:"time,attr"` // seconds
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report for CI systems: a test case for each trial, and one for the check as a whole, which fails where the
// command's exit code is not 0.
func (rep *Report) JUnit(out io.Writer) error {
	s := junitSuite{Name: "streamsql chaos " + strings.Join(rep.Jobs, ", "), Time: fmt.Sprintf("%.3f", rep.Seconds)}
	s.Properties = []junitProperty{{"seed", fmt.Sprint(rep.Seed)}, {"id", rep.ID}, {"verdict", rep.Verdict}, {"injected", fmt.Sprint(rep.Injected)},
		{"bound_95", fmt.Sprint(rep.Bound)}}
	for _, x := range rep.NotCovered {
		s.Properties = append(s.Properties, junitProperty{"not_covered", x})
	}
	for i := range rep.Trials {
		t := &rep.Trials[i]
		c := junitCase{Class: "streamsql.chaos." + t.Fault, Name: fmt.Sprintf("trial %d: %s", t.N, strings.Join(t.Where, "; ")), Time: fmt.Sprintf("%.3f", float64(t.Millis)/1000)}
		switch t.Verdict {
		case Violated:
			c.Failure = &junitProblem{t.line(), t.text()}
		case Inconclusive:
			c.Error = &junitProblem{t.line(), t.text()}
		}
		s.Cases = append(s.Cases, c)
	}
	whole := junitCase{Class: "streamsql.chaos", Name: "the check as a whole", Time: s.Time}
	switch rep.Verdict {
	case Violated:
		whole.Failure = &junitProblem{rep.Conclusion(), ""}
	case Inconclusive:
		whole.Error = &junitProblem{rep.Conclusion(), rep.Hint}
	}
	s.Cases = append(s.Cases, whole)
	for _, c := range s.Cases {
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
	var text strings.Builder
	if err := rep.Text(&text); err != nil {
		return err
	}
	s.Out = text.String()
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(out)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
