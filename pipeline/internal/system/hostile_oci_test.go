// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// entry is an entry of an archive. One of a file without content has zeros.
type entry struct {
	name, content, link string
	kind                byte
	size                int64
}

// archive packs entries as Flux does. An entry's size may be larger than what follows, as in a sparse file.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zipped)
	zeros := make([]byte, 1<<20)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Linkname: e.link, Mode: 0o644, Size: max(e.size, int64(len(e.content)))}
		if e.kind != 0 {
			header.Typeflag, header.Size = e.kind, 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		_, err := io.WriteString(w, e.content)
		for left := header.Size - int64(len(e.content)); left > 0 && err == nil; left -= int64(len(zeros)) {
			_, err = w.Write(zeros[:min(left, int64(len(zeros)))])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sparse is an archive with a sparse file in GNU's old form, written by hand as archive/tar writes none: one that says that
// it has two gigabytes and holds nothing.
func sparse(t *testing.T) []byte {
	t.Helper()
	var block [512]byte
	copy(block[:], "huge.yaml")
	copy(block[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00")
	block[156] = 'S'
	copy(block[257:], "ustar  \x00")
	copy(block[483:], "20000000000\x00") // the real size, in octal
	sum := 8 * int(' ')
	for i, b := range block {
		if i < 148 || i >= 156 {
			sum += int(b)
		}
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	_, _ = zipped.Write(append(block[:], make([]byte, 1024)...))
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHostileArtifactsAreRefused pushes each of them to a tag that was rendered before, and follows what the status says.
func TestHostileArtifactsAreRefused(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	good := entry{name: "app.yaml", content: deployment("app", "image:good")}
	many := make([]entry, 200_000)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("d%d/f%d", i/1000, i)}
	}
	cases := map[string]struct {
		layer []byte
		want  string
	}{
		"dot-dot":    {archive(t, good, entry{name: "../x.yaml", content: "x"}), "leads out of the source tree"},
		"within":     {archive(t, good, entry{name: "a/../../x.yaml", content: "x"}), "leads out of the source tree"},
		"absolute":   {archive(t, entry{name: "/etc/cron.d/x", content: "x"}, good), "leads out of the source tree"},
		"link":       {archive(t, entry{name: "app.yaml", kind: tar.TypeSymlink, link: "../../../../etc/passwd"}), "leads out of the source tree"},
		"through":    {archive(t, entry{name: "a", kind: tar.TypeSymlink, link: "/etc"}, entry{name: "a/x.yaml", content: "x"}), "a file and a directory"},
		"hard-link":  {archive(t, good, entry{name: "x.yaml", kind: tar.TypeLink, link: "/etc/passwd"}), "neither a file"},
		"device":     {archive(t, good, entry{name: "x.yaml", kind: tar.TypeBlock}), "neither a file"},
		"pipe":       {archive(t, good, entry{name: "x.yaml", kind: tar.TypeFifo}), "neither a file"},
		"bomb":       {archive(t, entry{name: "huge.yaml", size: int64(hugeBytes())}), "size of huge.yaml"},
		"bombs":      {archive(t, slices.Repeat([]entry{{name: "large.yaml", size: 15 << 20}}, 20)...), "sum of the sizes"},
		"sparse":     {sparse(t), "neither a file"},
		"many":       {archive(t, many...), "number of files"},
		"not-an-one": {[]byte("this is no archive at all"), "unpacking"},
		"cut":        {archive(t, good, entry{name: "x", size: 1 << 16})[:200], "unpacking"},
	}
	if !full() { // the race detector takes a minute for these two
		delete(cases, "bombs")
		delete(cases, "many")
	}
	f := prepareAlone(t, nil)
	push := func(repository string, layer []byte) {
		t.Helper()
		image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), oci.ConfigMediaType),
			static.NewLayer(layer, types.MediaType(oci.LayerMediaType)))
		if err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag(host+"/"+repository+":latest", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, image); err != nil {
			t.Fatal(err)
		}
	}
	names := slices.Sorted(maps.Keys(cases))
	for _, one := range names {
		push(one, archive(t, good))
		text := pipelineYAML(one, f.repository.URL, "  interval: 1s\n")
		text = strings.Replace(text, "source: {git: {url: "+f.repository.URL+", ref: {branch: main}}}", "source: {oci: {url: \"oci://"+host+"/"+one+"\", insecure: true}}", 1)
		text = strings.Replace(text, "build: {path: apps/"+one+"}", "build: {path: .}", 1)
		f.write(filepath.Join(f.c.Pipelines, one+".yaml"), strings.Replace(text, "git: {branch", "git: {url: "+f.repository.URL+", path: "+one+", branch", 1))
	}
	// A name that is there twice is no attack: the later one holds, as it does for whoever unpacks an archive.
	twice := archive(t, entry{name: "app.yaml", content: deployment("app", "image:earlier")}, entry{name: "app.yaml", content: deployment("app", "image:later")})
	f.start()
	f.allReady(len(names))
	published := f.repository.Git("rev-parse", "rendered")
	stop := watchMemory(t)
	for _, one := range names {
		push(one, cases[one].layer)
	}
	for _, one := range names {
		f.refused(one, cases[one].want)
	}
	daemon, renderer := stop()
	t.Logf("at most %d MB of heap in the daemon with the registry, and %d MB in a renderer", daemon>>20, renderer>>20)
	if daemon > 1<<30 || renderer > 400<<20 {
		t.Errorf("the daemon had %d MB of heap, a renderer %d MB", daemon>>20, renderer>>20)
	}
	if now := f.repository.Git("rev-parse", "rendered"); now != published {
		t.Errorf("the published branch has changed:\n%s", f.repository.Git("diff", "--stat", published, now))
	}
	push("device", twice)
	f.shows("device/shop/deployment-app.yaml", "image:later")
}
