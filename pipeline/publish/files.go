// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret/sops"
	"github.com/prerig/prerig/pipeline/source/gitname"
)

// SingleFile is the name of the one file of the layout Single.
const SingleFile = "manifests.yaml"

// Files divides objects into files: paths to contents, the same for the same objects. Two objects of the same identity
// are an error.
func Files(objects []render.Object, layout v1alpha1.Layout, style v1alpha1.Style) (map[string][]byte, error) {
	return (&Writer{layout: layout, style: style}).Files(objects)
}

// Writer writes objects as one place gets them. It is safe for concurrent use.
type Writer struct {
	// Texts holds objects that were written already; if nil, all are written again.
	Texts *Texts

	layout v1alpha1.Layout
	style  v1alpha1.Style
	// encrypter encrypts Secrets; nil leaves them as they are.
	encrypter *sops.Encrypter
}

// Files divides objects into files, as the function Files does. Errors do not hold values of Secrets.
func (w *Writer) Files(objects []render.Object) (map[string][]byte, error) {
	seen := map[string]render.Place{}
	texts := make([][]byte, len(objects))
	for i, object := range objects {
		id := object.ID()
		key := object.Unit + " " + id
		if first, twice := seen[key]; twice && object.Name != "" {
			return nil, fmt.Errorf("writing %s: the result holds it twice%s", id, describePlaces(first, object.Source))
		}
		seen[key] = object.Source
		text, err := w.formatObject(object)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", object.ID(), err)
		}
		texts[i] = text
	}
	files := map[string][]byte{}
	if w.layout == v1alpha1.LayoutSingle {
		for i, object := range objects {
			name := unitDirectory(object.Unit) + SingleFile
			if len(files[name]) > 0 {
				files[name] = append(files[name], "---\n"...)
			}
			files[name] = append(files[name], texts[i]...)
		}
		return files, nil
	}
	taken := map[string]bool{}
	for i, name := range fileNames(objects, texts) {
		if taken[gitname.Key(name)] {
			return nil, fmt.Errorf("writing %s: another object has the file name %s", objects[i].ID(), name)
		}
		taken[gitname.Key(name)] = true
		files[name] = texts[i]
	}
	for name := range files {
		if taken[gitname.Key(path.Dir(name))] {
			return nil, fmt.Errorf("writing %s: another object has the file name %s", name, path.Dir(name))
		}
	}
	return files, nil
}

// fileNames returns the files of objects. Names that differ in upper and lower case alone would be one file on some
// systems: those with an upper case letter get a digest.
func fileNames(objects []render.Object, texts [][]byte) []string {
	names := make([]string, len(objects))
	same := map[string]int{}
	for i, object := range objects {
		names[i] = unitDirectory(object.Unit) + fileName(object, texts[i])
		same[gitname.Key(names[i])]++
	}
	for i, name := range names {
		if key := gitname.Key(name); key != name && same[key] > 1 {
			names[i] = shortName(strings.TrimSuffix(name, ".yaml")+"-"+shortDigest(name), ".yaml")
		}
	}
	return names
}

// formatObject writes one object in the pipeline's style, encrypted where that is due.
func (w *Writer) formatObject(object render.Object) ([]byte, error) {
	if w.encrypter != nil && hasReadableValues(object) {
		text, err := w.encryptSecret(object)
		if err != nil {
			return nil, fmt.Errorf("encrypting its values: %w", err)
		}
		object.YAML = text
	}
	return w.Texts.textOfObject(object, w.style)
}

// formatText writes the text of an object in a style.
func formatText(object render.Object, style v1alpha1.Style) ([]byte, error) {
	if text := withoutHead(object.YAML); style == v1alpha1.StylePreserve && text != nil {
		if !bytes.HasSuffix(text, []byte("\n")) {
			text = append(bytes.Clone(text), '\n')
		}
		return text, nil
	}
	value, err := manifest.Decode(object.YAML)
	if err != nil {
		return nil, err
	}
	return manifest.Marshal(value), nil
}

// withoutHead removes the start of a document in a stream. It returns nil if the document requires it: a document
// with directives cannot follow another one, and readers accept only a comment beside the marker.
func withoutHead(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for rest := text; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		switch {
		case len(line) == 0 || line[0] == '#':
		case bytes.Equal(line, []byte("---")) && len(rest) == len(text):
			return after
		case bytes.HasPrefix(line, []byte("---")):
			if beside := bytes.TrimLeft(line[3:], " \t"); len(beside) > 0 && beside[0] != '#' {
				return nil
			}
			return text
		case line[0] == '%':
			return nil
		default:
			return text
		}
		rest = after
	}
	return text
}

// fileName is NAMESPACE/KIND-NAME.yaml, with the group after the kind where it is not one of Kubernetes itself.
func fileName(object render.Object, text []byte) string {
	kind := strings.ToLower(object.Kind)
	if group := object.Group(); strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		kind += "." + group
	}
	name := object.Name
	if name == "" {
		name = generatedName(text) + shortDigest(string(text))
	}
	file := shortName(safeName(kind)+"-"+safeName(name), ".yaml")
	if object.Namespace == "" {
		return file
	}
	return directoryName(object.Namespace) + "/" + file
}

// directoryName is the directory for a name.
func directoryName(name string) string {
	directory := safeName(name)
	if gitname.IsDevice(directory) {
		directory = strings.ReplaceAll(directory, ".", "_") + "-" + shortDigest(name)
	}
	return shortName(directory, "")
}

