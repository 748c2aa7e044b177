// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// kustomizationNames are the names that kustomize looks for.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// largestFile is the most that is read of a kustomization or a patch, in bytes.
const largestFile = 1 << 20

const (
	// maxDirectories bounds how many directories are searched in a repository.
	maxDirectories = 200_000
	// maxOutside bounds it where no repository is around the files, and levelsOutside how far up the search extends
	// then.
	maxOutside    = 2_000
	levelsOutside = 4
)

// kustomization is one that was found.
type kustomization struct {
	text
	dir string
	// name is the directory as messages have it.
	name string
	// applier is the kind of the object for Flux or Argo CD that patches what it applies; empty for a kustomization.
	applier string
}

// tree holds the kustomizations by their directories.
type tree struct {
	found    map[string]*kustomization
	visited  map[string]bool
	relative bool // names are relative to the working directory
	left     int
	// root is that of the repository that is searched, and appliers are the objects in it.
	root     string
	appliers []*kustomization

	// paths remembers absolute, and includers the kustomizations that include a component, by its directory.
	paths     map[string]string
	includers map[string][]*kustomization
}

// readTrees reads the kustomizations of the work trees that files are in.
func readTrees(ctx context.Context, paths []string, relative bool) *tree {
	t := &tree{
		found: map[string]*kustomization{}, visited: map[string]bool{}, relative: relative,
		paths: map[string]string{}, includers: map[string][]*kustomization{},
	}
	starts := map[string]bool{}
	for _, path := range paths {
		dir := filepath.Dir(path)
		if starts[dir] {
			continue
		}
		starts[dir] = true
		if root := repositoryOf(dir); root != "" {
			t.left, t.root = maxDirectories, root
			t.walk(ctx, root)
			t.root = ""
			continue
		}
		// Without a repository the nearest directories count.
		t.left = maxOutside
		for level, at := 0, dir; level < levelsOutside && !isShared(at); level, at = level+1, filepath.Dir(at) {
			t.walk(ctx, at)
		}
	}
	for _, k := range t.inOrder() {
		for _, dir := range t.directories(k, "components") {
			t.includers[dir] = append(t.includers[dir], k)
		}
	}
	return t
}

// repositoryOf returns the root of the Git work tree that a directory is in, or "".
func repositoryOf(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// isShared reports whether a directory holds unrelated things: it is the root, that of temporary files, or has or is a
// home.
func isShared(dir string) bool {
	home, _ := os.UserHomeDir()
	if home != "" && (dir == home || dir == filepath.Dir(home)) {
		return true
	}
	return dir == filepath.Dir(dir) || dir == absolute(os.TempDir())
}

// walk reads the kustomizations of a directory and of those below it, except hidden ones and downloaded packages.
func (t *tree) walk(ctx context.Context, dir string) {
	if t.left <= 0 || ctx.Err() != nil {
		return
	}
	var below []string
	if !t.visited[dir] {
		t.left--
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir() && !strings.HasPrefix(name, ".") && name != "node_modules" && name != "vendor":
			below = append(below, filepath.Join(dir, name))
		case !e.IsDir() && slices.Contains(kustomizationNames, name):
			if t.found[dir] == nil {
				t.add(dir, name)
			}
		case t.root != "" && !t.visited[dir] && manifest.IsFileName(name):
			t.addAppliers(filepath.Join(dir, name), e)
		}
	}
	t.visited[dir] = true
	for _, one := range below {
		if !t.visited[one] {
			t.walk(ctx, one)
		}
	}
}

func (t *tree) add(dir, name string) {
	read := readText(filepath.Join(dir, name), t.display(filepath.Join(dir, name)))
	if len(read) > 0 && read[0].obj != nil {
		t.found[dir] = &kustomization{text: read[0], dir: dir, name: t.display(dir)}
	}
}

