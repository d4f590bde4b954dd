package world

import (
	"fmt"
	"reflect"
	"slices"
)

// checkMethods wants every exported method of a definition to be one of a part of a kind.
func checkMethods[P any](d Definition[P]) error {
	parts := []reflect.Type{
		reflect.TypeFor[Definition[P]](), reflect.TypeFor[Measurer[P]](), reflect.TypeFor[BotBringer](), reflect.TypeFor[StandIn](),
		reflect.TypeFor[Loader[P]](), reflect.TypeFor[Caster[P]](), reflect.TypeFor[Planner[P]](), reflect.TypeFor[UniformPlanner[P]](),
		reflect.TypeFor[Dealer[P]](), reflect.TypeFor[StatusMaker[P]](), reflect.TypeFor[Reporter](), reflect.TypeFor[Storyteller](),
		reflect.TypeFor[FileMaker](), reflect.TypeFor[Marker](), reflect.TypeFor[Painter](), reflect.TypeFor[Environment[P]](),
		reflect.TypeFor[Prober[P]](), reflect.TypeFor[Commander](),
	}
	own := reflect.TypeOf(d)
	if all := reflect.PointerTo(own); own.Kind() != reflect.Pointer {
		for i := range all.NumMethod() {
			if name := all.Method(i).Name; !hasMethod(own, name) {
				return fmt.Errorf("the method %s has a pointer receiver: give Define a pointer", name)
			}
		}
	}
	for i := range own.NumMethod() {
		name := own.Method(i).Name
		at := slices.IndexFunc(parts, func(part reflect.Type) bool { return hasMethod(part, name) })
		if at < 0 {
			var all []string
			for _, part := range parts {
				for m := range part.NumMethod() {
					all = append(all, part.Method(m).Name)
				}
			}
			return fmt.Errorf("the method %s is of no part of a kind: %s", name, meantOr(name, all))
		}
		if !own.Implements(parts[at]) {
			return fmt.Errorf("the method %s makes no %v: that has %s", name, parts[at], signatures(parts[at]))
		}
	}
	return nil
}

func hasMethod(t reflect.Type, name string) bool {
	_, has := t.MethodByName(name)
	return has
}

// meantOr says which method was probably meant, or what to do with one of another purpose.
func meantOr(name string, all []string) string {
	if near := Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "make it a function, or do not export it"
}

// signatures lists the methods of an interface as they must be.
func signatures(part reflect.Type) string {
	text := ""
	for i := range part.NumMethod() {
		m := part.Method(i)
		if i > 0 {
			text += " and "
		}
		text += m.Name + m.Type.String()[len("func"):]
	}
	return text
}
