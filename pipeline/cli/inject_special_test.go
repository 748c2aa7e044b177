// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wants fails where a text is not in what a command said.
func wants(t *testing.T, said string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in:\n%s", text, said)
		}
	}
}

func TestSpecialFilesInADirectory(t *testing.T) {
	arrange(t)
	must(t, os.MkdirAll("d/sub", 0o755))
	must(t, os.Rename("web.yaml", "d/web.yaml"))
	must(t, syscall.Mkfifo("d/pipe.yaml", 0o644))
	must(t, os.Symlink("pipe.yaml", "d/to-pipe.yaml"))
	must(t, os.Symlink("/dev/zero", "d/zero.yaml"))
	must(t, os.Symlink("loop.yaml", "d/loop.yaml"))
	must(t, os.Symlink("nowhere.yaml", "d/dangling.yaml"))
	must(t, os.Symlink("..", "d/sub/up"))
	_, stderr := ok(t, "", "inject", "-p", "tiny.yaml", "-i", "d")
	wants(t, stderr,
		"info: 3 named pipes, devices or sockets below d/ were skipped",
		"warning: 2 broken links below d/ were skipped",
		"info: 1 link to a directory (d/sub/up) was skipped",
		"1 injected; 1 of 1 file changed")
	for _, name := range []string{"d/zero.yaml", "/dev/zero"} {
		code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", name)
		if code != ExitError {
			t.Errorf("%s: exit code %d", name, code)
		}
		wants(t, stderr, "reading "+name+": it is a ", "and only regular files are read")
	}
}

func TestASocketIsNoManifest(t *testing.T) {
	arrange(t)
	listener, err := net.Listen("unix", "s.yaml")
	must(t, err)
	defer listener.Close()
	code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "s.yaml", "web.yaml")
	if code != ExitError {
		t.Errorf("exit code %d", code)
	}
	wants(t, stderr, "error: reading s.yaml: it is a socket", "Deployment shop/web spec.template: injected", "omitted from the output: s.yaml")
}

// TestStreamsThatTheShellOpens reads /dev/stdin and what <(command) gives.
func TestStreamsThatTheShellOpens(t *testing.T) {
	original := arrange(t)
	want, _ := ok(t, original, "inject", "-p", "tiny.yaml")
	if got, _ := ok(t, original, "inject", "-p", "tiny.yaml", "/dev/stdin"); got != want {
		t.Errorf("/dev/stdin gives\n%s", got)
	}
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	_, err = w.WriteString(original)
	must(t, err)
	must(t, w.Close())
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if got, _ := ok(t, "", "inject", "-p", "tiny.yaml", name); got != want {
		t.Errorf("%s gives\n%s", name, got)
	}
	code, _, stderr := command(t, original, "inject", "-p", "tiny.yaml", "-i", "/dev/stdin")
	if code != ExitError {
		t.Errorf("-i: exit code %d", code)
	}
	wants(t, stderr, "writing in place: standard input is not a file")
}

// TestNamedPipesAreReadOnce is about what shells without /dev/fd make for <(command). Each pipe is written once.
func TestNamedPipesAreReadOnce(t *testing.T) {
	original := arrange(t)
	want, _ := ok(t, original, "inject", "-q", "-p", "tiny.yaml")
	must(t, syscall.Mkfifo("pipe", 0o600))
	for _, args := range [][]string{{"inject", "-q", "-p", "tiny.yaml", "-f", "pipe"}, {"inject", "-q", "-p", "tiny.yaml", "pipe", "./pipe"}} {
		written := make(chan error, 1)
		go func() { written <- os.WriteFile("pipe", []byte(original), 0o600) }()
		if got, _ := ok(t, "", args...); got != want {
			t.Errorf("%v gives\n%s", args, got)
		}
		must(t, <-written)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var errs bytes.Buffer // nobody writes
	if code := Main(ctx, []string{"inject", "-p", "tiny.yaml", "pipe"}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}, ""); code != ExitError {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}

// TestProcessSubstitution has a shell hand over everything that commands read, as what can be read only once.
func TestProcessSubstitution(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	original := arrange(t)
	must(t, os.WriteFile("cm.yaml", []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: istio-sidecar-injector}\ndata:\n  values: '{}'\n  config: |\n"+
		"    policy: enabled\n    templates:\n      sidecar: |\n        spec:\n          containers:\n          - {name: istio-proxy, image: example.com/proxyv2:1.31.0}\n"), 0o644))
	must(t, os.WriteFile("lock.yaml", []byte("apiVersion: prerig.dev/v1alpha1\nkind: ImageLock\nmetadata: {name: images}\nspec: {images: []}\n"), 0o644))
	self, err := os.Executable()
	must(t, err)
	run := func(line string) (stdout string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), shell, "-c", "prerig() { "+self+` "$@"; }; `+line)
		cmd.Env = append(os.Environ(), commandVariable+"=1")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, errs.String())
		}
		return out.String()
	}
	want, _ := ok(t, original, "inject", "-q", "-p", "tiny.yaml")
	for _, line := range []string{
		"prerig inject -q -p tiny.yaml -f <(cat web.yaml)", "prerig inject -q -p <(cat tiny.yaml) web.yaml", "prerig inject -q -p <(cat tiny.yaml) <(cat web.yaml)",
	} {
		if got := run(line); got != want {
			t.Errorf("%s gives\n%s", line, got)
		}
	}
	wants(t, run("prerig explain -q -p tiny.yaml -f <(cat web.yaml)"), "Deployment shop/web  yes")
	wants(t, run("prerig lint -q --fail-on never -p tiny.yaml -f <(cat web.yaml)"), "1 pod checked, 1 injected")
	wants(t, run("prerig import -q -f <(cat cm.yaml)"), "kind: InjectionPolicy")
	wants(t, run("prerig inject -q --injectConfigFile <(cat cm.yaml) web.yaml"), "image: example.com/proxyv2:1.31.0")
	run("prerig images verify <(cat lock.yaml)")
}

