// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences, by their names in licensecheck, that code linked into our binaries may have. All of them are
// permissive but MPL-2.0, whose conditions end at its own files, which we do not change.
var allowed = []string{
	"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-2-Clause-FreeBSD", "ISC", "MIT", "MIT-0", "MPL-2.0",
	"GooglePatentClause", "GooglePatentsFile", "CC0-1.0", "Unlicense", "0BSD",
}

// minPercent is how much of a licence file must be known text. Copyright lines and short preambles take the rest.
const minPercent = 60

// module is a module with the licence files that concern its linked packages.
type module struct {
	path, version string
	files         []licenseFile
}

// licenseFile is one file with a licence or a notice.
type licenseFile struct {
	path string // from the module's root
	text []byte
}

// listed is what is read of the output of go list.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// findLinkedModules finds the modules that packages link, apart from the standard library and our own, sorted by path
// and version. A package that is a directory with a go.mod of its own links what that names.
func findLinkedModules(ctx context.Context, packages []string) ([]module, error) {
	found := map[string]*module{}
	var ofThis []string
	for _, p := range packages {
		if _, err := os.Stat(filepath.Join(p, "go.mod")); err != nil {
			ofThis = append(ofThis, p)
			continue
		}
		if err := addLinked(ctx, found, p, []string{"."}); err != nil {
			return nil, err
		}
	}
	if len(ofThis) > 0 {
		if err := addLinked(ctx, found, "", ofThis); err != nil {
			return nil, err
		}
	}
	var modules []module
	for _, m := range found {
		slices.SortFunc(m.files, func(a, b licenseFile) int { return strings.Compare(a.path, b.path) })
		modules = append(modules, *m)
	}
	slices.SortFunc(modules, func(a, b module) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.version, b.version))
	})
	return modules, nil
}

// addLinked adds the modules that packages of the module in a directory link; "" is the working directory.
func addLinked(ctx context.Context, found map[string]*module, dir string, packages []string) error {
	args := append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing what %s links: %w", strings.Join(packages, " "), err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("reading the output of go list: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		key := p.Module.Path + "@" + p.Module.Version
		m := found[key]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version}
			found[key] = m
		}
		if err := m.collectLicenseFiles(p.Module.Dir, p.Dir); err != nil {
			return err
		}
	}
	return nil
}

var (
	licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)
	sourceName  = regexp.MustCompile(`(?i)\.(go|s|c|h|py|sh|json|docs)$`) // also LICENSE.docs, for documentation
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents)`)
)

// collectLicenseFiles adds the licence files in dir and in the directories above it, up to the module's root: forked
// code often lives in a directory with a licence of its own.
func (m *module) collectLicenseFiles(root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("looking for licences of %s: %w", m.path, err)
		}
		for _, e := range entries {
			if e.IsDir() || !licenseName.MatchString(e.Name()) || sourceName.MatchString(e.Name()) {
				continue
			}
			if err := m.addLicenseFile(root, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
		if dir == root || !strings.HasPrefix(dir, root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// addLicenseFile reads a licence file, once.
func (m *module) addLicenseFile(root, name string) error {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return fmt.Errorf("placing %s: %w", name, err)
	}
	rel = filepath.ToSlash(rel)
	if slices.ContainsFunc(m.files, func(f licenseFile) bool { return f.path == rel }) {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading a licence of %s: %w", m.path, err)
	}
	m.files = append(m.files, licenseFile{path: rel, text: text})
	return nil
}

// checkModuleLicenses returns an error that lists all problems with the licences of modules.
func checkModuleLicenses(modules []module) error {
	var errs []error
	for _, m := range modules {
		licensed := false
		for _, f := range m.files {
			known, err := isAllowedLicense(f)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s@%s: %w", m.path, m.version, err))
			}
			licensed = licensed || known
		}
		if !licensed {
			errs = append(errs, fmt.Errorf("%s@%s: no licence that is known", m.path, m.version))
		}
	}
	return errors.Join(errs...)
}

// isAllowedLicense reports whether a file holds an allowed licence, and fails where it holds one that is not allowed,
// or, unless it is a notice, text that is no known licence.
func isAllowedLicense(f licenseFile) (bool, error) {
	cover := licensecheck.Scan(f.text)
	licensed := false
	for _, match := range cover.Match {
		if match.IsURL {
			continue
		}
		if !slices.Contains(allowed, match.ID) {
			return licensed, fmt.Errorf("%s holds %s, which is not allowed", f.path, match.ID)
		}
		licensed = true
	}
	if noticeName.MatchString(filepath.Base(f.path)) {
		return false, nil
	}
	if cover.Percent < minPercent {
		return false, fmt.Errorf("only %.0f%% of %s is text of a known licence", cover.Percent, f.path)
	}
	return licensed, nil
}

// writeLicenseTexts prints the texts of all modules.
func writeLicenseTexts(w io.Writer, modules []module) {
	fmt.Fprint(w, "This program contains the modules below, under their own licences.\n")
	for _, m := range modules {
		for _, f := range m.files {
			fmt.Fprintf(w, "\n%s\n%s %s, %s\n%s\n\n", strings.Repeat("=", 80), m.path, m.version, f.path, strings.Repeat("=", 80))
			fmt.Fprintf(w, "%s\n", bytes.TrimSpace(f.text))
		}
	}
}
