// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/istio/release"
)

// Templates can print any value. A message of the mesh config prints as protobuf's text form, which is the same in every build
// of istiod only where it is short, and other values of Go print addresses of memory. Where a template prints such a thing it
// fails at its line, like one that asks for the time.

var (
	errAddress = errors.New("it prints an address of the memory, which is another one each time; print a field of the value")
	errAllData = errors.New("it prints all the data of the template, of which istiod has more; print the fields that are needed")
)

// textMessages are the releases whose messages print as google.golang.org/protobuf prints them. Older ones are made by gogo,
// whose text is not known here.
var textMessages = release.Since("1.14")

// printCheck describes what a version's templates must not print.
type printCheck struct {
	// unknownText reports whether the text of every message is unknown.
	unknownText bool
}

// printCheckOf returns the check of a version.
func printCheckOf(p *Profile) printCheck {
	return printCheck{unknownText: !textMessages.Contains(p.release)}
}

// checkPrintedValue returns an error if printing a value is not deterministic.
func (c printCheck) checkPrintedValue(v any) error {
	switch v.(type) {
	case nil, string, bool, int, int64, int32, float64:
		return nil
	}
	value := reflect.ValueOf(v)
	if value.Kind() == reflect.Pointer && !value.IsNil() && isPlain(value.Type().Elem()) {
		if _, ok := v.(fmt.Stringer); !ok {
			return errAddress // an action prints what it points to, fmt does not
		}
	}
	return c.checkValueAtDepth(value, 0)
}

// maxPrintDepth is how deep values are looked into. Those of templates are a few levels deep.
const maxPrintDepth = 50

