package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ConfigDoc is docs/config.md: the page of all settings.
func ConfigDoc() string {
	var sb strings.Builder
	sb.WriteString("# Settings\n\n" +
		"`SET 'key' = 'value';` in a script or session, or `-D key=value` on the command line, with Flink's names.\n" +
		"`RESET 'key';` restores the default, `RESET;` all of them, `SET;` lists them. A job keeps the settings it was started with.\n\n" +
		"A key that is not listed is kept and has no effect; a notice says so, with the nearest known key. A value that would\n" +
		"change results in a way streamsql does not implement is refused. Durations are written `5 s`, `1min`, `PT5S`, or as\n" +
		"milliseconds.\n\n" +
		"| key | default | values | meaning |\n|---|---|---|---|\n")
	for _, k := range settingKeys() {
		s := settings[k]
		def := s.def
		if def == "" {
			def = "(unset)"
		}
		fmt.Fprintf(&sb, "| `%s` | `%s` | %s | %s |\n", k, def, s.valuesText(), s.doc)
	}
	sb.WriteString("\nOld names that still work, with a notice: ")
	var old []string
	for _, k := range slices.Sorted(maps.Keys(deprecatedKeys)) {
		old = append(old, fmt.Sprintf("`%s` (now `%s`)", k, deprecatedKeys[k]))
	}
	sb.WriteString(strings.Join(old, ", ") + ".\n")
	return sb.String()
}

// SettingKeys are the known keys of SET, sorted.
func SettingKeys() []string { return settingKeys() }

// SettingValues are the values a key of SET can have when they are few, else nil.
func SettingValues(key string) (values []string) {
	s := settings[key]
	if s.typ == boolSetting {
		return []string{"true", "false"}
	}
	for _, v := range s.values {
		if v != "" && s.refused[v] == "" {
			values = append(values, v)
		}
	}
	return values
}

func (s setting) valuesText() string {
	switch s.typ {
	case intSetting:
		return fmt.Sprintf("integer ≥ %g", s.min)
	case floatSetting:
		if s.max > 0 {
			return fmt.Sprintf("number from %g to %g", s.min, s.max)
		}
		return fmt.Sprintf("number ≥ %g", s.min)
	case boolSetting:
		return "true, false"
	case durationSetting:
		return "duration"
	case memorySetting:
		return "size"
	case zoneSetting:
		return "zone id or offset"
	case storageSetting:
		return "URI"
	}
	var vals []string
	for _, v := range s.values {
		_, refused := s.refused[v]
		if v != "" && !refused {
			vals = append(vals, v)
		}
	}
	if vals == nil {
		return "text"
	}
	return strings.Join(vals, ", ")
}
