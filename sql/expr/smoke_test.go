package expr

import "testing"

func TestSmoke(t *testing.T) {
	a, _ := NewIntLiteral("1")
	b, _ := NewDecimalLiteral("2.5")
	e, err := NewBinary("+", a, b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Fold(e, Session{})
	if err != nil || f.String() != "3.5" {
		t.Fatal(f, err)
	}
}
