package streamsql_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/lint"
)

// found are the codes of what a Checker finds in a script, and in an error that ends it, each once.
func found(t *testing.T, texts ...string) (codes []string, report *streamsql.CheckReport) {
	t.Helper()
	eng, err := streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	c := eng.Checker(streamsql.CheckOptions{})
	for _, text := range texts {
		r, err := c.Check(context.Background(), "job.sql", text)
		report = r
		for _, f := range r.Findings {
			codes = append(codes, f.Code)
			if !f.Pos.Known() || f.Message == "" || f.Hint == "" {
				t.Errorf("%s: place %q, message %q, hint %q", f.Code, f.Pos, f.Message, f.Hint)
			}
		}
		if err != nil {
			codes = append(codes, lint.FromError(err, err.Error()).Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes), report
}

// Goal: every rule finds its fault and nothing else, and what the page says to write instead is clean. Method: run the
// examples of the registry.
func TestLintExamples(t *testing.T) {
	for i := range lint.Rules {
		r := &lint.Rules[i]
		if r.Live {
			continue
		}
		t.Run(r.Code, func(t *testing.T) {
			if got, _ := found(t, r.Bad); !slices.Equal(got, []string{r.Code}) {
				t.Errorf("the bad example gives %q", got)
			}
			got, _ := found(t, r.Good)
			if r.Code == "SSQL-W502" {
				// Without state nothing is counted twice; that the job is at least once is its own affair.
				got = slices.DeleteFunc(got, func(c string) bool { return c == "SSQL-W106" })
			}
			if len(got) > 0 {
				t.Errorf("the good example gives %q", got)
			}
		})
	}
}

// Goal: the registry can be relied on: codes are well formed, used once and in order, and every text is there.
func TestLintRegistry(t *testing.T) {
	code, last := regexp.MustCompile(`^SSQL-[EW][1-6][0-9]{2}$`), ""
	for _, r := range lint.Rules {
		if number := r.Code[len(r.Code)-3:]; !code.MatchString(r.Code) || number <= last {
			t.Errorf("%s is not a code that follows %s", r.Code, last)
		} else {
			last = number
		}
		if r.Name == "" || r.Title == "" || r.Why == "" || r.Fix == "" || !r.Live && (r.Bad == "" || r.Good == "") || r.Live && r.Bad != "" {
			t.Errorf("%s is incomplete", r.Code)
		}
		if strings.ContainsAny(r.Name, " ") {
			t.Errorf("%s: name %q", r.Code, r.Name)
		}
	}
}

// Goal: a job with an error of the rules does not start, whoever starts it.
func TestLintErrorsAreRefused(t *testing.T) {
	for i := range lint.Rules {
		r := &lint.Rules[i]
		if r.Live || r.Severity() != lint.Error || r.Code == "SSQL-E406" { // the second job is refused by the broker
			continue
		}
		eng, err := streamsql.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := eng.Script(r.Bad)
		for err == nil {
			_, err = s.Next(context.Background())
		}
		if got := lint.FromError(err, err.Error()).Code; got != r.Code {
			t.Errorf("%s: running the bad example gives %s", r.Code, got)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Goal: a finding stands where the fault is written. Method: options and settings in one script, the INSERT in another.
func TestLintPlaces(t *testing.T) {
	_, r := found(t, `SET 'execution.checkpointing.interval' = '100 ms';
CREATE TABLE a (id INT) WITH ('connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
  'properties.isolation.level' = 'read_uncommitted');
CREATE TABLE b (id INT) WITH ('connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');`,
		"INSERT INTO b SELECT id FROM a;")
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Code+" "+f.File+" "+f.Pos.String())
	}
	slices.Sort(got)
	if want := []string{"SSQL-W201 job.sql 3:3", "SSQL-W301 job.sql 1:5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
