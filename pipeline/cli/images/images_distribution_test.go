// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/crypto/bcrypt"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/freeport"
)

const user, password = "robot", "s3cret-word"

func login(*testing.T) authn.Authenticator {
	return &authn.Basic{Username: user, Password: password}
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func seededSource(seed int64) rand.Source { return rand.NewSource(seed) }

// distribution starts the registry of the distribution project, with a password, on loopback. The binary is looked for under the
// names that Debian and upstream give it, and in PRERIG_REGISTRY; the test is skipped where there is none.
func distribution(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("PRERIG_REGISTRY")
	for _, name := range []string{"docker-registry", "registry"} {
		if path, err := exec.LookPath(name); err == nil && binary == "" {
			binary = path
		}
	}
	if binary == "" {
		t.Skip("no registry: install Debian's docker-registry, or set PRERIG_REGISTRY to a binary of distribution")
	}
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "htpasswd"), fmt.Appendf(nil, "%s:%s\n", user, hash), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`version: 0.1
log: {level: error}
storage:
  filesystem: {rootdirectory: %q}
  delete: {enabled: true}
http: {addr: %s}
auth:
  htpasswd: {realm: test, path: %q}
`, dir, host, filepath.Join(dir, "htpasswd"))
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", file)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the registry said:\n%s", out.String())
		}
	})
	for range 100 {
		if resp, err := http.Get("http://" + host + "/v2/"); err == nil {
			resp.Body.Close()
			return host
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the registry does not answer")
	return ""
}

// dockerConfig gives the default keychain a login, as docker login would have left it.
func dockerConfig(t *testing.T, host, user, password string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, user, password)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

// TestDistribution runs everything against the real registry: logins, an index, a platform that is missing, a tag that moves
// and one that goes.
func TestDistribution(t *testing.T) {
	host := distribution(t)
	proxy, tool := host+"/istio/proxyv2:1.31.0", host+"/tool:2"
	proxyDigest := pushIndex(t, proxy, 1, "linux/amd64", "linux/arm64")
	toolDigest := pushImage(t, tool, 10, "linux/amd64")
	o := quick()
	o.Keychain = nil

	dockerConfig(t, "elsewhere.example", user, password)
	if _, err := Pin(t.Context(), "mesh", []string{proxy}, o); err == nil || !strings.Contains(err.Error(), host+" needs a login; run docker login "+host) {
		t.Errorf("without a login: %v", err)
	}
	dockerConfig(t, host, user, "wrong")
	_, err := Pin(t.Context(), "mesh", []string{proxy}, o)
	if err == nil || !strings.Contains(err.Error(), "needs a login") {
		t.Errorf("with a wrong password: %v", err)
	}
	dockerConfig(t, host, user, password)
	lock, err := Pin(t.Context(), "mesh", []string{proxy, tool}, o)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := lock.Spec.Images[0], lock.Spec.Images[1]; a.Digest != proxyDigest || strings.Join(a.Platforms, " ") != "linux/amd64 linux/arm64" || b.Digest != toolDigest {
		t.Errorf("lock %+v", lock.Spec)
	}
	o.Platforms = []string{"linux/arm64"}
	if _, err := Pin(t.Context(), "mesh", []string{proxy, tool}, o); err == nil || !strings.Contains(err.Error(), "resolving "+tool+": it does not support linux/arm64, only linux/amd64") {
		t.Errorf("a platform that is missing: %v", err)
	}
	states(t, lock, o, Current, Current)
	pushIndex(t, proxy, 100, "linux/amd64", "linux/arm64")
	states(t, lock, o, Moved, Current)
	remove(t, host+"/tool@"+toolDigest)
	states(t, lock, o, Moved, Lost)
	if strings.Contains(fmt.Sprint(err), password) {
		t.Error("the password is in an error")
	}
}

func states(t *testing.T, lock *v1alpha1.ImageLock, o Options, want ...State) {
	t.Helper()
	got, err := Verify(t.Context(), lock, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		if s.State != want[i] {
			t.Errorf("%s is %s (%s), want %s", s.Image, s.State, s.Message, want[i])
		}
	}
}

// TestDistributionFlaky has the real registry behind a proxy that fails half of the requests, logins among them.
func TestDistributionFlaky(t *testing.T) {
	behind := distribution(t)
	var n atomic.Int64
	host := proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	dockerConfig(t, host, user, password)
	var images []string
	for i := range 10 {
		repo := fmt.Sprintf("/app%d:1", i)
		pushIndex(t, behind+repo, int64(10*i+1), "linux/amd64", "linux/arm64")
		images = append(images, host+repo)
	}
	o := quick()
	o.Keychain = nil
	o.Platforms = []string{"linux/amd64", "linux/arm64"}
	lock, err := Pin(t.Context(), "mesh", images, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(t.Context(), lock, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range got {
		if s.State != Current {
			t.Errorf("%s is %s: %s", s.Image, s.State, s.Message)
		}
	}
	t.Logf("%d images, %d requests, half of them refused", len(images), n.Load())
}

// TestToken logs in as the big registries want it: a token for each repository, from a service that fails at first too.
func TestToken(t *testing.T) {
	behind := inProcess(t)
	digest := pushImage(t, behind+"/team/app:1", 1, "linux/amd64")
	var asked atomic.Int64
	var host string
	host = proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token":
				if asked.Add(1)%2 == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				if name, word, _ := r.BasicAuth(); name != user || word != password || r.URL.Query().Get("scope") != "repository:team/app:pull" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				fmt.Fprint(w, `{"token":"for-team-app"}`)
			case r.Header.Get("Authorization") != "Bearer for-team-app":
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, host))
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	o := quick()
	o.Keychain = nil
	dockerConfig(t, host, user, password)
	lock, err := Pin(t.Context(), "mesh", []string{host + "/team/app:1"}, o)
	if err != nil || lock.Spec.Images[0].Digest != digest {
		t.Fatalf("with the password: %v", err)
	}
	states(t, lock, o, Current)
	dockerConfig(t, host, user, "wrong")
	if _, err := Pin(t.Context(), "mesh", []string{host + "/team/app:1"}, o); err == nil || !strings.Contains(err.Error(), "needs a login") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestPermanentErrors checks which errors are not tried again.
func TestPermanentErrors(t *testing.T) {
	if !isPermanent(&tooLarge{}) || isPermanent(errors.New("connection reset")) {
		t.Error("permanent errors")
	}
}
