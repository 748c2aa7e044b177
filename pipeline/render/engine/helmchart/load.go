// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// byteOrderMark is left out at the beginning of a file, as Helm does (pkg/chart/v2/loader/directory.go).
var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// readChart reads the files of the chart at a path of the source, a directory or an archive. Names are relative to the chart.
func readChart(files tree.Reader, at string) (chartFiles []*archive.BufferedFile, isDirectory bool, err error) {
	info, err := files.Lookup(at)
	if err != nil {
		return nil, false, err
	}
	if info.Dir {
		chartFiles, err = readDirectory(files, info.Path)
	} else {
		chartFiles, err = readArchive(files, at)
	}
	if err != nil {
		return nil, info.Dir, err
	}
	// Archives among the dependencies are opened by Helm's loader.
	budget := newArchiveBudget()
	for _, file := range chartFiles {
		if err := budget.checkDependency(file.Name, file.Data); err != nil {
			return nil, info.Dir, err
		}
	}
	return chartFiles, info.Dir, nil
}

func readArchive(files tree.Reader, at string) ([]*archive.BufferedFile, error) {
	content, err := files.Read(at)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(content, gzipStart) {
		return nil, errors.New("it is neither the directory of a chart nor an archive that helm package made (.tgz)")
	}
	if err := newArchiveBudget().checkArchive(at, content, 0); err != nil {
		return nil, err
	}
	return archive.LoadArchiveFiles(bytes.NewReader(content))
}

// chartDirectory reads a chart as Helm's loader does: without what .helmignore names, links followed.
type chartDirectory struct {
	files tree.Reader
	root  string
	rules *ignore.Rules
	found []*archive.BufferedFile
}

func readDirectory(files tree.Reader, root string) ([]*archive.BufferedFile, error) {
	d := &chartDirectory{files: files, root: root, rules: ignore.Empty()}
	content, err := files.Read(path.Join(root, ignore.HelmIgnore))
	switch {
	case err == nil:
		if d.rules, err = ignore.Parse(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path.Join(root, ignore.HelmIgnore), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	d.rules.AddDefaults()
	err = d.readBelow("", nil)
	return d.found, err
}

// readBelow reads the files below a directory of the chart. Parents are the directories around it where links lead, so that
// links in a circle end.
func (d *chartDirectory) readBelow(dir string, parents []string) error {
	at := path.Join(d.root, dir)
	info, err := d.files.Lookup(at)
	if err != nil {
		return err
	}
	if slices.Contains(parents, info.Path) {
		return fmt.Errorf("reading %s: links lead in a circle", at)
	}
	list, err := d.files.List(at)
	if err != nil {
		return err
	}
	for _, entry := range list {
		base := path.Base(entry.Path)
		name := path.Join(dir, base)
		if d.rules.Ignore(name, fileInfo{base, entry.Dir}) {
			continue
		}
		if entry.Dir {
			if err := d.readBelow(name, append(slices.Clip(parents), info.Path)); err != nil {
				return err
			}
			continue
		}
		content, err := d.files.Read(path.Join(d.root, name))
		if err != nil {
			return err
		}
		d.found = append(d.found, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(content, byteOrderMark)})
	}
	return nil
}

// fileInfo is what .helmignore's rules ask of a file.
type fileInfo struct {
	name string
	dir  bool
}

// Name implements fs.FileInfo.
func (f fileInfo) Name() string { return f.name }

// Size implements fs.FileInfo.
func (f fileInfo) Size() int64 { return 0 }

// Mode implements fs.FileInfo.
func (f fileInfo) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir
	}
	return 0
}

// ModTime implements fs.FileInfo.
func (f fileInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (f fileInfo) IsDir() bool { return f.dir }

// Sys implements fs.FileInfo.
func (f fileInfo) Sys() any { return nil }

// isDependency reports whether a file of a chart is an archive that Helm's loader opens: directly in charts, and with a name
// that does not begin with "_" or ".".
func isDependency(name string) bool {
	rest, below := strings.CutPrefix(name, "charts/")
	if !below {
		return false
	}
	if dir, inner, found := strings.Cut(rest, "/"); found {
		return dir != "" && isDependency(inner)
	}
	return path.Ext(rest) == ".tgz" && !strings.HasPrefix(rest, "_") && !strings.HasPrefix(rest, ".")
}
