// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Limits bound what one fetch may bring.
type Limits struct {
	// PackBytes is the size of the pack as it is transferred.
	PackBytes int64
	// Objects is the number of files and directories that one fetch may bring.
	Objects int
	// ObjectBytes is the size of the largest object.
	ObjectBytes int64
	// UnpackedBytes is the size of all objects together when they are unpacked. It is checked before any is.
	UnpackedBytes int64
	// FileBytes is the size of the largest file that is asked for, where the server can leave out larger ones.
	FileBytes int64
}

// DefaultLimits are for configuration repositories: text, not assets.
func DefaultLimits() Limits {
	return Limits{PackBytes: 512 << 20, Objects: 150_000, ObjectBytes: 64 << 20, UnpackedBytes: 1 << 30, FileBytes: 16 << 20}
}

// unpackLimit is the number of objects up to which a pack is stored as single objects, so that a thousand small fetches
// do not leave a thousand packs behind, each of which would be searched for every object.
const unpackLimit = 200

// ingestPack stores the objects of a pack that a server has sent. It is checked as a whole before any of it becomes
// visible.
func (m *Mirror) ingestPack(ctx context.Context, server string, incoming io.Reader) (err error) {
	pack := bufio.NewReaderSize(incoming, 64<<10)
	// The number of objects is the last third of the head, and known before anything is transferred.
	if start, err := pack.Peek(12); err == nil {
		if err := m.limits.checkObjectCount(binary.BigEndian.Uint32(start[8:])); err != nil {
			return err
		}
	}
	file, err := os.CreateTemp(filepath.Join(m.dir, "objects"), "tmp_pack_")
	if err != nil {
		return fmt.Errorf("storing a pack: %w", err)
	}
	defer func() {
		file.Close()
		if rm := os.Remove(file.Name()); rm != nil && !errors.Is(rm, os.ErrNotExist) && err == nil {
			err = rm
		}
	}()
	n, err := io.Copy(file, io.LimitReader(pack, m.limits.PackBytes+1))
	if err != nil {
		return fmt.Errorf("receiving objects: %w", err)
	}
	if n > m.limits.PackBytes {
		return &tree.LimitError{What: "size of the fetched commit in bytes", Limit: m.limits.PackBytes}
	}
	release := func() {}
	if n > smallPack {
		if release, err = budget.Unpack(ctx, server, 0); err != nil { // to read its headers is to inflate it
			return err
		}
	}
	found, err := m.limits.scanPack(ctx, file)
	release()
	if err != nil {
		return err
	}
	if release, err = found.reserveUnpackMemory(ctx, server); err != nil {
		return err
	}
	defer release()
	pending := &untilDone{File: file, ctx: ctx}
	if _, err := pending.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if !found.thin && (found.count > unpackLimit || found.bytes > thinBytes) {
		_, err := indexPack(m.dir, pending)
		return err
	}
	if found.bytes > thinBytes {
		return errThinTooLarge
	}
	objects, err := m.unpackInMemory(pending)
	if err != nil {
		return err
	}
	return storeNewObjects(m.dir, objects, nil)
}

// untilDone is a file that can be read until a context is done: unpacking reads it again for each object, and does
// not check the context otherwise.
type untilDone struct {
	*os.File
	ctx context.Context
}

// Read implements io.Reader.
func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.File.Read(p)
}

const (
	// smallPack is the size of a pack up to which unpacking it waits for no other: most fetches bring less.
	smallPack = 1 << 20
	// parserCache is the maximum size of unpacked objects that go-git keeps while it parses a pack
	// (NewBufferLRUDefault of go-git 5.19), and objectCost the fixed cost of each object.
	parserCache, objectCost = 96 << 20, 320
)

// reserveUnpackMemory waits until a pack may be unpacked: for the memory that it needs, and, if it is slow, for its
// turn.
func (p packSummary) reserveUnpackMemory(ctx context.Context, server string) (release func(), err error) {
	memory := min(p.bytes, parserCache) + 3*p.largest + objectCost*int64(p.count)
	if p.count <= unpackLimit && p.bytes <= thinBytes || p.thin {
		memory = max(memory, 2*p.bytes) // all of it is held at once
	}
	if p.bytes > 4*smallPack {
		return budget.Unpack(ctx, server, memory)
	}
	lease := budget.Memory(ctx, server)
	if err := lease.Grow(ctx, memory); err != nil {
		return nil, fmt.Errorf("waiting for room to unpack what was fetched: %w", err)
	}
	return lease.Release, nil
}

