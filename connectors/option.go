package connectors

// OptionType is the type of a table option's value.
type OptionType uint8

// The types. Durations and sizes use Flink's spellings ("5 s", "1min", "128mb").
const (
	StringOption OptionType = iota
	IntOption
	BoolOption
	FloatOption
	DurationOption
	MemoryOption
	EnumOption
	ListOption // separated by ';'
)

// Option describes a table option. docs/connectors.md is generated from it.
type Option struct {
	Key        string
	Type       OptionType
	Default    string // "" = none
	Values     []string
	Required   bool
	Deprecated string // the key to use instead
	Doc        string
	// Flink is false for options of our own, which are stripped for a Flink cluster.
	Flink bool
}
