// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package release creates everything that a release of Prerig consists of: archives, images, manifests, packages,
// metadata about their contents and origin, and signatures. The same commit and version yield the same bytes,
// wherever and by whomever they are built: the only inputs from the machine are Go, the modules in its cache, and
// git.
package release

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Platform is an operating system and a processor, as Go names them.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "_" + p.Arch }

// Platforms are those that a release is made for.
var Platforms = []Platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
	{"windows", "arm64"},
}

// Options are what a release is made of.
type Options struct {
	// Root is the work tree, and Out the directory of the release, which is recreated.
	Root, Out string
	// Version is the release's, such as v0.2.0.
	Version string
	// Images is what the names of the images begin with: a registry, and perhaps a path.
	Images string
	// URL is where the files of the release are downloaded from.
	URL string
	// Builder is a URI of what makes the release, for its provenance.
	Builder string
	// Key is a file with the private key to sign with; Password is that of an encrypted one.
	Key, Password string
	// Unsigned must be set if no key is available.
	Unsigned bool
	// Platforms are some of all platforms, to test with.
	Platforms []Platform
}

const usage = `release makes a release: make release VERSION=v0.2.0

  release -version v0.2.0 (-key FILE | -unsigned) [-root DIR] [-out DIR] [-images REGISTRY] [-url URL] [-builder URI] [-platforms OS/ARCH,...]
  release push -out DIR -images REGISTRY

COSIGN_PASSWORD is the password of an encrypted key.

Flags:
`

// parseCommandLine reads the command line.
func parseCommandLine(args []string, stderr io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&o.Root, "root", ".", "the work tree, without changes that are not committed")
	flags.StringVar(&o.Out, "out", "dist/release", "directory for the release; an older one is replaced")
	flags.StringVar(&o.Version, "version", "", "version of the release, such as v0.2.0")
	flags.StringVar(&o.Images, "images", "localhost", "what the names of the images begin with")
	flags.StringVar(&o.URL, "url", "", "where the files will be downloaded from (default: the release at GitHub)")
	flags.StringVar(&o.Builder, "builder", "https://github.com/prerig/prerig/blob/main/Makefile#release",
		"URI of what makes the release")
	flags.StringVar(&o.Key, "key", "", "file with the private key to sign with: ECDSA P-256 in PEM, or a cosign.key")
	flags.BoolVar(&o.Unsigned, "unsigned", false, "sign nothing")
	platforms := flags.String("platforms", "", "only these, as OS/ARCH,... (default: all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("there is no argument %q; see release -h", flags.Arg(0))
	}
	o.Password = os.Getenv("COSIGN_PASSWORD")
	o.Platforms = Platforms
	if *platforms != "" {
		o.Platforms = nil
		for name := range strings.SplitSeq(*platforms, ",") {
			system, arch, _ := strings.Cut(name, "/")
			if !slices.Contains(Platforms, Platform{system, arch}) {
				return o, fmt.Errorf("-platforms has %q; it can have %s", name, strings.ReplaceAll(fmt.Sprint(Platforms), "_", "/"))
			}
			o.Platforms = append(o.Platforms, Platform{system, arch})
		}
	}
	return o, nil
}

var imagesPattern = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$`)

// validateAndComplete validates options, and completes them.
func (o *Options) validateAndComplete() error {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(o.Version, "v"))
	switch {
	case o.Version == "":
		return errors.New("VERSION is missing: make release VERSION=v0.2.0")
	case !strings.HasPrefix(o.Version, "v"), err != nil:
		return fmt.Errorf("VERSION is %q, which is no semantic version with a v before it, such as v0.2.0 or v0.2.0-rc.1", o.Version)
	case version.Metadata() != "":
		return fmt.Errorf("VERSION is %q; the part from + on cannot be the tag of an image, so leave it out", o.Version)
	case !imagesPattern.MatchString(o.Images):
		return fmt.Errorf("RELEASE_IMAGES is %q; it is a registry and perhaps a path, such as ghcr.io/prerig, without https:// and tag", o.Images)
	case o.Key == "" && !o.Unsigned:
		return errors.New("there is no key to sign with: RELEASE_KEY=FILE names one (ECDSA P-256 in PEM, or a cosign.key with its password " +
			"in COSIGN_PASSWORD), and RELEASE_UNSIGNED=1 makes a release without signatures")
	case o.Key != "" && o.Unsigned:
		return errors.New("RELEASE_KEY and RELEASE_UNSIGNED are both set: leave one of them out")
	}
	if o.URL == "" {
		o.URL = "https://github.com/prerig/prerig/releases/download/" + o.Version
	}
	for _, dir := range []*string{&o.Root, &o.Out} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	return nil
}

// Main runs the command line.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	run, command := Make, args
	if len(args) > 0 && args[0] == "push" {
		run, command = pushReleaseImages, args[1:]
	}
	o, err := parseCommandLine(command, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return run(ctx, o, stdout)
}