// thinBytes bounds the content that is held in memory to complete a thin pack.
const thinBytes = 64 << 20

// errThinTooLarge asks for the same commit once more, without naming what is here already.
var errThinTooLarge = errors.New("thin pack is too large to be completed")

// packSummary of a pack: the number of objects, the size of their content and that of the largest, and whether some
// are deltas against objects that may be elsewhere.
type packSummary struct {
	count          uint32
	bytes, largest int64
	thin           bool
}

// scanPack reads the headers of all objects and the sizes that deltas expand to, and refuses what is over the limits before
// anything is held in memory.
func (l Limits) scanPack(ctx context.Context, file *os.File) (found packSummary, err error) {
	inflated := int64(0) // the bytes processed: deltas may be larger than their results
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return found, err
	}
	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return found, fmt.Errorf("reading the fetched objects: %w", err)
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return found, fmt.Errorf("reading the fetched objects: %w", err)
		}
		// Before the object is inflated: a file of zeros is small until then.
		if header.Length > l.ObjectBytes {
			return found, l.objectSizeError(header.Length)
		}
		if inflated += header.Length; l.UnpackedBytes > 0 && inflated > l.UnpackedBytes {
			return found, l.unpackedSizeError()
		}
		delta := header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject
		start := &headBuffer{max: 20}
		if _, _, err := scanner.NextObject(start); err != nil {
			return found, fmt.Errorf("reading the fetched objects: %w", err)
		}
		size := header.Length
		if delta {
			size = start.deltaTarget()
		}
		if size > l.ObjectBytes {
			return found, l.objectSizeError(size)
		}
		found.count++
		found.bytes += size
		found.largest = max(found.largest, size)
		if l.UnpackedBytes > 0 && found.bytes > l.UnpackedBytes {
			return found, l.unpackedSizeError()
		}
		found.thin = found.thin || header.Type == plumbing.REFDeltaObject
	}
	return found, nil
}

func (l Limits) checkObjectCount(count uint32) error {
	if l.Objects > 0 && int64(count) > int64(l.Objects) {
		return &tree.LimitError{What: fmt.Sprintf("number of files and directories of the fetched commit (%d)", count), Limit: int64(l.Objects)}
	}
	return nil
}

func (l Limits) objectSizeError(size int64) error {
	return &tree.LimitError{What: fmt.Sprintf("size of the largest file of the fetched commit in bytes (%d)", size), Limit: l.ObjectBytes}
}

func (l Limits) unpackedSizeError() error {
	return &tree.LimitError{What: "size of all files of the fetched commit in bytes", Limit: l.UnpackedBytes}
}

// packReader is a pack in a file.
type packReader interface {
	io.ReadSeeker
	Name() string
	Sync() error
}

// headBuffer keeps the first bytes of what is written to it.
type headBuffer struct {
	data []byte
	max  int
}

