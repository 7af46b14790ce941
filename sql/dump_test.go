package sql

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// dump prints a tree with every operator in parentheses and every field that is not zero, positions left out.
// Expressions are terse: (+ a (* b 1)).
func dump(x any) string {
	var sb strings.Builder
	dumpValue(&sb, reflect.ValueOf(x))
	return sb.String()
}

// dumpExpr writes the terse form of e and reports whether it has one.
func dumpExpr(sb *strings.Builder, e Expr) bool {
	list := func(head string, args ...any) {
		sb.WriteString(head)
		for i, a := range args {
			if i > 0 {
				sb.WriteString(" ")
			}
			dumpValue(sb, reflect.ValueOf(a))
		}
		sb.WriteString(")")
	}
	switch x := e.(type) {
	case *Ident:
		sb.WriteString(x.Path.Plain())
	case *Literal:
		kind := [...]string{LitDecimal: "dec", LitApprox: "approx", LitDate: "date", LitTime: "time", LitTimestamp: "timestamp", LitBinary: "hex"}[x.Kind]
		switch {
		case x.Kind == LitString || kind != "":
			sb.WriteString(kind + QuoteString(x.Text))
		default:
			sb.WriteString(x.Text)
		}
	case *Binary:
		list("("+x.Op+" ", x.L, x.R)
	case *Unary:
		list("("+x.Op+" ", x.X)
	case *Is:
		list("(is "+not(x.Not)+x.What+" ", x.X)
	case *Between:
		head := "(" + not(x.Not) + "between "
		if x.Symmetric {
			head += "symmetric "
		}
		list(head, x.X, x.Lo, x.Hi)
	case *In:
		if x.Query != nil {
			list("("+not(x.Not)+"in ", x.X, x.Query)
		} else {
			list("("+not(x.Not)+"in ", x.X, x.List)
		}
	case *Interval:
		fmt.Fprintf(sb, "interval<%d %s>", x.Value, x.Type)
	case *Item:
		dumpValue(sb, reflect.ValueOf(x.X))
		sb.WriteString("[")
		dumpValue(sb, reflect.ValueOf(x.Index))
		sb.WriteString("]")
	case *FieldAccess:
		dumpValue(sb, reflect.ValueOf(x.X))
		sb.WriteString(".:" + x.Name.Text)
	case *Call:
		c := *x
		c.Name, c.Args, c.Place = nil, nil, Place{}
		if len(x.Name) > 1 || !reflect.ValueOf(c).IsZero() {
			return false
		}
		args := make([]any, len(x.Args))
		for i := range args {
			args[i] = x.Args[i]
		}
		list(x.Name.Plain()+"(", args...)
	default:
		return false
	}
	return true
}

func dumpValue(sb *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			sb.WriteString("nil")
			return
		}
		if e, ok := v.Interface().(Expr); ok {
			if dumpExpr(sb, e) {
				return
			}
		}
		dumpValue(sb, v.Elem())
	case reflect.Slice:
		if p, ok := v.Interface().(Path); ok {
			sb.WriteString(p.Plain())
			return
		}
		sb.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				sb.WriteString(" ")
			}
			dumpValue(sb, v.Index(i))
		}
		sb.WriteString("]")
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case Name:
			sb.WriteString(x.Text)
			return
		case types.Type:
			sb.WriteString("<" + x.String() + ">")
			return
		}
		dumpStruct(sb, v, true)
	case reflect.String:
		fmt.Fprintf(sb, "%q", v.String())
	default:
		fmt.Fprint(sb, v.Interface())
	}
}

func dumpStruct(sb *strings.Builder, v reflect.Value, name bool) {
	if name {
		sb.WriteString(v.Type().Name() + "{")
	}
	sep := ""
	for i := range v.NumField() {
		f := v.Type().Field(i)
		fv := v.Field(i)
		if f.Type == reflect.TypeFor[diag.Pos]() || f.Type == reflect.TypeFor[Place]() || f.Name == "ExprText" || f.Name == "QueryText" || fv.IsZero() {
			continue
		}
		sb.WriteString(sep)
		sep = " "
		if f.Anonymous {
			dumpStruct(sb, fv, false)
			continue
		}
		sb.WriteString(f.Name + ":")
		dumpValue(sb, fv)
	}
	if name {
		sb.WriteString("}")
	}
}
