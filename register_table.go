package streamsql

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// TableFunc is a function that makes rows of one row, made of a Go function by TableFunc1, TableFunc2 or TableFunc3. It
// stands in FROM: SELECT t.id, w.word FROM t, LATERAL TABLE(WORDS(t.line)) AS w(word).
type TableFunc struct {
	f   *expr.TableFunc
	err error
}

func (f TableFunc) register(r *expr.Registry) error {
	if f.err != nil {
		return f.err
	}
	return r.RegisterTable(f.f)
}

// TableFunc1 makes a table function of one argument. For each row of its input the Go function calls emit for every
// row it makes, before it returns; none is fine. R is a Value, for one column called EXPR$0, or a struct: its exported
// fields are the columns, called as the tag `sql:"name"` says or as the field, and of a type of Value, or a pointer to
// one that is NULL when nil. A NULL argument gives no rows without a call; an error fails the job, with the row it
// happened at.
func TableFunc1[A Value, R any](name string, f func(a A, emit func(R)) error) TableFunc {
	return tableFunc[R](name, []types.Type{typeOf[A]()}, func() func(args []*batch.Vec, r int, emit func(R)) error {
		get := getter[A]()
		return func(args []*batch.Vec, r int, emit func(R)) error { return f(get(args[0], r), emit) }
	})
}

// TableFunc2 is TableFunc1 for two arguments.
func TableFunc2[A, B Value, R any](name string, f func(a A, b B, emit func(R)) error) TableFunc {
	return tableFunc[R](name, []types.Type{typeOf[A](), typeOf[B]()}, func() func(args []*batch.Vec, r int, emit func(R)) error {
		get0, get1 := getter[A](), getter[B]()
		return func(args []*batch.Vec, r int, emit func(R)) error { return f(get0(args[0], r), get1(args[1], r), emit) }
	})
}

// TableFunc3 is TableFunc1 for three arguments.
func TableFunc3[A, B, C Value, R any](name string, f func(a A, b B, c C, emit func(R)) error) TableFunc {
	return tableFunc[R](name, []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}, func() func(args []*batch.Vec, r int, emit func(R)) error {
		get0, get1, get2 := getter[A](), getter[B](), getter[C]()
		return func(args []*batch.Vec, r int, emit func(R)) error {
			return f(get0(args[0], r), get1(args[1], r), get2(args[2], r), emit)
		}
	})
}

// tableFunc makes a table function of a maker of callers.
func tableFunc[R any](name string, params []types.Type, caller func() func([]*batch.Vec, int, func(R)) error) TableFunc {
	name = strings.ToUpper(name)
	columns, appendRow, err := rowOf[R](name)
	usage := usageOf(name, params)
	return TableFunc{err: err, f: &expr.TableFunc{
		Name: name, Category: userCategory, Usage: usage, Doc: "Registered by the program.",
		Bind: func(c *expr.CallSite) (expr.BoundTable, error) {
			args, err := expr.UserArgs(name, usage, params, c.Args)
			return expr.BoundTable{Args: args, Columns: columns, NewEval: func(expr.Session) expr.TableEval {
				return tableEval(name, caller(), appendRow)
			}}, err
		},
	}}
}

func tableEval[R any](name string, call func([]*batch.Vec, int, func(R)) error, appendRow func(*batch.Builder, *R)) expr.TableEval {
	var out *batch.Builder
	emit := func(row R) {
		appendRow(out, &row)
		out.RowDone()
	}
	return func(args []*batch.Vec, r int, to *batch.Builder) *diag.Error {
		for _, a := range args {
			if a.IsNull(r) {
				return nil
			}
		}
		out = to
		if err := call(args, r, emit); err != nil {
			return diag.New(diag.Data, diag.Pos{}, "function %s", name).Wrap(err)
		}
		return nil
	}
}

// rowOf gives the columns of R and what appends one to a builder.
func rowOf[R any](name string) ([]types.Column, func(*batch.Builder, *R), error) {
	t := reflect.TypeFor[R]()
	if typ, add := fieldAppender(t, 0); add != nil && t.Kind() != reflect.Pointer {
		return []types.Column{{Name: "EXPR$0", Type: typ.NotNull()}}, func(b *batch.Builder, r *R) { add(b.Cols[0], unsafe.Pointer(r)) }, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, nil, rowTypeError(name, t, "it is neither a type of Value nor a struct")
	}
	var columns []types.Column
	var adds []func(*batch.ColBuilder, unsafe.Pointer)
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		typ, add := fieldAppender(f.Type, f.Offset)
		if add == nil {
			return nil, nil, rowTypeError(name, t, fmt.Sprintf("field %s is a %s", f.Name, f.Type))
		}
		c := types.Column{Name: f.Name, Type: typ}
		if tag := f.Tag.Get("sql"); tag != "" {
			c.Name = tag
		}
		columns, adds = append(columns, c), append(adds, add)
	}
	if len(columns) == 0 {
		return nil, nil, rowTypeError(name, t, "it has no exported fields")
	}
	return columns, func(b *batch.Builder, r *R) {
		for i, add := range adds {
			add(b.Cols[i], unsafe.Pointer(r))
		}
	}, nil
}

func rowTypeError(name string, t reflect.Type, why string) error {
	return diag.New(diag.Semantic, diag.Pos{}, "function %s cannot make rows of Go type %s", name, t).WithDetail("%s", why).
		WithHint("use bool, int64, float64, string, []byte or time.Time, or a struct whose exported fields are of these types or pointers to them")
}

// fieldAppender gives the SQL type of a Go type and what appends the value at an offset of a row; nil for a type that
// is no Value and no pointer to one. It is chosen once, so that rows need no reflection.
func fieldAppender(t reflect.Type, offset uintptr) (types.Type, func(*batch.ColBuilder, unsafe.Pointer)) {
	nullable := t.Kind() == reflect.Pointer
	if nullable {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[bool]():
		return fieldOf(nullable, offset, (*batch.ColBuilder).AppendBool)
	case reflect.TypeFor[int64]():
		return fieldOf(nullable, offset, (*batch.ColBuilder).AppendI64)
	case reflect.TypeFor[float64]():
		return fieldOf(nullable, offset, (*batch.ColBuilder).AppendF64)
	case reflect.TypeFor[string]():
		return fieldOf(nullable, offset, (*batch.ColBuilder).AppendStr)
	case reflect.TypeFor[[]byte]():
		return fieldOf(nullable, offset, func(c *batch.ColBuilder, b []byte) { c.AppendStr(string(b)) })
	case reflect.TypeFor[time.Time]():
		return fieldOf(nullable, offset, func(c *batch.ColBuilder, t time.Time) { c.AppendI64(t.UnixMicro()) })
	}
	return types.Type{}, nil
}

func fieldOf[T Value](nullable bool, offset uintptr, add func(*batch.ColBuilder, T)) (types.Type, func(*batch.ColBuilder, unsafe.Pointer)) {
	if !nullable {
		return typeOf[T]().NotNull(), func(c *batch.ColBuilder, row unsafe.Pointer) { add(c, *(*T)(unsafe.Add(row, offset))) }
	}
	return typeOf[T](), func(c *batch.ColBuilder, row unsafe.Pointer) {
		if p := *(**T)(unsafe.Add(row, offset)); p != nil {
			add(c, *p)
		} else {
			c.AppendNull()
		}
	}
}