// unitDirectory is the directory of a unit NAMESPACE/NAME with a slash at its end, "" where there are no units.
func unitDirectory(unit string) string {
	if unit == "" {
		return ""
	}
	namespace, name, _ := strings.Cut(unit, "/")
	return directoryName(namespace) + "/" + directoryName(name) + "/"
}

// IsOfUnit reports whether a file is in the directory of a unit NAMESPACE/NAME.
func IsOfUnit(name, unit string) bool { return strings.HasPrefix(name, unitDirectory(unit)) }

// KeepFailed adds the published files of units and releases that failed to those of a result, and returns its objects
// and those that the added files hold: what fails keeps what is published. A published file does not name the release
// that it is of, so that nothing is deleted of a unit with a failed one. What would be made by something that fails is
// not known either, so that as long as anything fails, nothing of a unit without a result is deleted.
func KeepFailed(files, published map[string][]byte, built *render.Response) []render.Object {
	objects, partial := built.Objects, map[string]bool{}
	for _, unit := range built.PartialUnits() {
		partial[unitDirectory(unit)] = true
	}
	if len(built.Failed)+len(partial) == 0 {
		return objects
	}
	rendered, known := map[string]bool{}, map[string]bool{}
	for _, object := range built.Objects {
		rendered[unitDirectory(object.Unit)] = true
		known[unitDirectory(object.Unit)+object.ID()] = true
	}
	hasUnits := len(built.Failed) > 0 || slices.ContainsFunc(objects, func(o render.Object) bool { return o.Unit != "" })
	for _, name := range slices.Sorted(maps.Keys(published)) {
		unit, ok := unitOfFile(name, built.Type, hasUnits)
		if !ok || rendered[unit] && !partial[unit] {
			continue
		}
		var kept []render.Object
		files[name], kept = keepObjects(name, files[name], published[name], func(o render.Object) bool { return known[unit+o.ID()] })
		if files[name] == nil {
			delete(files, name)
		}
		objects = append(slices.Clip(objects), kept...)
	}
	return objects
}

// unitOfFile returns the directory of the unit that a file is of, "" for what is of no unit: all of a build without
// units, and the objects of no Application with perApplication. Builds of Flux have no such files, and report false.
func unitOfFile(name string, build v1alpha1.BuildType, hasUnits bool) (unit string, ok bool) {
	isFlux := build == v1alpha1.BuildFlux
	parts := strings.SplitN(name, "/", 3)
	switch {
	case parts[0] == "..":
		return "", false
	case !isFlux && !hasUnits:
		return "", true
	case len(parts) < 3:
		return "", !isFlux
	}
	return parts[0] + "/" + parts[1] + "/", true
}

// keepObjects adds the documents of a published file to the new content of it, except those that the result has. It
// returns them too.
func keepObjects(name string, content, published []byte, rendered func(render.Object) bool) ([]byte, []render.Object) {
	parsed, err := manifest.Parse(name, published)
	if err != nil {
		return content, nil
	}
	var kept []render.Object
	for _, doc := range parsed.Docs {
		object, ok := identityOf(doc)
		if !ok || rendered(object) || object.Name == "" && len(content) > 0 {
			continue
		}
		kept = append(kept, object)
		if len(parsed.Docs) == 1 {
			return published, kept
		}
		if len(content) > 0 {
			content = append(slices.Clip(content), "---\n"...)
		}
		content = append(content, withoutHead(doc.Raw())...)
	}
	return content, kept
}

// describePlaces names two places, if both are known.
func describePlaces(a, b render.Place) string {
	if a.Path == "" || b.Path == "" {
		return ""
	}
	return fmt.Sprintf(", in %s:%d and %s:%d", a.Path, a.Line, b.Path, b.Line)
}

// generatedName returns what the name of an object begins with that the API server is going to name, so that such
// objects are in the order of these names.
func generatedName(text []byte) string {
	if object, err := manifest.Decode(text); err == nil {
		if object, ok := object.(map[string]any); ok && result.GeneratedName(object) != "" {
			return strings.TrimSuffix(result.GeneratedName(object), "-") + "-"
		}
	}
	return "unnamed-"
}

// safeName restricts a part of a file name to characters that every file system accepts. Names that lose characters
// get a digest, so that they stay distinct.
func safeName(part string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, part)
	if strings.HasPrefix(clean, ".") {
		clean = "_" + clean[1:]
	}
	if clean != part || strings.HasSuffix(clean, ".") {
		clean += "-" + shortDigest(part)
	}
	return clean
}

// maxFileName is how long a file name may be. A branch with a longer one cannot be checked out, by no pipeline's
// readers.
const maxFileName = 255

// shortName adds an ending to a name. One that is too long is cut and gets a digest, so that two of them stay apart.
func shortName(name, ending string) string {
	if len(name)+len(ending) <= maxFileName {
		return name + ending
	}
	sum := shortDigest(name)
	return name[:maxFileName-len(ending)-len(sum)-1] + "-" + sum + ending
}

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// objectIDs returns the identities of objects, sorted.
func objectIDs(objects []render.Object) []string {
	ids := make([]string, 0, len(objects))
	for _, object := range objects {
		if object.Name != "" {
			ids = append(ids, object.ID())
		}
	}
	sort.Strings(ids)
	return ids
}
