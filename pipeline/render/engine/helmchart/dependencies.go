// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Archive is a chart of a repository that was fetched beforehand.
type Archive struct {
	// Repository is the URL of the repository, Name the chart's name in it and Range the version that is asked for.
	Repository, Name, Range string
	// Version is the one that is locked. The archive must hold the chart of that name and version.
	Version string
	// Path of the archive among the files.
	Path string
}

// maxNestedCharts bounds charts of the source that depend on each other by file://.
const maxNestedCharts = 8

// readFiles reads the files of the release's chart, and adds dependencies that are not packed in it.
func (c *chartRender) readFiles(files tree.Reader) (err error) {
	if c.spec.Repository == "" {
		c.files, c.directory, err = readChart(files, c.spec.Chart)
		if err != nil || !c.directory {
			return err
		}
		c.files, err = c.addDependencies(files, c.spec.Chart, c.files, 0)
		return err
	}
	found := c.findArchive(c.spec.Repository, c.spec.Chart, c.spec.Version)
	if found == nil {
		return fmt.Errorf("the chart %s of %s is not locked; run prerig lock and commit what it writes", strings.TrimSpace(c.spec.Chart+" "+c.spec.Version), c.spec.Repository)
	}
	c.files, err = found.readLockedFiles(files)
	return err
}

func (c *chartRender) findArchive(repository, name, versions string) *Archive {
	for i, one := range c.options.Archives {
		if v1alpha1.NormalChartRepository(one.Repository) == v1alpha1.NormalChartRepository(repository) && one.Name == name && one.Range == versions {
			return &c.options.Archives[i]
		}
	}
	return nil
}

