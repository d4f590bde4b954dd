package world

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// checkMethods returns an error unless every exported method of a definition belongs to a part of a kind.
func checkMethods[P any](d Definition[P]) error {
	parts := []reflect.Type{
		reflect.TypeFor[Definition[P]](), reflect.TypeFor[Measurer[P]](), reflect.TypeFor[BotMaker](), reflect.TypeFor[StandIn](), reflect.TypeFor[ToolCaller](),
		reflect.TypeFor[Loader[P]](), reflect.TypeFor[Converter](), reflect.TypeFor[ModelChooser[P]](), reflect.TypeFor[Planner[P]](), reflect.TypeFor[UniformPlanner[P]](),
		reflect.TypeFor[TaskNamer[P]](), reflect.TypeFor[StatusMaker[P]](), reflect.TypeFor[Reporter](), reflect.TypeFor[Storyteller](),
		reflect.TypeFor[FileMaker](), reflect.TypeFor[Tabulator](), reflect.TypeFor[Marker](), reflect.TypeFor[Recorded](), reflect.TypeFor[Painter](), reflect.TypeFor[Environment[P]](),
		reflect.TypeFor[Prober[P]](), reflect.TypeFor[Commander](), reflect.TypeFor[Restarter](), reflect.TypeFor[CodeUser[P]](),
	}
	own := reflect.TypeOf(d)
	if own.Kind() != reflect.Pointer {
		for m := range reflect.PointerTo(own).Methods() {
			if !hasMethod(own, m.Name) {
				return fmt.Errorf("the method %s has a pointer receiver: give Define a pointer", m.Name)
			}
		}
	}
	for m := range own.Methods() {
		name := m.Name
		at := slices.IndexFunc(parts, func(part reflect.Type) bool { return hasMethod(part, name) })
		if at < 0 {
			var all []string
			for _, part := range parts {
				for m := range part.Methods() {
					all = append(all, m.Name)
				}
			}
			return fmt.Errorf("no part of a kind has a method %s: %s", name, meantOr(name, all))
		}
		if !own.Implements(parts[at]) {
			return fmt.Errorf("the method %s does not fit %v, which has %s", name, parts[at], signatures(parts[at]))
		}
	}
	return nil
}

func hasMethod(t reflect.Type, name string) bool {
	_, has := t.MethodByName(name)
	return has
}

// meantOr suggests a similar method, or what to do with one of another purpose.
func meantOr(name string, all []string) string {
	if near := Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "make it a function, or do not export it"
}

// signatures lists the methods of an interface.
func signatures(part reflect.Type) string {
	var all []string
	for m := range part.Methods() {
		all = append(all, m.Name+strings.TrimPrefix(m.Type.String(), "func"))
	}
	return strings.Join(all, " and ")
}
