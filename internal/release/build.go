// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/prerig/prerig"

// program is one that is released.
type program struct {
	name, pkg string
	apart     bool // in a module of its own
}

var (
	command   = program{name: "prerig", pkg: "./pipeline/cmd/prerig"}
	renderer  = program{name: "prerig-render", pkg: "./pipeline/cmd/prerig-render"}
	validator = program{name: "prerig-validate", pkg: "./pipeline/cmd/prerig-validate", apart: true}
	function  = program{name: "prerig-fn", pkg: "./fn/cmd/prerig-fn"}
)

// product is what is downloaded together: its name is that of its first program. The renderer is built before the
// command, which embeds the identity of the renderer it was built with.
type product struct {
	name, summary string
	programs      []program
}

var products = []product{
	{"prerig", "Injects sidecars into Kubernetes manifests at build time", []program{renderer, validator, command}},
	{"prerig-fn", "KRM function that injects sidecars at build time", []program{function}},
}

// binary is a program that was built.
type binary struct {
	program  program
	platform Platform
	file     string // where it is
	info     *buildinfo.BuildInfo
}

// executableFileName is that of its file.
func (b binary) executableFileName() string {
	if b.platform.OS == "windows" {
		return b.program.name + ".exe"
	}
	return b.program.name
}

// decidesBuild are variables that change what Go builds; a release does not depend on them.
var decidesBuild = []string{
	"GOFLAGS", "GOEXPERIMENT", "GOFIPS140", "GOAMD64", "GOARM64", "GOOS", "GOARCH", "CGO_ENABLED", "GOWORK",
	"GOTOOLCHAIN", "GODEBUG", "GO111MODULE",
}

// goEnvironment is that of Go commands, for this machine where no platform is named.
func goEnvironment(platform Platform) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(decidesBuild, name) || strings.HasPrefix(name, "PRERIG_")
	})
	env = append(env, "GOFLAGS=-mod=readonly -trimpath -buildvcs=false", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0",
		"GOWORK=off", "GOTOOLCHAIN=local")
	if platform.OS != "" {
		env = append(env, "GOOS="+platform.OS, "GOARCH="+platform.Arch)
	}
	return env
}

// buildProductBinaries builds a product for a platform.
func (r *release) buildProductBinaries(ctx context.Context, p product, platform Platform) ([]binary, error) {
	dir := filepath.Join(r.work, "bin", platform.String())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	flags := "-s -w -X main.version=" + r.Version + " -X " + module + "/fn/version.linkedCommit=" + r.revision.commit +
		" -X " + module + "/fn/version.linkedDate=" + r.revision.date()
	var binaries []binary
	for _, one := range p.programs {
		b := binary{program: one, platform: platform}
		b.file = filepath.Join(dir, b.executableFileName())
		root, pkg := r.Root, one.pkg
		if one.apart {
			root, pkg = filepath.Join(r.Root, filepath.FromSlash(one.pkg)), "."
		}
		if _, err := commandOutput(ctx, root, goEnvironment(platform), "go", "build", "-o", b.file, "-ldflags", flags, pkg); err != nil {
			return nil, err
		}
		var err error
		if b.info, err = buildinfo.ReadFile(b.file); err != nil {
			return nil, fmt.Errorf("reading what %s was built of: %w", b.executableFileName(), err)
		}
		if one == renderer {
			id, err := commandOutput(ctx, r.Root, goEnvironment(Platform{}), "go", "tool", "buildid", b.file)
			if err != nil {
				return nil, err
			}
			flags += " -X " + module + "/pipeline/render.builtWith=go:" + id
		}
		binaries = append(binaries, b)
	}
	return binaries, nil
}