func (h *headBuffer) Write(p []byte) (int, error) {
	if room := h.max - len(h.data); room > 0 {
		h.data = append(h.data, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// deltaTarget reads the size of the object that a delta makes: the second number at its start (gitformat-pack).
func (h *headBuffer) deltaTarget() int64 {
	r := bytes.NewReader(h.data)
	readVarint(r)
	return readVarint(r)
}

func readVarint(r *bytes.Reader) int64 {
	var value int64
	for shift := 0; shift < 63; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return value
		}
		value |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
	}
	return value
}

// indexPack stores the pack and writes its index next to it. It returns the name of both without an extension.
func indexPack(dir string, file packReader) (string, error) {
	writer := &idxfile.Writer{}
	parser, err := packfile.NewParser(packfile.NewScanner(file), writer)
	if err != nil {
		return "", err
	}
	checksum, err := parser.Parse()
	if err != nil {
		return "", fmt.Errorf("indexing the fetched objects: %w", err)
	}
	index, err := writer.Index()
	if err != nil {
		return "", fmt.Errorf("indexing the fetched objects: %w", err)
	}
	base := filepath.Join(dir, "objects", "pack", "pack-"+checksum.String())
	out, err := os.CreateTemp(filepath.Dir(base), "tmp_idx_")
	if err != nil {
		return "", fmt.Errorf("storing a pack: %w", err)
	}
	_, err = idxfile.NewEncoder(out).Encode(index)
	if err = errors.Join(err, out.Sync(), out.Close(), file.Sync()); err != nil {
		os.Remove(out.Name())
		return "", fmt.Errorf("storing a pack: %w", err)
	}
	// A pack is visible by its index, so that comes last.
	if err := os.Rename(file.Name(), base+".pack"); err != nil {
		return "", fmt.Errorf("storing a pack: %w", err)
	}
	if err := os.Rename(out.Name(), base+".idx"); err != nil {
		return "", fmt.Errorf("storing a pack: %w", err)
	}
	return base, nil
}

// thinStorage holds new objects in memory and finds the bases of deltas in the mirror.
type thinStorage struct {
	*memory.Storage
	mirror *objectStore
}

// EncodedObject implements the storer.
func (s thinStorage) EncodedObject(kind plumbing.ObjectType, hash Hash) (plumbing.EncodedObject, error) {
	object, err := s.Storage.EncodedObject(kind, hash)
	if err == nil {
		return object, nil
	}
	return s.mirror.encodedObject(kind, hash)
}

func (o *objectStore) unpackInMemory(file packReader) (*memory.Storage, error) {
	objects := thinStorage{memory.NewStorage(), o}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(file), objects)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(); err != nil {
		return nil, fmt.Errorf("unpacking the fetched objects: %w", err)
	}
	return objects.Storage, nil
}

// storeNewObjects stores new objects in a mirror, each on its own or, for many objects, as a pack, which may already
// exist.
func storeNewObjects(dir string, objects *memory.Storage, packed *packedObjects) error {
	if len(objects.Objects) > unpackLimit {
		return storePack(dir, objects, packed)
	}
	return storeLoose(dir, objects)
}

func storePack(dir string, objects *memory.Storage, packed *packedObjects) error {
	file, err := os.CreateTemp(filepath.Join(dir, "objects", "pack"), "tmp_pack_")
	if err != nil {
		return fmt.Errorf("storing a pack: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if packed != nil && packed.count == len(objects.Objects) { // a draft only gets more
		_, err = file.Write(packed.pack)
	} else {
		err = writePack(file, objects)
	}
	if err != nil {
		return fmt.Errorf("storing a pack: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = indexPack(dir, file)
	return err
}

// writePack writes all objects as a pack, the same bytes for the same objects.
func writePack(w io.Writer, objects *memory.Storage) error {
	hashes := make([]Hash, 0, len(objects.Objects))
	for hash := range objects.Objects {
		hashes = append(hashes, hash)
	}
	plumbing.HashesSort(hashes)
	if _, err := packfile.NewEncoder(w, objects, false).Encode(hashes, 0); err != nil {
		return fmt.Errorf("packing objects: %w", err)
	}
	return nil
}

// storeLoose writes every object on its own, commits last: if a commit exists, it is complete. It bypasses the
// storage that readers use, which is not safe for concurrent use.
func storeLoose(dir string, objects storer.EncodedObjectStorer) error {
	files := &tidyFS{indexedFS: newIndexed(dir)}
	storage := filesystem.NewStorage(files, cache.NewObjectLRU(0))
	for _, kind := range []plumbing.ObjectType{plumbing.BlobObject, plumbing.TreeObject, plumbing.CommitObject, plumbing.TagObject} {
		all, err := objects.IterEncodedObjects(kind)
		if err != nil {
			return err
		}
		err = all.ForEach(func(object plumbing.EncodedObject) error {
			_, err := storage.SetEncodedObject(object)
			return err
		})
		if err != nil {
			files.discardLast()
			return fmt.Errorf("storing objects: %w", err)
		}
	}
	return nil
}
