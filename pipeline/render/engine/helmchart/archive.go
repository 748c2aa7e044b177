// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Bounds of the archives of one chart, with those of its dependencies in them. The largest charts in use have some hundred
// files and a few megabytes.
const (
	maxUnpacked      = 64 << 20
	maxArchiveFiles  = 10_000
	maxArchiveNested = 8
)

var gzipStart = []byte{0x1f, 0x8b}

// archiveBudget bounds what archives become when they are unpacked, before Helm's loader unpacks them.
type archiveBudget struct {
	bytes int64
	files int
}

func newArchiveBudget() *archiveBudget { return &archiveBudget{maxUnpacked, maxArchiveFiles} }

// checkDependency checks a file of a chart if it is the archive of a dependency.
func (b *archiveBudget) checkDependency(name string, content []byte) error {
	if !isDependency(name) {
		return nil
	}
	return b.checkArchive(name, content, 1)
}

// checkArchive rejects entries that do not belong in the archive of a chart: names that lead out of it, links,
// devices, and more than the budget allows. Helm's loader strips the first part of each name, and treats links as
// empty files.
func (b *archiveBudget) checkArchive(name string, content []byte, depth int) error {
	if depth > maxArchiveNested {
		return fmt.Errorf("reading %s: more than %d archives inside each other", name, maxArchiveNested)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("reading %s: it is not an archive that helm package made: %w", name, err)
	}
	reader := tar.NewReader(unzipped)
	for {
		head, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if err := b.checkEntry(name, head, reader, depth); err != nil {
			return err
		}
	}
}

func (b *archiveBudget) checkEntry(name string, head *tar.Header, reader io.Reader, depth int) error {
	switch head.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
	default:
		return fmt.Errorf("reading %s: %s in it is a link or a device; a chart has files only", name, head.Name)
	}
	inside := strings.ReplaceAll(head.Name, `\`, "/")
	if path.IsAbs(inside) || strings.Contains("/"+inside+"/", "/../") || len(inside) > 1 && inside[1] == ':' {
		return fmt.Errorf("reading %s: the path %s in it leads out of the archive", name, head.Name)
	}
	if b.files--; b.files < 0 {
		return fmt.Errorf("reading %s: it holds more than %d files", name, maxArchiveFiles)
	}
	// The header's size is exact: the reader yields neither more nor less. So a file that is too large is not even
	// read.
	if b.bytes -= head.Size; b.bytes < 0 {
		return fmt.Errorf("reading %s: it holds more than %d bytes when it is unpacked", name, int64(maxUnpacked))
	}
	inner := nameInChart(head.Name)
	if !isDependency(inner) {
		return nil
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return b.checkArchive(name+":"+inner, content, depth+1)
}

// nameInChart returns the name that Helm's loader assigns to a file of an archive (pkg/chart/loader/archive of Helm
// 4.3): without its first part, which ends at a backslash if it contains one, and cleaned. So charts//a.tgz is
// charts/a.tgz.
func nameInChart(name string) string {
	delimiter := "/"
	if strings.Contains(name, `\`) {
		delimiter = `\`
	}
	_, inner, _ := strings.Cut(name, delimiter)
	return path.Clean(strings.ReplaceAll(inner, delimiter, "/"))
}