// checkValueAtDepth is any for a value at a depth of what fmt prints.
func (c printCheck) checkValueAtDepth(v reflect.Value, depth int) error {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || depth > maxPrintDepth {
		return nil
	}
	if v.CanInterface() {
		if depth == 0 && v.CanAddr() && v.Kind() == reflect.Struct {
			v = v.Addr() // as text/template does for what has a text of its own
		}
		if known, err := c.formatsItself(v); known {
			return err
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if depth > 0 {
			return errAddress
		}
		return c.checkValueAtDepth(v.Elem(), depth+1)
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return errAddress
	case reflect.Slice, reflect.Array:
		if isPlain(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := c.checkValueAtDepth(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		if isPlain(v.Type().Elem()) {
			return nil
		}
		for it := v.MapRange(); it.Next(); {
			if err := c.checkValueAtDepth(it.Value(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := c.checkValueAtDepth(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// formatsItself reports whether a value makes its text itself, and the error about that.
func (c printCheck) formatsItself(v reflect.Value) (known bool, err error) {
	switch m := v.Interface().(type) {
	case mesh.Message:
		if c.unknownText && !v.IsNil() {
			return true, fmt.Errorf("it prints a message of the mesh config, whose text in istiod up to 1.13 is not known; print a field of it")
		}
		return true, mesh.CheckText(m)
	case *TemplateData, TemplateData:
		return true, errAllData
	case fmt.Stringer, error:
		return true, nil
	}
	return false, nil
}

// isPlain reports whether a type has one text for each value.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Float64:
		return true
	}
	return false
}

// printingFunctions are the functions that format arbitrary arguments as text.
var printingFunctions = []string{
	"print", "println", "html", "js", "urlquery", "quote", "squote", "cat", "toString", "toStrings", "join", "sortAlpha", "toDecimal",
	"typeOf", "typeIs", "typeIsLike", "annotation", "excludeInboundPort",
}

// wrapPrintingFunctions puts the check before the functions that print.
func (c printCheck) wrapPrintingFunctions(functions template.FuncMap) {
	for _, name := range printingFunctions {
		fn, ok := functions[name]
		if !ok {
			continue
		}
		switch name {
		case "annotation":
			functions[name] = func(meta reflect.Value, name string, otherwise any) (string, error) {
				if err := c.checkPrintedValue(otherwise); err != nil {
					return "", err
				}
				return annotationOr(meta, name, otherwise)
			}
		case "excludeInboundPort":
			functions[name] = func(port any, excluded string) (string, error) {
				if err := c.checkPrintedValue(port); err != nil {
					return "", err
				}
				return excludeInboundPort(port, excluded), nil
			}
		case "typeOf", "typeIs", "typeIsLike":
			functions[name] = gotemplate.CheckArguments(fn, rejectMeshMessage)
		default:
			functions[name] = gotemplate.CheckArguments(fn, c.checkPrintedValue)
		}
	}
	if printf, ok := functions["printf"].(func(string, ...any) (string, error)); ok {
		functions["printf"] = func(format string, args ...any) (string, error) {
			if err := c.checkPrintfArguments(format, args); err != nil {
				return "", err
			}
			return printf(format, args...)
		}
	}
	for _, name := range []string{"toJson", "toPrettyJson", "toRawJson", "mustToJson", "mustToPrettyJson", "mustToRawJson", "toYaml", "structToJSON"} {
		if fn, ok := functions[name]; ok {
			functions[name] = gotemplate.CheckArguments(fn, rejectWholeData)
		}
	}
}

// rejectMeshMessage refuses messages, whose Go types have other names here.
func rejectMeshMessage(v any) error {
	if _, ok := v.(mesh.Message); ok {
		return errors.New("it asks for the Go type of a message of the mesh config, which istiod has of another name")
	}
	return rejectWholeData(v)
}

// rejectWholeData refuses the whole data of templates.
func rejectWholeData(v any) error {
	switch v.(type) {
	case *TemplateData, TemplateData:
		return errAllData
	}
	return nil
}

// checkPrintfArguments checks the arguments of printf. Verbs that print the text of a message are those of strings.
func (c printCheck) checkPrintfArguments(format string, args []any) error {
	verbs, flags := verbsOf(format)
	for i, arg := range args {
		known := i < len(verbs)
		message := hasMessage(reflect.ValueOf(arg), 0)
		if known && verbs[i] == 'T' && !message {
			continue
		}
		if err := c.checkPrintedValue(arg); err != nil {
			return err
		}
		if message && known && (strings.Contains(flags[i], "#") || !strings.ContainsRune("vsqxX", verbs[i])) {
			return fmt.Errorf("it prints a message of the mesh config with %%%s%c, which prints what is inside of Go's value; use %%v", flags[i], verbs[i])
		}
	}
	return nil
}

// verbsOf returns the verbs of a format that each consume the next argument, and their flags. It stops at a verb
// that consumes another.
func verbsOf(format string) (verbs []rune, flags []string) {
	for {
		_, after, found := strings.Cut(format, "%")
		if !found {
			return verbs, flags
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !strings.ContainsRune("+-# 0123456789.", r) })
		if end < 0 {
			return verbs, flags
		}
		switch verb := rune(after[end]); verb {
		case '%':
		case '*', '[':
			return verbs, flags
		default:
			verbs, flags = append(verbs, verb), append(flags, after[:end])
		}
		format = after[end+1:]
	}
}

// hasMessage reports whether a value is or holds a message.
func hasMessage(v reflect.Value, depth int) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || depth > maxPrintDepth || !v.CanInterface() {
		return false
	}
	if _, ok := v.Interface().(mesh.Message); ok {
		return true
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if hasMessage(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if hasMessage(it.Value(), depth+1) {
				return true
			}
		}
	}
	return false
}

// printFunction is the name of the function that checks what an action prints.
const printFunction = "checkPrintedValue"

// checkPrintingCall returns the function of that name: it returns the value as it is, or fails at a place of a
// template.
func (c printCheck) checkPrintingCall(name, at string, line int, v reflect.Value) (reflect.Value, error) {
	if err := c.checkValueAtDepth(v, 0); err != nil {
		return reflect.Value{}, &gotemplate.Error{Template: name, Line: line, At: at, Err: err}
	}
	return v, nil
}

// checkPrints adds a check to those actions of a template that may print something other than a text or a number.
// It is called after the steps are counted, so their count does not change.
func (l *language) checkPrints(t *template.Template, name string) {
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			l.checkPrintsIn(sub.Tree, name, sub.Root)
		}
	}
}

func (l *language) checkPrintsIn(tree *parse.Tree, name string, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 && l.mayPrintAny(n.Pipe) {
				n.Pipe.Cmds = append(n.Pipe.Cmds, printCall(tree, name, n))
			}
		case *parse.IfNode:
			l.checkPrintsIn(tree, name, n.List)
			l.checkPrintsIn(tree, name, n.ElseList)
		case *parse.WithNode:
			l.checkPrintsIn(tree, name, n.List)
			l.checkPrintsIn(tree, name, n.ElseList)
		case *parse.RangeNode:
			l.checkPrintsIn(tree, name, n.List)
			l.checkPrintsIn(tree, name, n.ElseList)
		}
	}
}

// printCall is the command that checks what an action prints.
func printCall(tree *parse.Tree, name string, n *parse.ActionNode) *parse.CommandNode {
	text := func(v string) parse.Node {
		return &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: strconv.Quote(v), Text: v}
	}
	line := gotemplate.LineOf(tree, n)
	number := &parse.NumberNode{NodeType: parse.NodeNumber, Pos: n.Pos, IsInt: true, Int64: int64(line), Text: strconv.Itoa(line)}
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{
		parse.NewIdentifier(printFunction).SetPos(n.Pos).SetTree(tree), text(name), text(n.Pipe.String()), number,
	}}
}

// mayPrintAny reports whether a pipeline may yield something other than a text, a number, or a value of the
// injector's values.
func (l *language) mayPrintAny(p *parse.PipeNode) bool {
	last := p.Cmds[len(p.Cmds)-1]
	switch n := last.Args[0].(type) {
	case *parse.IdentifierNode:
		if n.Ident == printFunction {
			return false
		}
		return l.returnsUnknownType(n.Ident)
	case *parse.FieldNode:
		return mayBeAny(n.Ident)
	case *parse.VariableNode:
		return n.Ident[0] != "$" || len(n.Ident) == 1 || mayBeAny(n.Ident[1:])
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return false
	}
	return true
}

// returnsUnknownType reports whether a function may return something other than a text or a number.
func (l *language) returnsUnknownType(name string) bool {
	switch name {
	case "and", "or", "index", "slice", "call":
		return true
	}
	fn, ok := l.functions[name]
	if !ok {
		return !textTemplateFunctions[name]
	}
	return !isPlain(reflect.TypeOf(fn).Out(0))
}

// mayBeAny reports whether a field of the data, or of any other dot, is something other than a text or a number.
func mayBeAny(path []string) bool {
	t := reflect.TypeFor[TemplateData]()
	for _, name := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return t != reflect.TypeFor[Values]() && t != reflect.TypeFor[map[string]any]()
		}
		f, ok := t.FieldByName(name)
		if !ok {
			return true
		}
		t = f.Type
	}
	return !isPlain(t)
}
