// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Modes of what is packed, whatever the umask is.
const (
	modeFile    = 0o644
	modeProgram = 0o755
)

// entry is a file in an archive, an image or a package; a directory where the name ends in a slash.
type entry struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// readEntries returns the files below a directory, under another name.
func readEntries(dir, prefix string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("packing %s: it is no regular file", name)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		entries = append(entries, entry{name: path.Join(prefix, filepath.ToSlash(below)), mode: modeFile, content: text})
		return err
	})
	return entries, err
}

// withDirectories adds the directories of entries that are not among them, and sorts.
func withDirectories(entries []entry) []entry {
	have := map[string]bool{}
	for _, e := range entries {
		have[e.name] = true
	}
	for _, e := range slices.Clone(entries) {
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "." && !have[dir+"/"]; dir = path.Dir(dir) {
			have[dir+"/"] = true
			entries = append(entries, entry{name: dir + "/", mode: modeProgram})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries
}

// writeTar writes entries, all of one time.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)),
			ModTime: at, Format: tar.FormatPAX}
		header.Typeflag = tar.TypeReg
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// packTarGz returns a .tar.gz.
func packTarGz(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(compressed, entries, at); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// packZip returns a .zip, for Windows.
func packZip(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(e.mode))
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// packProductArchive packs a product for a platform.
func (r *release) packProductArchive(p product, platform Platform, binaries []binary) (string, error) {
	entries, err := r.archiveDocumentFiles(p, platform)
	if err != nil {
		return "", err
	}
	for _, b := range binaries {
		text, err := os.ReadFile(b.file)
		if err != nil {
			return "", err
		}
		entries = append(entries, entry{name: b.executableFileName(), mode: modeProgram, content: text})
	}
	name, pack := fmt.Sprintf("%s_%s_%s.tar.gz", p.name, r.Version, platform), packTarGz
	if platform.OS == "windows" {
		name, pack = strings.TrimSuffix(name, ".tar.gz")+".zip", packZip
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	text, err := pack(entries, r.revision.time)
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", name, err)
	}
	return name, r.writeReleaseFile(name, text)
}

// archiveDocumentFiles returns the files beside the programs of an archive.
func (r *release) archiveDocumentFiles(p product, platform Platform) ([]entry, error) {
	entries := []entry{}
	for name, file := range map[string]string{
		"LICENSE": filepath.Join(r.Root, "LICENSE"), "CHANGELOG.md": filepath.Join(r.Root, "CHANGELOG.md"),
		"THIRD-PARTY": licenseFilePath(r.work, p, platform),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: name, mode: modeFile, content: text})
	}
	if p.name != command.name {
		return entries, nil
	}
	for _, dir := range []string{"completions", "man"} {
		if dir == "man" && platform.OS == "windows" {
			continue
		}
		more, err := readEntries(filepath.Join(r.work, "manual", dir), dir)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	examples, err := quickStartFiles(r.Root)
	return append(entries, examples...), err
}

// quickStart is the example that docs/quick-start.md works on, which people have who have only the release.
const quickStart = "examples/prerig-inject"

// quickStartFiles returns the files of the quick start, without what tests expect of it.
func quickStartFiles(root string) ([]entry, error) {
	entries, err := readEntries(filepath.Join(root, filepath.FromSlash(quickStart)), quickStart)
	return slices.DeleteFunc(entries, func(e entry) bool { return strings.Contains(e.name, "/.") }), err
}
