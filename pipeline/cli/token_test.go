// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runServe runs prerig serve with a configuration file until the test ends, and returns the address of its page and its log.
func runServe(t *testing.T, configuration string) (page string, log *lockedBuffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log = &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"serve", "--config", configuration}, Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: log}, "test")
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("the daemon ended with %d\n%s", code, log)
		}
	})
	listening := regexp.MustCompile(`msg=listening .*page=(\S+)`)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if found := listening.FindStringSubmatch(log.String()); found != nil {
			return found[1], log
		}
		if time.Now().After(deadline) {
			t.Fatalf("the daemon does not listen\n%s", log)
		}
		select {
		case code := <-ended:
			ended <- code
			t.Fatalf("the daemon ended with %d\n%s", code, log)
		default:
		}
	}
}

// twoTeams writes pipelines of the namespaces shop and vault, suspended so that nothing runs, and a configuration. more are further
// lines of it.
func twoTeams(t *testing.T, more string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "pipelines"), 0o755))
	for _, name := range []string{"shop/web", "vault/coin"} {
		namespace, pipeline, _ := strings.Cut(name, "/")
		must(t, os.WriteFile(filepath.Join(dir, "pipelines", pipeline+".yaml"), []byte(fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\n"+
			"metadata: {name: %s, namespace: %s}\nspec:\n  suspend: true\n  source: {git: {url: https://git.invalid/%s.git}}\n", pipeline, namespace, pipeline)), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "prerig.yaml"), []byte("listen: 127.0.0.1:0\nworkers: 1\npipelines: pipelines\nstate: state\n"+more), 0o600))
	return dir
}

// createToken runs prerig daemon token create and writes the token to a file beside the configuration.
func createToken(t *testing.T, dir, name string, flags ...string) (file string) {
	t.Helper()
	args := append([]string{"daemon", "token", "create", name, "--file", filepath.Join(dir, "tokens.yaml")}, flags...)
	code, secret, stderr := command(t, "", args...)
	if code != 0 || stderr != "" || !strings.HasPrefix(secret, "prerig_") {
		t.Fatalf("code %d\n%s", code, stderr)
	}
	file = filepath.Join(dir, name+".token")
	must(t, os.WriteFile(file, []byte(secret), 0o600))
	return file
}

// TestTokensOfTheCommandLine makes tokens with the command and uses them against a daemon: for their namespace, their role, and no
// longer once their entries are gone. The socket and the administrator's token work as without tokens.
func TestTokensOfTheCommandLine(t *testing.T) {
	dir := twoTeams(t, "admin: {listen: \"127.0.0.1:0\", tokens: tokens.yaml, audit: audit.log}\n")
	operator := createToken(t, dir, "shop-ci", "--role", "operate", "--namespace", "shop")
	page, log := runServe(t, filepath.Join(dir, "prerig.yaml"))
	ask := func(token string, args ...string) (code int, out string) {
		code, stdout, stderr := command(t, "", append(args, "--server", "http://"+page, "--token-file", token)...)
		return code, stdout + stderr
	}
	if code, out := ask(operator, "status"); code != 0 || !strings.Contains(out, "shop/web") || strings.Contains(out, "vault") {
		t.Errorf("the state: code %d\n%s", code, out)
	}
	if code, out := ask(operator, "resume", "shop/web"); code != 0 {
		t.Errorf("its own: code %d\n%s", code, out)
	}
	_, foreign := ask(operator, "suspend", "vault/coin")
	if code, absent := ask(operator, "suspend", "vault/none"); code != 2 || absent != strings.ReplaceAll(foreign, "coin", "none") || !strings.Contains(absent, "the daemon has no pipeline vault/none") {
		t.Errorf("that of others: code %d\n%s\nand one that is not there:\n%s", code, foreign, absent)
	}
	admin := filepath.Join(dir, "state", "admin.token")
	if code, out := ask(admin, "status"); code != 0 || !strings.Contains(out, "vault/coin") {
		t.Errorf("the administrator: code %d\n%s", code, out)
	}
	if code, stdout, stderr := command(t, "", "suspend", "vault/coin", "--state", filepath.Join(dir, "state")); code != 0 {
		t.Errorf("the socket: code %d\n%s%s", code, stdout, stderr)
	}
	// On an address of this machine, too, everybody says who they are.
	if code, out := ask(os.DevNull, "status"); code != 2 {
		t.Errorf("without a token: code %d\n%s", code, out)
	}
	if code, stdout, stderr := command(t, "", "status", "--server", "http://"+page, "--state", t.TempDir()); code != 2 || !strings.Contains(stderr, "the token is missing or wrong") {
		t.Errorf("without a token: code %d\n%s%s", code, stdout, stderr)
	}
	must(t, os.WriteFile(filepath.Join(dir, "tokens.yaml"), nil, 0o600))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if code, _ := ask(operator, "status"); code == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a token whose entry is gone is taken\n%s", log)
		}
	}
	checkAudit(t, filepath.Join(dir, "audit.log"))
}

// checkAudit reads the file of who did what.
func checkAudit(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var got []string
	for line := range strings.Lines(string(text)) {
		var l struct {
			Who, Action, Outcome string
			Pipelines            []string
		}
		must(t, json.Unmarshal([]byte(line), &l))
		if l.Outcome != "refused" || l.Who != "nobody" {
			got = append(got, fmt.Sprint(l.Who, " ", l.Action, " ", l.Pipelines, " ", l.Outcome))
		}
	}
	want := []string{
		"token:shop-ci resume [shop/web] done", "token:shop-ci suspend [vault/coin] refused", "token:shop-ci suspend [vault/none] refused",
		fmt.Sprintf("socket:uid %d suspend [vault/coin] done", os.Getuid()),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the file says\n%s", text)
	}
}
