// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// makePackages makes what package managers take.
func (r *release) makePackages(context.Context) error {
	for _, p := range products {
		for _, b := range r.buildsOf(p.name, "linux") {
			if err := r.makeLinuxPackages(b); err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, b.platform, err)
			}
		}
	}
	downloads := r.downloadsOf(command.name)
	if formula := homebrewFormula(r.Version, downloads); formula != "" {
		if err := r.writeReleaseFile("prerig.rb", []byte(formula)); err != nil {
			return err
		}
	}
	if err := r.writeYAML("krew.yaml", krewManifest(r.Version, downloads)); err != nil {
		return err
	}
	if err := r.writeYAML("flux-plugin.yaml", fluxPlugin(r.Version, downloads)); err != nil {
		return err
	}
	return r.makeCatalogs()
}

// manuals and completions by the directory in the archive, and where they are installed.
var installed = map[string]string{
	"man/man1": "/usr/share/man/man1", "completions/prerig.bash": "/usr/share/bash-completion/completions/prerig",
	"completions/_prerig":     "/usr/share/zsh/site-functions/_prerig",
	"completions/prerig.fish": "/usr/share/fish/vendor_completions.d/prerig.fish",
}

// makeLinuxPackages makes a .deb and an .rpm.
func (r *release) makeLinuxPackages(b build) error {
	for _, one := range []struct {
		packager nfpm.Packager
		ending   string
	}{{deb.Default, "deb"}, {rpm.DefaultRPM, "rpm"}} {
		info, err := r.packageInfo(b)
		if err != nil {
			return err
		}
		if err := nfpm.PrepareForPackager(info, one.ending); err != nil {
			return err
		}
		var text bytes.Buffer
		if err := one.packager.Package(info, &text); err != nil {
			return err
		}
		if err := r.writeReleaseFile(fmt.Sprintf("%s_%s_%s.%s", b.product.name, r.Version, b.platform, one.ending), text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) packageInfo(b build) (*nfpm.Info, error) {
	at := &files.ContentFileInfo{Mode: modeFile, MTime: r.revision.time, Owner: "root", Group: "root"}
	runs := &files.ContentFileInfo{Mode: modeProgram, MTime: r.revision.time, Owner: "root", Group: "root"}
	doc := "/usr/share/doc/" + b.product.name + "/"
	contents := files.Contents{
		{Source: filepath.Join(r.Root, "LICENSE"), Destination: doc + "copyright", FileInfo: at},
		{Source: licenseFilePath(r.work, b.product, b.platform), Destination: doc + "THIRD-PARTY", FileInfo: at},
	}
	for _, one := range b.binaries {
		contents = append(contents, &files.Content{Source: one.file, Destination: "/usr/bin/" + one.executableFileName(), FileInfo: runs})
	}
	if b.product.name == command.name {
		examples, err := quickStartFiles(r.Root)
		if err != nil {
			return nil, err
		}
		for _, e := range examples {
			contents = append(contents, &files.Content{Source: filepath.Join(r.Root, filepath.FromSlash(e.name)), Destination: doc + e.name, FileInfo: at})
		}
		manual, err := readEntries(filepath.Join(r.work, "manual"), "")
		if err != nil {
			return nil, err
		}
		for _, e := range manual {
			destination, ok := installed[e.name]
			if dir, below := installed[path.Dir(e.name)]; below {
				destination, ok = path.Join(dir, path.Base(e.name)), true
			}
			if ok {
				contents = append(contents, &files.Content{Source: filepath.Join(r.work, "manual", filepath.FromSlash(e.name)), Destination: destination, FileInfo: at})
			}
		}
	}
	return nfpm.WithDefaults(&nfpm.Info{
		Name: b.product.name, Arch: b.platform.Arch, Platform: b.platform.OS, Version: r.Version,
		VersionSchema: "semver", Release: "1",
		Section: "utils", Priority: "optional", Maintainer: "The Prerig Authors <maintainers@prerig.dev>",
		Vendor:      "The Prerig Authors",
		Description: b.product.summary, Homepage: "https://github.com/prerig/prerig", License: "Apache-2.0",
		MTime:           r.revision.time,
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			RPM: nfpm.RPM{BuildHost: "prerig.dev", Summary: b.product.summary},
		},
	}), nil
}

// homebrewFormula returns the formula for Homebrew, for the systems that it knows, or "" if there is no build for them.
func homebrewFormula(version string, downloads []download) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# SPDX-License-Identifier: Apache-2.0\nclass Prerig < Formula\n  desc %q\n  homepage \"https://github.com/prerig/prerig\"\n"+
		"  version %q\n  license \"Apache-2.0\"\n", command.productSummary(), strings.TrimPrefix(version, "v"))
	found := false
	for _, system := range []struct{ os, block string }{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		ofSystem := slices.DeleteFunc(slices.Clone(downloads), func(d download) bool { return d.platform.OS != system.os })
		if len(ofSystem) == 0 {
			continue
		}
		found = true
		fmt.Fprintf(&text, "\n  %s do\n", system.block)
		for _, d := range ofSystem {
			processor := map[string]string{"amd64": "on_intel", "arm64": "on_arm"}[d.platform.Arch]
			fmt.Fprintf(&text, "    %s do\n      url \"%s\"\n      sha256 %q\n    end\n", processor, d.url, d.digest)
		}
		text.WriteString("  end\n")
	}
	if !found {
		return ""
	}
	// The renderer and the validation have to be beside the command.
	text.WriteString(`
  def install
    bin.install "prerig"
    bin.install "prerig-render"
    bin.install "prerig-validate"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/prerig.bash" => "prerig"
    zsh_completion.install "completions/_prerig"
    fish_completion.install "completions/prerig.fish"
    pkgshare.install "examples"
  end

  test do
    assert_match "prerig v#{version} ", shell_output("#{bin}/prerig version")
  end
end
`)
	return text.String()
}

// productSummary returns the summary of the product that the program is in.
func (p program) productSummary() string {
	for _, one := range products {
		if one.name == p.name {
			return one.summary
		}
	}
	return ""
}
