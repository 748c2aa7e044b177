// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Identity is a text that two renderers have in common only where they are the same program: what Go's linker notes of a program's
// content, or a digest of its file.
func (p *Pool) Identity() (string, error) {
	p.identified.Do(func() { p.identity, p.unidentified = identifyRendererBinary(p.options.Command[0]) })
	return p.identity, p.unidentified
}

func identifyRendererBinary(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("identifying the renderer: %w", err)
	}
	defer file.Close()
	if id := buildID(file); id != "" {
		return "go:" + id, nil
	}
	if id := textBuildID(file); id != "" {
		return "go:" + id, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, 1<<40)); err != nil {
		return "", fmt.Errorf("identifying the renderer: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// noteHead is the start of the note that Go's linker leaves: the sizes of its name and content, its type and name.
const (
	noteHead   = 16
	noteType   = 4
	maxBuildID = 1 << 10
)

// buildID returns the build ID of a Go program, "" where it has none.
func buildID(r io.ReaderAt) string {
	program, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	section := program.Section(".note.go.buildid")
	if section == nil || section.Size > maxBuildID {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) <= noteHead || program.ByteOrder.Uint32(note[8:]) != noteType || !bytes.Equal(note[12:noteHead], []byte("Go\x00\x00")) {
		return ""
	}
	size := program.ByteOrder.Uint32(note[binary.Size(uint32(0)):])
	if uint64(size) > uint64(len(note)-noteHead) {
		return ""
	}
	return string(note[noteHead : noteHead+size])
}

// The marks around the build ID at the start of the text of programs for systems without ELF (source: cmd/internal/buildid/buildid.go
// of Go 1.26), and how much of a program is searched for it.
const (
	textIDStart  = "\xff Go build ID: \""
	textIDEnd    = "\"\n \xff"
	textIDSearch = 1 << 20
)

// textBuildID returns the build ID of a Go program for Windows or macOS, "" where it has none.
func textBuildID(r io.ReaderAt) string {
	head, err := io.ReadAll(io.NewSectionReader(r, 0, textIDSearch))
	if err != nil {
		return ""
	}
	_, rest, found := bytes.Cut(head, []byte(textIDStart))
	id, _, ended := bytes.Cut(rest, []byte(textIDEnd))
	if !found || !ended || len(id) > maxBuildID {
		return ""
	}
	return string(id)
}
