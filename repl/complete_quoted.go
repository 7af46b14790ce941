package repl

import (
	"regexp"
	"strings"
)

var (
	settingValue = regexp.MustCompile(`(?is)\bSET\s+'([^']*)'\s*=\s*'([^']*)$`)
	settingKey   = regexp.MustCompile(`(?is)\b(?:SET|RESET)\s+'([^']*)$`)
	optionValue  = regexp.MustCompile(`(?is)[(,]\s*'([^']*)'\s*=\s*'([^']*)$`)
	optionKey    = regexp.MustCompile(`(?is)[(,]\s*'([^']*)$`)
	optionClause = regexp.MustCompile(`(?is)\b(?:WITH|OPTIONS)\s*\(`)
	optionPair   = regexp.MustCompile(`'((?:value\.|key\.)?format|connector)'\s*=\s*'([^']*)'`)
)

// completeQuoted continues the string literal that text ends in: keys and values of SET, of WITH and of OPTIONS.
func completeQuoted(from names, text string) (rest []string, n int) {
	if m := settingValue.FindStringSubmatch(text); m != nil {
		return finishQuoted(m[2], from.SettingValues(m[1]), "'")
	}
	if m := settingKey.FindStringSubmatch(text); m != nil {
		end := "' = '"
		if word := strings.Fields(text[:len(text)-len(m[1])]); len(word) > 1 && strings.EqualFold(word[len(word)-2], "RESET") {
			end = "'"
		}
		return finishQuoted(m[1], from.SettingNames(), end)
	}
	open := optionClause.FindAllStringIndex(text, -1)
	if open == nil {
		return nil, 0
	}
	clause := text[open[len(open)-1][1]-1:]
	connector := ""
	var formats []string
	for _, m := range optionPair.FindAllStringSubmatch(clause, -1) {
		if m[1] == "connector" {
			connector = m[2]
			continue
		}
		formats = append(formats, strings.TrimSuffix(m[1], "format")+m[2])
	}
	if m := optionValue.FindStringSubmatch(clause); m != nil {
		return finishQuoted(m[2], from.OptionValues(connector, m[1]), "'")
	}
	if m := optionKey.FindStringSubmatch(clause); m != nil {
		var left []string
		for _, k := range from.OptionNames(connector, formats) {
			if !strings.Contains(clause, "'"+k+"'") {
				left = append(left, k)
			}
		}
		return finishQuoted(m[1], left, "' = '")
	}
	return nil, 0
}

// finishQuoted is finish for texts in quotes: the only candidate is followed by end.
func finishQuoted(word string, all []string, end string) (rest []string, n int) {
	rest, n = finish(word, all)
	if len(rest) == 1 {
		rest[0] = strings.TrimSuffix(rest[0], " ") + end
	}
	return rest, n
}
