package diplomacy

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/world"
	"parley/world/part"
	"parley/worlds/diplomacy/rules"
)

// earlierTemplate says which prompts of the earlier program become a template.
type earlierTemplate struct {
	name string
	of   []string
}

func earlierTemplates() []earlierTemplate {
	return []earlierTemplate{
		{promptRules, []string{"system_prompt"}},
		{promptSelf, []string{"context_prompt"}},
		{promptStart, []string{"initial_state_prompt"}},
		{promptPlan, []string{"planning_instructions"}},
		{promptTalk, []string{"conversation_instructions"}},
		{promptDecide, []string{"negotiation_diary_prompt", "order_instructions_movement_phase"}},
		{promptOrders, []string{"order_instructions_movement_phase"}},
		{promptRetreat, []string{"order_instructions_retreat_phase"}},
		{promptAdjust, []string{"order_instructions_adjustment_phase"}},
		{promptReview, []string{"phase_result_diary_prompt"}},
		{promptYears, []string{"diary_consolidation_prompt"}},
	}
}

// earlierPlaceholders are the placeholders of the earlier program that can be expressed here.
func earlierPlaceholders() map[string]string {
	labels := strings.Join(relationLabels(), ", ")
	return map[string]string{
		"power_name": "{{power}}", "current_phase": "{{phase}}",
		"all_unit_locations": "{{position}}", "all_supply_centers": "{{position}}", "board_state_str": "{{position}}",
		"possible_orders": "{{options}}", "order_history": "{{last}}", "all_orders_formatted": "{{last}}",
		"agent_goals": "{{goals}}", "agent_relationships": "{{relations}}", "pre_phase_relationships": "{{relations}}",
		"agent_private_diary": "{{diary}}", "private_diary_summary": "{{diary}}", "full_diary_text": "{{entries}}",
		"messages_this_round": "{{messages}}", "your_negotiations": "{{messages}}",
		"ignored_messages_context": "Still without an answer from: {{unanswered}}",
		"allowed_labels_str":       labels, "allowed_relationships_str": labels,
	}
}

var (
	earlierPlaceholderRE = regexp.MustCompile(`\{\{\s*([A-Za-z_]\w*)\s*\}\}|\{\s*([A-Za-z_]\w*)\s*\}`)
	manyLinesRE          = regexp.MustCompile(`\n{3,}`)
	earlierAnswerRE      = regexp.MustCompile(`PARSABLE OUTPUT|\bJSON\b|"(?:orders|message_type|recipient|content|negotiation_summary|intent|reasoning|(?:initial_|updated_)?(?:goals|relationships))"\s*:`)
)

// earlierFolder is a folder of prompts of the earlier program while it is converted.
type earlierFolder struct {
	texts  map[rules.Power]map[string]string // the converted prompts by power and name; None: for everybody
	report []string
}

// Convert converts a folder of prompts of the earlier program AI_Diplomacy.
func (d *definition) Convert(files world.Files, folder, name string) (part.Converted, error) {
	f := &earlierFolder{texts: map[rules.Power]map[string]string{}}
	for _, file := range files.Match(path.Join(folder, "*")) {
		who, prompt, ok := earlierPrompt(path.Base(file))
		if !ok {
			f.sayf("%s: has no counterpart and is left out", file)
			continue
		}
		text, err := files.Text(file)
		if err != nil {
			return part.Converted{}, err
		}
		if text = f.convert(file, text); text == "" {
			f.sayf("%s: has no text to use; the standard template is used", file)
			continue
		}
		if f.texts[who] == nil {
			f.texts[who] = map[string]string{}
		}
		f.texts[who][prompt] = text
	}
	if len(f.texts) == 0 {
		return part.Converted{}, fmt.Errorf("%s: there is no prompt in it; name a folder with files such as system_prompt.txt or context_prompt.txt", folder)
	}
	if lister, ok := files.(part.FolderLister); ok {
		for _, in := range lister.Folders(folder) {
			f.sayf("%s: is a folder and is not read; convert it with a --from of its own", path.Join(folder, in))
		}
	}
	to := cmp.Or(strings.Trim(regexp.MustCompile(`[^\w.-]+`).ReplaceAllString(cmp.Or(name, path.Base(folder)), "-"), ".-"), "prompts")
	out := part.Converted{Files: map[string]string{}}
	var folders []string
	for _, who := range slices.Sorted(maps.Keys(f.texts)) {
		key, dir := everybody, to
		if who != rules.None {
			key, dir = who.String(), path.Join(to, strings.ToLower(who.String()))
		}
		folders = append(folders, fmt.Sprintf("%s: %q", key, dir))
		for template, text := range f.templates(who) {
			out.Files[path.Join(dir, template+".txt")] = text
		}
	}
	out.Plan = strings.Replace(example, "templates: {} ", "templates: {"+strings.Join(folders, ", ")+"} ", 1)
	out.Report = f.report
	return out, nil
}

