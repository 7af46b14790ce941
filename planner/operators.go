package planner

import (
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
)

// operatorInfos describe the operators that identities name, for the comparison of a checkpoint with another plan. ids are
// settled.
func operatorInfos(plan *Plan, identities map[checkpoint.OperatorID]string) map[checkpoint.OperatorID]checkpoint.OperatorInfo {
	d := &describer{identities: identities, seen: map[*phys]bool{}, out: map[checkpoint.OperatorID]checkpoint.OperatorInfo{}}
	for _, r := range plan.roots {
		d.visit(r)
	}
	return d.out
}

type describer struct {
	identities map[checkpoint.OperatorID]string
	seen       map[*phys]bool
	out        map[checkpoint.OperatorID]checkpoint.OperatorInfo
}

func (d *describer) visit(p *phys) {
	if d.seen[p] {
		return
	}
	d.seen[p] = true
	for _, in := range p.in {
		d.visit(in)
	}
	id := checkpoint.OperatorID(p.id)
	if _, done := d.out[id]; done || d.identities[id] == "" {
		return
	}
	switch n := p.op.(type) {
	case *Scan:
		d.out[id] = checkpoint.OperatorInfo{Kind: checkpoint.KindSource, Name: n.Info.Table.Name, Fields: fieldInfos(p.fields)}
		return
	case *Sink:
		d.out[id] = checkpoint.OperatorInfo{Kind: checkpoint.KindSink, Name: n.Target.Table.Name}
	default:
		if !stateful(p) {
			return // removed: another node has its id
		}
		d.out[id] = checkpoint.OperatorInfo{Kind: p.op.(operator).slug(), Name: physicalLabel(p), Keys: stateKeys(p), Fields: stateFields(p)}
	}
	info := d.out[id]
	d.below(p, &info)
	d.out[id] = info
}

// below finds the nearest operators with a part in checkpoints, and what stands between.
func (d *describer) below(p *phys, info *checkpoint.OperatorInfo) {
	for _, in := range p.in {
		in = counted(in)
		id := checkpoint.OperatorID(in.id)
		if _, scan := in.op.(*Scan); scan || stateful(in) && d.identities[id] != "" {
			if !slices.Contains(info.Reads, id) {
				info.Reads = append(info.Reads, id)
			}
			continue
		}
		info.Through = append(info.Through, physicalLabel(in))
		d.below(in, info)
	}
}

// physicalLabel is the node as EXPLAIN shows it.
func physicalLabel(p *phys) string {
	if n, ok := p.op.(namer); ok {
		return n.physicalLabel()
	}
	return p.op.label()
}

// stateKeys are the columns that rows come together by.
func stateKeys(p *phys) []checkpoint.FieldInfo {
	var out []checkpoint.FieldInfo
	for _, k := range p.keyedBy[0] { // the keys of all inputs agree in types; those of the first name them
		f := p.in[0].fields[k]
		out = append(out, checkpoint.FieldInfo{Name: f.Name, Type: f.Type.String()})
	}
	return out
}

// stateFields are the columns of the inputs and those that the operator makes.
func stateFields(p *phys) []checkpoint.FieldInfo {
	var out []checkpoint.FieldInfo
	for _, in := range p.in {
		for _, f := range fieldInfos(counted(in).fields) {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	for _, f := range fieldInfos(p.fields) {
		if !slices.ContainsFunc(out, func(g checkpoint.FieldInfo) bool { return g.Name == f.Name }) {
			out = append(out, f)
		}
	}
	return out
}

func fieldInfos(fields []Field) []checkpoint.FieldInfo {
	out := make([]checkpoint.FieldInfo, len(fields))
	for i, f := range fields {
		out[i] = checkpoint.FieldInfo{Name: f.Name, Type: f.Type.String()}
	}
	return out
}
