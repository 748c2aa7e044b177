// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// release is one that is being made.
type release struct {
	Options
	revision *revision
	signer   *signer // nil for one without signatures
	work     string  // a directory for what is not released by itself
	log      io.Writer

	*output
	builds    []build
	published []image
}

// output is the directory of a release.
type output struct {
	dir     string
	digests map[string]string // of the files, sha256 in hex
}

// build is a product for a platform, with the archive that it was packed in.
type build struct {
	product  product
	platform Platform
	binaries []binary
	archive  string
}

// Make creates a release, and logs what it creates.
func Make(ctx context.Context, o Options, log io.Writer) (err error) {
	if err := o.validateAndComplete(); err != nil {
		return err
	}
	r := &release{Options: o, log: log, output: &output{dir: o.Out, digests: map[string]string{}}}
	// Before anything is built, as it is what people get wrong.
	if o.Key != "" {
		if r.signer, err = readSigner(o.Key, o.Password); err != nil {
			return err
		}
	}
	if r.revision, err = readRevision(ctx, o.Root, o.Version); err != nil {
		return err
	}
	if err := os.RemoveAll(o.Out); err != nil {
		return fmt.Errorf("making room for the release: %w", err)
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "prerig-release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"manual pages and completions", r.makeManual},
		{"binaries and archives", r.makeBuilds},
		{"images", r.makeImages},
		{"chart and manifests", r.makeManifests},
		{"packages", r.makePackages},
		{"notes", r.makeNotes},
		{"bills of materials", r.makeBills},
		{"provenance", r.makeProvenance},
		{"checksums and signatures", r.makeChecksums},
	} {
		r.logf("%s ...", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("making %s: %w", step.what, err)
		}
	}
	r.logf("%s of commit %s is in %s: %d files", o.Version, r.revision.commit, o.Out, len(r.digests))
	if r.signer == nil {
		r.logf("It is NOT signed: no key was given.")
	}
	return nil
}

func (r *release) logf(format string, args ...any) { fmt.Fprintf(r.log, format+"\n", args...) }

// writeReleaseFile writes a file of the release.
func (o *output) writeReleaseFile(name string, text []byte) error {
	sum := sha256.Sum256(text)
	o.digests[name] = hex.EncodeToString(sum[:])
	return os.WriteFile(filepath.Join(o.dir, name), text, modeFile)
}

func (o *output) writeYAML(name string, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return o.writeReleaseFile(name, text)
}

func (r *release) makeManual(ctx context.Context) error {
	_, err := commandOutput(ctx, r.Root, goEnvironment(Platform{}), "go", "run", "./pipeline/internal/manual", "-version", r.Version,
		"-date", r.revision.time.Format(time.DateOnly), filepath.Join(r.work, "manual"))
	return err
}

func (r *release) makeBuilds(ctx context.Context) error {
	collector := filepath.Join(r.work, "licenses")
	if _, err := commandOutput(ctx, r.Root, goEnvironment(Platform{}), "go", "build", "-o", collector, "./fn/internal/licenses"); err != nil {
		return err
	}
	for _, platform := range r.Platforms {
		for _, p := range products {
			r.logf("  %s for %s", p.name, platform)
			binaries, err := r.buildProductBinaries(ctx, p, platform)
			if err != nil {
				return err
			}
			args := []string{"-o", licenseFilePath(r.work, p, platform)}
			for _, one := range p.programs {
				args = append(args, one.pkg)
			}
			if _, err := commandOutput(ctx, r.Root, goEnvironment(platform), collector, args...); err != nil {
				return err
			}
			name, err := r.packProductArchive(p, platform, binaries)
			if err != nil {
				return err
			}
			r.builds = append(r.builds, build{p, platform, binaries, name})
		}
	}
	return nil
}

// licenseFilePath returns the file with the licences of what a product links.
func licenseFilePath(work string, p product, platform Platform) string {
	return filepath.Join(work, "licenses-"+p.name+"-"+platform.String())
}

// buildsOf returns the builds of a product for an operating system.
func (r *release) buildsOf(product, system string) []build {
	return slices.DeleteFunc(slices.Clone(r.builds), func(b build) bool { return b.product.name != product || b.platform.OS != system })
}

// checksumsFile lists the digests of all files but those that sign it.
const checksumsFile = "checksums.txt"

func (r *release) makeChecksums(context.Context) error {
	var text strings.Builder
	for _, name := range r.sortedFileNames() {
		fmt.Fprintf(&text, "%s  %s\n", r.digests[name], name)
	}
	if err := r.writeReleaseFile(checksumsFile, []byte(text.String())); err != nil {
		return err
	}
	if r.signer == nil {
		return nil
	}
	bundle, err := r.signer.signBlob([]byte(text.String()))
	if err != nil {
		return err
	}
	if err := r.writeReleaseFile(checksumsFile+".sigstore.json", bundle); err != nil {
		return err
	}
	return r.writeReleaseFile("cosign.pub", r.signer.public)
}

// sortedFileNames returns the names of what was made so far, sorted.
func (o *output) sortedFileNames() []string { return slices.Sorted(maps.Keys(o.digests)) }