func (f *earlierFolder) sayf(format string, args ...any) {
	f.report = append(f.report, fmt.Sprintf(format, args...))
}

// earlierPrompt says which prompt a file has, and for which power: france_system_prompt.txt and
// conversation_instructions_france.txt are for one of them.
func earlierPrompt(file string) (who rules.Power, prompt string, ok bool) {
	prompt, ok = strings.CutSuffix(file, ".txt")
	for _, w := range rules.Powers() {
		power := strings.ToLower(w.String())
		if rest, is := strings.CutSuffix(prompt, "_"+power); is && strings.Contains(rest, "_instructions") {
			who, prompt = w, rest
		} else if prompt == power+"_system_prompt" {
			who, prompt = w, "system_prompt"
		}
	}
	return who, prompt, ok && slices.ContainsFunc(earlierTemplates(), func(t earlierTemplate) bool { return slices.Contains(t.of, prompt) })
}

// templates returns the templates for a power that differ from those for everybody.
func (f *earlierFolder) templates(who rules.Power) map[string]string {
	out := map[string]string{}
	own, all := f.texts[who], f.texts[rules.None]
	self := all["context_prompt"] // powers have none of their own
	for _, t := range earlierTemplates() {
		standard := standardParagraphs(t.name)
		var parts []string
		differs := false
		for _, prompt := range t.of {
			differs = differs || own[prompt] != ""
			if text := cmp.Or(own[prompt], all[prompt]); text != "" {
				parts = append(parts, text)
			}
		}
		if !differs {
			continue
		}
		last := standard[len(standard)-1]
		switch t.name {
		case promptRules:
			parts = append(parts, last) // it says that words of players are no instructions
		case promptSelf:
			board := missingParagraphs(standardParagraphs(promptBoard), self)
			out[promptBoard] = cmp.Or(strings.Join(board, "\n\n"), "It is {{phase}}.") + "\n"
		default:
			if len(parts) < len(t.of) {
				parts = append(parts, last)
			}
			known := strings.Join(parts, "\n")
			if t.name != promptYears { // it is asked without self
				known += cmp.Or(self, strings.Join(standardParagraphs(promptSelf), "\n"))
			}
			parts = append(missingParagraphs(standard[:len(standard)-1], known), parts...)
		}
		out[t.name] = strings.Join(parts, "\n\n") + "\n"
	}
	return out
}

