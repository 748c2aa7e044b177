// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package testprograms builds the programs that tests run: this module's own, and those to compare with.
package testprograms

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/internal/moduleroot"
)

// A Program is one that tests run.
type Program struct {
	// Name is that of its file.
	Name string
	// pkg is the main package, and flags what go build needs besides.
	pkg   string
	flags []string
	// module is the module of pkg where that is built with the dependencies that the module itself pins. Its version is
	// that of go.mod.
	module string
	// test is set for the tests of pkg, as a program.
	test bool
	// beside is a program that this one starts, from its own directory.
	beside *Program
	// apart is the directory of a program that is a module of its own. It is built into a directory of its own, so that
	// only the tests that ask for it have it next to prerig.
	apart string
}

// TestsOf are the tests of a package as a program, without the race detector.
func TestsOf(pkg string) Program {
	return Program{Name: path.Base(pkg) + ".test", pkg: pkg, test: true}
}

// Programs are built without cgo, paths and debug tables, as `make build` does it, so that what one has compiled serves
// the others.
var (
	Prerig       = Program{Name: "prerig", pkg: "github.com/prerig/prerig/pipeline/cmd/prerig", beside: &PrerigRender}
	PrerigRender = Program{Name: "prerig-render", pkg: "github.com/prerig/prerig/pipeline/cmd/prerig-render"}
	// PrerigValidate is Kubernetes' own validation; its first build lasts a minute.
	PrerigValidate = Program{Name: "prerig-validate", apart: "pipeline/cmd/prerig-validate", pkg: "."}
	PrerigFn       = Program{Name: "prerig-fn", pkg: "github.com/prerig/prerig/fn/cmd/prerig-fn"}
	Kustomize      = Program{Name: "kustomize", pkg: "sigs.k8s.io/kustomize/kustomize/v5"}
	// ControlPlane runs an API server for tests, which it builds; the first build lasts many minutes.
	ControlPlane = Program{Name: "controlplane", pkg: "github.com/prerig/prerig/fn/internal/cluster/cmd/controlplane"}
	// Helm is the helm command; its first build lasts minutes.
	Helm = Program{Name: "helm", pkg: "helm.sh/helm/v4/cmd/helm", module: "helm.sh/helm/v4"}
	// Promtool has a module file of its own, so that what it links is not among our dependencies; without service
	// discovery, which rules do not need, its first build lasts about two minutes.
	Promtool = Program{Name: "promtool", pkg: "github.com/prometheus/prometheus/cmd/promtool",
		flags: []string{"-modfile=.ci/promtool.mod", "-tags=remove_all_sd"}}
)

// Build builds programs and returns the directory that holds them. That is the same for all packages that are tested,
// and only what is not up to date is linked. An error bears what go printed.
func Build(programs ...Program) (dir string, err error) {
	root, err := moduleroot.Dir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(root, "dist", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the directory of the programs: %w", err)
	}
	unlock, err := lockBuilds(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, p := range programs {
		if p.beside != nil {
			if err := p.beside.buildProgram(root, dir); err != nil {
				return "", fmt.Errorf("building %s: %w", p.beside.Name, err)
			}
		}
		if err := p.buildProgram(root, dir); err != nil {
			return "", fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	return dir, nil
}

// PrerigPath is the path of Prerig, RendererPath that of its renderer, and ValidatorPath that of prerig-validate. Each
// is built once for all tests of a package.
var (
	PrerigPath    = sync.OnceValues(func() (string, error) { return Prerig.Path() })
	RendererPath  = sync.OnceValues(func() (string, error) { return PrerigRender.Path() })
	ValidatorPath = sync.OnceValues(func() (string, error) { return PrerigValidate.Path() })
)

// PlaceRenderer links the renderer next to the running program, which is a test binary, so that code of prerig
// finds it as in an installation. The go command removes the directory after the test.
func PlaceRenderer() error {
	renderer, err := RendererPath()
	if err != nil {
		return err
	}
	return placeBesideTest(renderer)
}

// PlaceValidator links prerig-validate next to the running program, as PlaceRenderer does with the renderer.
func PlaceValidator() error {
	validator, err := ValidatorPath()
	if err != nil {
		return err
	}
	return placeBesideTest(validator)
}

func placeBesideTest(program string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("placing %s: %w", filepath.Base(program), err)
	}
	link := filepath.Join(filepath.Dir(self), filepath.Base(program))
	if link == program {
		return nil
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("placing %s: %w", filepath.Base(program), err)
	}
	if err := os.Symlink(program, link); err != nil {
		return fmt.Errorf("placing %s: %w", filepath.Base(program), err)
	}
	return nil
}

// Install links prerig, its renderer and prerig-validate into a directory, as they are released.
func Install(dir string) error {
	built, err := Build(Prerig)
	if err != nil {
		return err
	}
	validator, err := ValidatorPath()
	if err != nil {
		return err
	}
	for _, program := range []string{filepath.Join(built, Prerig.Name), filepath.Join(built, PrerigRender.Name), validator} {
		// The programs look beside the file that a symbolic link names, so only a hard link or a copy will do.
		if err := linkOrCopy(program, filepath.Join(dir, filepath.Base(program))); err != nil {
			return fmt.Errorf("installing %s: %w", filepath.Base(program), err)
		}
	}
	return nil
}

func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// Path builds the program and returns where it is, as Build does.
func (p Program) Path() (string, error) {
	dir, err := Build(p)
	return p.file(dir), err
}

// file returns the program's file in the directory of the programs.
func (p Program) file(dir string) string {
	if p.apart != "" {
		dir = filepath.Join(dir, path.Base(p.apart))
	}
	return filepath.Join(dir, p.Name)
}

func (p Program) buildProgram(root, dir string) error {
	command := []string{"build"}
	if p.test {
		command = []string{"test", "-c"}
	}
	args := append(command, "-trimpath", "-ldflags", "-s -w", "-o", p.file(dir))
	if p.module != "" {
		version, err := runGoCommand(root, "list", "-m", "-f", "{{.Version}}", p.module)
		if err != nil {
			return err
		}
		args = []string{"install", "-trimpath", "-ldflags", "-s -w", p.pkg + "@" + version}
	} else {
		args = append(append(args, p.flags...), p.pkg)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = filepath.Join(root, filepath.FromSlash(p.apart)), append(os.Environ(), "CGO_ENABLED=0",
		"GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func runGoCommand(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w", args[0], err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// lockBuilds waits until no other process builds.
func lockBuilds(name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of the programs: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		switch {
		case err == nil:
			return func() { file.Close() }, nil
		case !errors.Is(err, unix.EINTR):
			file.Close()
			return nil, fmt.Errorf("locking the directory of the programs: %w", err)
		}
	}
}