// display returns a path as users have named the files of the run: relative or absolute.
func (t *tree) display(path string) string {
	wd, err := os.Getwd()
	if err != nil || !t.relative {
		return path
	}
	if rel, err := filepath.Rel(absolute(wd), path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

func (t *tree) absolute(path string) string {
	if known, ok := t.paths[path]; ok {
		return known
	}
	t.paths[path] = absolute(path)
	return t.paths[path]
}

func (t *tree) inOrder() []*kustomization {
	var out []*kustomization
	for _, k := range t.found {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *kustomization) int { return strings.Compare(a.dir, b.dir) })
	return out
}

// appliesTo returns the kustomizations whose resources the edits of a kustomization change: itself, or those that
// include it as a component.
func (t *tree) appliesTo(k *kustomization) []*kustomization {
	out := []*kustomization{k}
	for i := 0; i < len(out); i++ {
		for _, other := range t.includers[out[i].dir] {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// directories returns the directories with kustomizations that a field names.
func (t *tree) directories(k *kustomization, fields ...string) []string {
	var out []string
	for _, field := range fields {
		for _, entry := range texts(k.obj[field]) {
			if isRemote(entry) {
				continue
			}
			if dir := t.absolute(filepath.Join(k.dir, entry)); t.found[dir] != nil {
				out = append(out, dir)
			}
		}
	}
	return out
}

// resource is a file that a kustomization builds from.
type resource struct {
	file string
	by   []*kustomization // the kustomizations that process it, the innermost first
}

// resources returns the wanted files that a kustomization builds from, with those of its bases and components.
func (t *tree) resources(k *kustomization, wanted map[string]bool, through []*kustomization) []resource {
	if slices.Contains(through, k) {
		return nil // a cycle, which kustomize reports
	}
	through = append([]*kustomization{k}, through...)
	var out []resource
	for _, entry := range texts(k.obj["resources"]) {
		if isRemote(entry) {
			continue
		}
		if file := t.absolute(filepath.Join(k.dir, entry)); wanted[file] {
			out = append(out, resource{file: file, by: through})
		}
	}
	for _, dir := range t.directories(k, "resources", "bases", "components") {
		out = append(out, t.resources(t.found[dir], wanted, through)...)
	}
	return out
}

// texts returns the texts of a list.
func texts(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, one := range list {
		if s, ok := one.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// text is a document of a file, or one inside of a value of a kustomization.
type text struct {
	file string // as messages have it
	doc  *manifest.Document
	obj  map[string]any
	list []any // of a document that is a list
	// lines is what to add to the line of a document; fixed is the line of all that is in it, or 0.
	lines, fixed int
	content      string
	// at is where obj is in the document.
	at []any
}

// line returns the line of a field, or 0.
func (t text) line(path ...any) int {
	if t.fixed > 0 {
		return t.fixed
	}
	if line, _, ok := t.doc.Locate(append(slices.Clip(t.at), path...)...); ok {
		return line + t.lines
	}
	return 0
}

// readText returns the documents of a file. What cannot be read is left out.
func readText(path, display string) []text {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestFile {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseText(display, string(data))
}

func parseText(display, content string) []text {
	file, err := manifest.Parse(display, []byte(content))
	if err != nil {
		return nil
	}
	var out []text
	for _, d := range file.Docs {
		if d.Empty() {
			continue
		}
		one := text{file: display, doc: d, content: content}
		if d.StartsList() {
			decoded, _ := manifest.Decode([]byte(d.Text()))
			one.list, _ = decoded.([]any)
		} else if obj, err := d.Object(); err == nil {
			one.obj = obj
		}
		if one.obj != nil || one.list != nil {
			out = append(out, one)
		}
	}
	return out
}

// inline returns the documents in a value of t, which is a text.
func (t text) inline(content string, path ...any) []text {
	line := t.line(path...)
	out := parseText(t.file, content)
	for i := range out {
		if t.lines == 0 && t.fixed == 0 && line > 0 && isBlock(t.content, line) {
			out[i].lines = line
		} else {
			out[i].fixed = max(line, 1)
		}
	}
	return out
}

// isBlock reports whether the value that begins in a line is a literal block, whose own lines follow.
func isBlock(content string, line int) bool {
	lines := strings.Split(content, "\n")
	if line > len(lines) {
		return false
	}
	head, _, _ := strings.Cut(strings.TrimRight(lines[line-1], "\r"), " #")
	head = strings.TrimRight(head, " +-0123456789")
	return strings.HasSuffix(head, "|")
}
