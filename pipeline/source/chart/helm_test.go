// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/source/chart"
)

var helms = flag.String("helms", "", "programs of Helm to compare with, as VERSION=PROGRAM, separated by commas")

// TestChosenAsHelmChooses compares the archives of ranges with what helm pull brings, from an index that helm repo index wrote and a
// registry that helm push wrote to. It is skipped without programs: see make helm.
func TestChosenAsHelmChooses(t *testing.T) {
	if *helms == "" {
		t.Skip("no programs are given; see make helm")
	}
	for one := range strings.SplitSeq(*helms, ",") {
		version, program, _ := strings.Cut(one, "=")
		t.Run(version, func(t *testing.T) { compareWithHelm(t, program) })
	}
}

func compareWithHelm(t *testing.T, program string) {
	dir, home := t.TempDir(), t.TempDir()
	run := func(args ...string) error {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home+"/cache", "HELM_CONFIG_HOME="+home+"/config", "HELM_DATA_HOME="+home+"/data")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	must := func(args ...string) {
		t.Helper()
		if err := run(args...); err != nil {
			t.Fatal(err)
		}
	}
	registry := charttest.Registry(t, nil)
	must("create", "web")
	for _, version := range []string{"0.9.0", "1.0.0", "1.2.0", "1.10.0", "1.10.0-alpha", "2.0.0-rc.1", "2.0.0+build.5", "v2.1.0", "3.0.0-beta"} {
		must("package", "web", "--version", version, "-d", "repository")
		must("push", "repository/web-"+version+".tgz", "oci://"+registry+"/team/charts", "--plain-http")
	}
	must("repo", "index", "repository")
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "repository"))))
	t.Cleanup(server.Close)
	compared := 0
	for i, versions := range []string{
		"", "*", "^1.0.0", "~1.2", "1.0.0", "1.x", ">=1.0.0 <2", "^2", "2.0.0-rc.1", ">0.0.0-0", "2.0.0+build.5", "v2.1.0", "2.1.0", "1.10", "=1.2", "^4", "3.0.0-beta",
		"1.0.0 || 2.1.0", "<1", "1 - 2", "~0",
	} {
		for _, url := range []string{server.URL, "oci://" + registry + "/team/charts"} {
			at := filepath.Join(dir, fmt.Sprintf("%d-%d", i, compared))
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			args := []string{"pull", "web", "--repo", url, "-d", at}
			if strings.HasPrefix(url, "oci://") {
				args = []string{"pull", url + "/web", "--plain-http", "-d", at}
			}
			if versions != "" {
				args = append(args, "--version", versions)
			}
			errTheirs := run(args...)
			locked, content, errOurs := chart.New(chart.Options{StateDir: t.TempDir()}).Resolve(t.Context(), "", from(url), "web", versions)
			compared++
			if errTheirs != nil || errOurs != nil {
				if (errTheirs == nil) != (errOurs == nil) {
					t.Errorf("%s %q: theirs: %v, ours: %v", url, versions, errTheirs, errOurs)
				} else if !errors.Is(errOurs, chart.ErrNotFound) {
					t.Errorf("%s %q: %v", url, versions, errOurs)
				}
				continue
			}
			found, err := filepath.Glob(filepath.Join(at, "*.tgz"))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			theirs, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(theirs, content) {
				t.Errorf("%s %q: helm pulls %s, and we choose %s", url, versions, filepath.Base(found[0]), locked.Version)
			}
		}
	}
	t.Logf("compared %d", compared)
}