// readLockedFiles reads the files of the archive, if it holds what is locked.
func (a *Archive) readLockedFiles(files tree.Reader) ([]*archive.BufferedFile, error) {
	content, err := files.Read(a.Path)
	if err != nil {
		return nil, err
	}
	name := a.Name + "-" + a.Version + ".tgz"
	if !bytes.HasPrefix(content, gzipStart) {
		return nil, fmt.Errorf("what %s has as %s is not an archive that helm package made", a.Repository, name)
	}
	if err := newArchiveBudget().checkArchive(name, content, 0); err != nil {
		return nil, err
	}
	found, err := archive.LoadArchiveFiles(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	meta, err := metadataOf(found)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if meta.Name != a.Name || !isSameVersion(meta.Version, a.Version) {
		// The error does not name the other chart: the author of the lock may not be allowed to read it.
		return nil, fmt.Errorf("the archive of %s holds another chart than %s %s, which is locked", a.Repository, a.Name, a.Version)
	}
	return found, nil
}

// isSameVersion reports whether a repository may call a chart's version so: v1.2 is 1.2.0 to Helm.
func isSameVersion(a, b string) bool {
	if a == b {
		return true
	}
	first, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	second, err := semver.NewVersion(b)
	return err == nil && first.Equal(second) && first.Metadata() == second.Metadata()
}

// metadataOf reads a chart's own metadata, without its dependencies.
func metadataOf(files []*archive.BufferedFile) (*chart.Metadata, error) {
	own := slices.DeleteFunc(slices.Clone(files), func(f *archive.BufferedFile) bool {
		return f.Name != "Chart.yaml" && f.Name != "requirements.yaml"
	})
	root, err := loader.LoadFiles(own)
	if err != nil {
		return nil, err
	}
	return root.Metadata, nil
}

// CheckArchive reports whether an archive holds the chart of a name and version, within the bounds of archives.
func CheckArchive(content []byte, name, version string) error {
	one := &Archive{Repository: "the repository", Name: name, Version: version}
	_, err := one.readLockedFiles(singleFile(content))
	return err
}

// singleFile is a reader that has one content under every name.
type singleFile []byte

// Read implements tree.Reader.
func (s singleFile) Read(string) ([]byte, error) { return s, nil }

// Lookup implements tree.Reader.
func (s singleFile) Lookup(name string) (tree.Info, error) { return tree.Info{Path: name}, nil }

// List implements tree.Reader.
func (s singleFile) List(string) ([]tree.Info, error) { return nil, io.EOF }

// ReadFile returns a file of a release's chart by its path in the chart, or fs.ErrNotExist if it does not exist.
func ReadFile(files tree.Reader, spec *v1alpha1.Helm, options Options, name string) ([]byte, error) {
	name = path.Clean(name)
	if spec.Repository == "" {
		return files.Read(path.Join(spec.Chart, name))
	}
	c := &chartRender{spec: spec, options: options}
	if err := c.readFiles(files); err != nil {
		return nil, err
	}
	for _, file := range c.files {
		if file.Name == name {
			return file.Data, nil
		}
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

// DefaultValues returns the text of the values.yaml of a release's chart, or nil if it has none.
func DefaultValues(files tree.Reader, spec *v1alpha1.Helm, options Options) ([]byte, error) {
	if spec.Repository == "" {
		content, err := files.Read(path.Join(spec.Chart, "values.yaml"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return content, err
	}
	c := &chartRender{spec: spec, options: options}
	if err := c.readFiles(files); err != nil {
		return nil, err
	}
	for _, file := range c.files {
		if file.Name == "values.yaml" {
			return file.Data, nil
		}
	}
	return nil, nil
}

// addDependencies returns the files of a chart of the source with those of its dependencies that are locked, or that are in
// the source (file://), as helm dependency build would pack them.
func (c *chartRender) addDependencies(files tree.Reader, dir string, own []*archive.BufferedFile, depth int) ([]*archive.BufferedFile, error) {
	if depth > maxNestedCharts {
		return nil, fmt.Errorf("reading %s: more than %d charts depend on each other", dir, maxNestedCharts)
	}
	meta, err := metadataOf(own)
	if err != nil {
		return own, nil //nolint:nilerr // it is reported when the chart is loaded
	}
	out := slices.Clip(own)
	added := map[string]bool{} // one chart under two aliases is packed once, two versions of it are packed both
	for _, wanted := range meta.Dependencies {
		if wanted == nil || isPacked(own, wanted.Name) || added[wanted.Repository+" "+wanted.Name+" "+wanted.Version] {
			continue
		}
		added[wanted.Repository+" "+wanted.Name+" "+wanted.Version] = true
		found, err := c.readDependency(files, dir, wanted, depth)
		if err != nil {
			return nil, fmt.Errorf("reading the dependency %s: %w", wanted.Name, err)
		}
		at := fmt.Sprintf("charts/%s-%d", wanted.Name, len(added))
		for _, file := range found {
			out = append(out, &archive.BufferedFile{Name: path.Join(at, file.Name), Data: file.Data})
		}
	}
	return out, nil
}

// readDependency returns the files of a dependency, or none if the dependency is unknown.
func (c *chartRender) readDependency(files tree.Reader, dir string, wanted *chart.Dependency, depth int) ([]*archive.BufferedFile, error) {
	var found []*archive.BufferedFile
	var err error
	if local, ok := strings.CutPrefix(wanted.Repository, "file://"); ok {
		at := path.Join(dir, local)
		if path.IsAbs(local) {
			return nil, errors.New("its path is absolute; it must be relative to the chart")
		}
		var isDirectory bool
		if found, isDirectory, err = readChart(files, at); err == nil && isDirectory {
			found, err = c.addDependencies(files, at, found, depth+1)
		}
		if err == nil {
			err = checkVersion(found, wanted)
		}
	} else if locked := c.findArchive(wanted.Repository, wanted.Name, wanted.Version); locked != nil {
		found, err = locked.readLockedFiles(files)
	}
	return found, err
}

// checkVersion refuses a chart of the source that is not the dependency which is asked for.
func checkVersion(files []*archive.BufferedFile, wanted *chart.Dependency) error {
	meta, err := metadataOf(files)
	if err != nil {
		return err
	}
	constraint, err := semver.NewConstraint(wanted.Version)
	if err != nil {
		return fmt.Errorf("%q is not a range of versions", wanted.Version)
	}
	version, err := semver.NewVersion(meta.Version)
	if err != nil || !constraint.Check(version) || meta.Name != wanted.Name {
		return fmt.Errorf("%s has the chart %s %s, and %s %s is asked for", wanted.Repository, meta.Name, meta.Version, wanted.Name, wanted.Version)
	}
	return nil
}

// isPacked reports whether the files of a chart have a dependency, as a directory or an archive.
func isPacked(files []*archive.BufferedFile, name string) bool {
	return slices.ContainsFunc(files, func(f *archive.BufferedFile) bool {
		rest, below := strings.CutPrefix(f.Name, "charts/")
		if !below {
			return false
		}
		if dir, _, inside := strings.Cut(rest, "/"); inside {
			return dir == name
		}
		rest, ok := strings.CutPrefix(rest, name+"-")
		rest = strings.TrimPrefix(rest, "v")
		return ok && strings.HasSuffix(rest, ".tgz") && rest[0] >= '0' && rest[0] <= '9'
	})
}