func standardParagraphs(template string) []string {
	b, err := templateFiles.ReadFile("text/" + template + ".txt")
	if err != nil {
		panic(fmt.Sprintf("prompt: %s: %v", template, err)) // the file is part of the program, and tested
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n\n")
}

// missingParagraphs returns the standard paragraphs whose variables a text lacks, so that no converted
// question lacks what its answer needs, such as the legal orders.
func missingParagraphs(standard []string, text string) []string {
	known, everywhere := variablesIn(text), []string{"power", "phase", "last_phase"}
	return slices.DeleteFunc(slices.Clone(standard), func(p string) bool {
		own := slices.DeleteFunc(variablesIn(p), func(v string) bool { return slices.Contains(everywhere, v) })
		return len(own) == 0 || slices.ContainsFunc(own, func(v string) bool { return slices.Contains(known, v) })
	})
}

func variablesIn(text string) (names []string) {
	for _, m := range variableRE.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// convert returns the text of a prompt with our variables. A line with a placeholder that has no counterpart is left out,
// and so is its heading if the line has nothing else.
func (f *earlierFolder) convert(file, text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	blank := func(i int) bool { return i < 0 || strings.TrimSpace(lines[i]) == "" }
	alone := func(i int) bool {
		return strings.TrimSpace(earlierPlaceholderRE.ReplaceAllString(lines[i], "")) == ""
	}
	escaped := strings.Contains(earlierPlaceholderRE.ReplaceAllString(text, ""), "{{")
	placeholders := earlierPlaceholders()
	out := make([]string, len(lines))
	gone := make([]bool, len(lines))
	var answers []int
	position := false // whether an earlier line has it
	for i, line := range lines {
		if earlierAnswerRE.MatchString(line) {
			answers = append(answers, i+1)
		}
		var b strings.Builder
		at := 0
		why := ""
		for _, m := range earlierPlaceholderRE.FindAllStringSubmatchIndex(line, -1) {
			name := line[max(m[2], m[4]):max(m[3], m[5])]
			to, ok := placeholders[name]
			switch {
			case !ok:
				why = fmt.Sprintf("{%.40s} has no counterpart", name)
			case to == "{{position}}" && position:
				why = fmt.Sprintf("{%s} is part of {{position}}, which is there already", name)
			}
			b.WriteString(literal(line[at:m[0]], escaped) + to)
			at = m[1]
		}
		out[i] = strings.TrimRight(b.String()+literal(line[at:], escaped), " \t")
		if why == "" {
			position = position || strings.Contains(out[i], "{{position}}")
			continue
		}
		gone[i] = true
		// The line above is a heading if it begins the paragraph or ends with a colon.
		heading := i > 0 && alone(i) && !blank(i-1) && !alone(i-1) && !gone[i-1] && (blank(i-2) || strings.HasSuffix(strings.TrimSpace(lines[i-1]), ":"))
		if heading {
			gone[i-1] = true
			f.sayf("%s:%d: %s; the line is left out, and the heading above it", file, i+1, why)
		} else {
			f.sayf("%s:%d: %s; the line is left out", file, i+1, why)
		}
	}
	if len(answers) > 0 {
		f.sayf("%s: describes the form of an answer, which is fixed here; rewrite or delete these lines: %s", file, ranges(answers))
	}
	var kept []string
	for i, line := range out {
		if !gone[i] {
			kept = append(kept, line)
		}
	}
	return separate(strings.Join(kept, "\n"))
}

// literal returns text without double braces, which only variables have here.
func literal(text string, escaped bool) string {
	if escaped {
		text = strings.NewReplacer("{{", "{", "}}", "}").Replace(text)
	}
	for strings.Contains(text, "{{") || strings.Contains(text, "}}") {
		text = strings.NewReplacer("{{", "{ {", "}}", "} }").Replace(text)
	}
	return text
}

// separate adds an empty line after each line with a variable, in paragraphs with one that may be empty: a paragraph
// is left out as a whole, and the earlier program left out nothing. A heading stays with the variable below it.
func separate(text string) string {
	mayBeEmpty := func(text string) bool {
		return slices.ContainsFunc(variablesIn(text), func(v string) bool { return !slices.Contains([]string{"power", "phase", "position"}, v) })
	}
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		for i, line := range lines {
			out.WriteString(line + "\n")
			heading := i+1 < len(lines) && !mayBeEmpty(line) && variableRE.ReplaceAllString(lines[i+1], "") == ""
			if mayBeEmpty(paragraph) && len(variablesIn(line)) > 0 && !heading {
				out.WriteString("\n")
			}
		}
		out.WriteString("\n")
	}
	return strings.Trim(manyLinesRE.ReplaceAllString(out.String(), "\n\n"), "\n")
}

// ranges writes line numbers in order, as 3, 7-9.
func ranges(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(numbers[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}
