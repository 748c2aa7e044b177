// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package hermetic

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forbidden are the packages that no package under fn imports: what they are for cannot be had from the input. A name
// that ends in / is a prefix.
var forbidden = map[string]string{
	"net":                                "network",
	"net/":                               "network",
	"crypto/tls":                         "network",
	"log/syslog":                         "network",
	"os/exec":                            "other programs",
	"os/user":                            "the machine",
	"os/signal":                          "the machine",
	"plugin":                             "other code",
	"syscall":                            "the machine",
	"math/rand":                          "chance",
	"math/rand/v2":                       "chance",
	"crypto/rand":                        "chance",
	"hash/maphash":                       "chance",
	"io/ioutil":                          "files",
	"expvar":                             "the process",
	"log":                                "a global logger",
	"log/slog":                           "a global logger",
	"github.com/spf13/viper":             "configuration from outside",
	"github.com/prerig/prerig/pipeline/": "what stands above it",
	"github.com/go-git/go-git/":          "repositories",
	"github.com/google/go-containerregistry/": "registries",
	"k8s.io/client-go/":                       "clusters",
	"sigs.k8s.io/kustomize/api/":              "files and plugins",
}

// forbiddenNames are the functions and variables of allowed packages that read what is not in the input.
var forbiddenNames = map[string][]string{
	"os": nil, // all but those of osAllowed
	"time": {
		"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep", "Local", "LoadLocation",
	},
	"path/filepath": {"Abs", "Glob", "Walk", "WalkDir", "EvalSymlinks"},
	"runtime":       {"GOROOT", "Caller", "Callers", "NumGoroutine", "ReadMemStats"},
	"html/template": {"ParseFiles", "ParseGlob", "ParseFS"},
	"text/template": {"ParseFiles", "ParseGlob", "ParseFS"},
}

// values are packages below a forbidden one that only deal with values.
var values = []string{"net/netip", "net/url", "net/mail", "net/textproto"}

// mainImports are what the main may import: it ends when it is told to.
var mainImports = []string{"os/signal", "syscall"}

// osAllowed is what the main may use of os.
var osAllowed = []string{"Args", "Interrupt", "Exit", "Stdin", "Stdout", "Stderr"}

// TestImports reads every source file under fn but those of tests and of the tools in fn/internal.
func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "internal" || d.Name() == "testdata" || d.Name() == "gen" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		for _, problem := range problems(t, path, strings.HasPrefix(filepath.ToSlash(rel), "cmd/")) {
			t.Errorf("%s: %s", filepath.ToSlash(rel), problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("read only %d files: is %s still where the packages are?", files, root)
	}
}

// problems says what a file imports or calls that it must not.
func problems(t *testing.T, path string, isMain bool) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	imported := map[string]string{} // local name to path
	for _, spec := range file.Imports {
		pkg, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if why, ok := isForbidden(pkg); ok && !(isMain && slices.Contains(mainImports, pkg)) {
			out = append(out, "imports "+pkg+", which is for "+why)
		}
		name := pkg[strings.LastIndex(pkg, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if _, watched := forbiddenNames[pkg]; watched && name == "." {
			out = append(out, "imports "+pkg+" without its name, which hides what it uses of it")
		}
		imported[name] = pkg
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		pkg := imported[x.Name]
		used := pkg + "." + sel.Sel.Name
		names, watched := forbiddenNames[pkg]
		switch {
		case !watched:
		case pkg == "os" && !(isMain && slices.Contains(osAllowed, sel.Sel.Name)),
			slices.Contains(names, sel.Sel.Name):
			out = append(out, "uses "+used+" at line "+strconv.Itoa(fset.Position(sel.Pos()).Line))
		}
		return true
	})
	return out
}

// isForbidden says why a package must not be imported.
func isForbidden(pkg string) (string, bool) {
	if slices.Contains(values, pkg) {
		return "", false
	}
	for name, why := range forbidden {
		if pkg == name || strings.HasSuffix(name, "/") && strings.HasPrefix(pkg, name) {
			return why, true
		}
	}
	return "", false
}

// TestProblems makes sure that the check sees what it is for.
func TestProblems(t *testing.T) {
	got := problems(t, filepath.Join("testdata", "guilty.go"), false)
	want := []string{
		"imports net/http, which is for network",
		"imports time without its name, which hides what it uses of it",
		"imports math/rand/v2, which is for chance",
		"uses os.Getenv at line 17",
		"uses os.ReadFile at line 18",
		"uses path/filepath.Glob at line 19",
		"uses time.Now at line 20",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var update = flag.Bool("update", false, "write the expected files anew")

// TestLinked compares what packages of other modules in the binary import, of that which ours must not, with a list that
// is looked through when it changes. Linking code is not running it: that nothing of it runs is what the tests of the
// binary show.
func TestLinked(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Module,Imports", "github.com/prerig/prerig/fn/cmd/prerig-fn")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing what the binary links: %v", err)
	}
	var lines []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     struct{ Main bool }
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard || p.Module.Main {
			continue
		}
		imports := slices.DeleteFunc(p.Imports, func(pkg string) bool { _, no := isForbidden(pkg); return !no })
		if len(imports) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s\n", p.ImportPath, strings.Join(imports, " ")))
		}
	}
	slices.Sort(lines) // Their order in the binary changes with our own imports.
	got := strings.Join(lines, "")
	golden := filepath.Join("testdata", "linked.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("packages of other modules import, of what ours must not (look through it, then run with -update):\n%s\nand not\n%s", got, want)
	}
}
