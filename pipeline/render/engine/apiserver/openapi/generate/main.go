// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes schemas.json.gz: the kinds and the schemas of the API server, for each minor version of Kubernetes that
// the gate knows. It reads them from the module k8s.io/kubernetes, which it downloads into a directory of its own.
package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// releases are the releases that are read, one for each minor version.
var releases = []string{"v1.29.6", "v1.30.14", "v1.31.14", "v1.32.13", "v1.33.13", "v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"}

const (
	swaggerFile = "api/openapi-spec/swagger.json"
	// enumFile is read as well because what Kubernetes publishes in its repository leaves enumerations out.
	enumFile = "pkg/generated/openapi/zz_generated.openapi.go"
)

func main() {
	if err := generate("schemas.json.gz"); err != nil {
		fmt.Fprintln(os.Stderr, "generating the schemas of Kubernetes:", err)
		os.Exit(1)
	}
}

func generate(output string) (err error) {
	all := newCollection()
	for _, release := range releases {
		if err := addRelease(all, release); err != nil {
			return fmt.Errorf("reading Kubernetes %s: %w", release, err)
		}
	}
	text, err := json.Marshal(all.catalog)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(output, packed.Bytes(), 0o644)
}

// addRelease downloads a release, reads it, and removes it again: nine of them would fill the module cache with 2 GB.
func addRelease(all *collection, release string) (err error) {
	cache, err := os.MkdirTemp("", "prerig-schemas-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	download := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+release)
	download.Dir = cache
	download.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(cache, "mod"), "GOFLAGS=-modcacherw")
	download.Stderr = os.Stderr
	out, err := download.Output()
	if err != nil {
		return fmt.Errorf("downloading the module: %w", err)
	}
	var module struct{ Zip string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	files, err := readZip(module.Zip, "k8s.io/kubernetes@"+release+"/", swaggerFile, enumFile)
	if err != nil {
		return err
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(release, "v"), ".")[:2], ".")
	return all.addVersion(minor, files[swaggerFile], files[enumFile])
}

func readZip(name, prefix string, wanted ...string) (map[string][]byte, error) {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	files := map[string][]byte{}
	for _, path := range wanted {
		f, err := archive.Open(prefix + path)
		if err != nil {
			return nil, err
		}
		files[path], err = io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return files, nil
}