// TestAnInterruptEndsTheReading waits for a pipe that gives nothing.
func TestAnInterruptEndsTheReading(t *testing.T) {
	arrange(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer out.Close()
	reading := make(chan struct{})
	go func() {
		<-reading
		cancel()
	}()
	var errs bytes.Buffer
	code := Main(ctx, []string{"inject", "-p", "tiny.yaml"}, Streams{In: &notifying{in, reading}, Out: io.Discard, Err: &errs}, "")
	if code != ExitError || errs.String() != "interrupted; nothing was written\n" {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}

// notifying closes a channel when it is first read.
type notifying struct {
	from    io.Reader
	reading chan struct{}
}

func (n *notifying) Read(p []byte) (int, error) {
	if n.reading != nil {
		close(n.reading)
		n.reading = nil
	}
	return n.from.Read(p)
}

func TestInPlaceStaysInTheDirectory(t *testing.T) {
	original := arrange(t)
	must(t, os.MkdirAll("s", 0o755))
	must(t, os.MkdirAll("out", 0o755))
	for name, text := range map[string]string{"out/o.yaml": original, "s/own.yaml": strings.ReplaceAll(original, "web", "own")} {
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	must(t, os.Symlink("../out/o.yaml", "s/l.yaml"))
	must(t, os.Symlink("own.yaml", "s/within.yaml"))
	_, stderr := ok(t, "", "inject", "-q", "-p", "tiny.yaml", "-i", "s")
	wants(t, stderr, "warning: s/l.yaml: not changed, because it is a link to ", "out/o.yaml, which is not in s; specify the file itself to change it")
	if readFile(t, "out/o.yaml") != original {
		t.Error("the file outside of the directory was changed")
	}
	if !strings.Contains(readFile(t, "s/own.yaml"), "istio-proxy") {
		t.Error("the file in the directory was not changed")
	}
	if stdout, _ := ok(t, "", "inject", "-q", "-p", "tiny.yaml", "s"); strings.Count(stdout, "name: istio-proxy") != 2 {
		t.Errorf("to standard output, the link is not followed:\n%s", stdout)
	}
	ok(t, "", "inject", "-q", "-p", "tiny.yaml", "-i", "s/l.yaml")
	if !strings.Contains(readFile(t, "out/o.yaml"), "istio-proxy") {
		t.Error("the link that was named itself was not followed")
	}
}

func TestHardLinksAreTold(t *testing.T) {
	original := arrange(t)
	must(t, os.Link("web.yaml", "other.yaml"))
	_, stderr := ok(t, "", "inject", "-q", "-p", "tiny.yaml", "-i", "web.yaml")
	wants(t, stderr, "warning: web.yaml: the file has 2 names (hard links), and only this one gets the new content")
	if readFile(t, "other.yaml") != original || !strings.Contains(readFile(t, "web.yaml"), "istio-proxy") {
		t.Error("the warning is wrong")
	}
}

func TestEscapeSequencesInNamesAreVisible(t *testing.T) {
	original := arrange(t)
	name := "a\x1b[31m\u202e.yaml"
	must(t, os.Mkdir("d", 0o755))
	must(t, os.WriteFile(filepath.Join("d", name), []byte(original), 0o644))
	for _, args := range [][]string{
		{"inject", "-p", "tiny.yaml", "--diff", "d"}, {"inject", "-p", "tiny.yaml", "--check", "d"}, {"explain", "-p", "tiny.yaml", "d"},
		{"lint", "-p", "tiny.yaml", "d"}, {"inject", "-p", "tiny.yaml", filepath.Join("d", "no"+name)},
	} {
		_, stdout, stderr := command(t, "", args...)
		for _, said := range []string{stdout, stderr} {
			if strings.ContainsAny(said, "\x1b\u202e") {
				t.Errorf("%v says %q", args, said)
			}
		}
		if args[0] != "explain" { // whose table names no file
			wants(t, stdout+stderr, `[31m`)
		}
	}
}

func TestLeftoversAreTold(t *testing.T) {
	arrange(t)
	must(t, os.WriteFile(".web.yaml.prerig-25648-0", nil, 0o644))
	_, stderr := ok(t, "", "inject", "-q", "-p", "tiny.yaml", "-i", "web.yaml")
	wants(t, stderr, "warning: 1 temporary file of another run, such as .web.yaml.prerig-25648-0, may still be in use and was kept; remove them when no prerig is running")
}

// TestLargeFiles makes sparse files: nothing is to read all of them.
func TestLargeFiles(t *testing.T) {
	original := arrange(t)
	must(t, os.Mkdir("d", 0o755))
	for name, text := range map[string]string{"data.json": `{"rows": [`, "web.yaml": original} {
		f, err := os.Create(filepath.Join("d", name))
		must(t, err)
		_, err = f.WriteString(text)
		must(t, err)
		must(t, f.Truncate(300<<20))
		must(t, f.Close())
	}
	start := time.Now()
	code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "d")
	t.Log("took", time.Since(start))
	if code != ExitError {
		t.Errorf("exit code %d", code)
	}
	wants(t, stderr, "warning: 1 file (d/data.json) was skipped; files larger than 256 MiB are not read",
		"error: reading d/web.yaml: it is larger than 256 MiB, the size limit for one file; split it", "nothing was written")
	_, _, stderr = command(t, "", "inject", "-p", "tiny.yaml", "d/data.json")
	wants(t, stderr, "error: reading d/data.json: it is larger than 256 MiB")
}
