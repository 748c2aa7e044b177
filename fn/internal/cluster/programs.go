// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// KubernetesVersion is the version of kube-apiserver and kube-controller-manager, as in go.mod of the module that
// builds them. Their builds must be passed it, and the Node's kubelet claims it.
const KubernetesVersion = "v1.36.3"

// otherKubernetes are the versions that upstream/kubernetes/clusters pins beside it, by their minors.
var otherKubernetes = map[string]string{"1.30": "v1.30.14", "1.32": "v1.32.9", "1.34": "v1.34.2", "1.37": "v1.37.2"}

// IstioVersion is the version that istiod's commit was released as; istiod's build is passed it, and the charts'
// tag is set to it.
const IstioVersion = "1.31.0-rc.0"

// Programs are the paths of what a cluster is made of.
type Programs struct {
	// Kubernetes is the version of the control plane.
	Kubernetes                         string
	Etcd, APIServer, ControllerManager string
	// Istiod is pilot-discovery; Charts renders the charts that belong to it.
	Istiod, Charts string
	// Flux is kustomize-controller.
	Flux string
	// ArgoCD is a single binary with all of Argo CD's programs; ARGOCD_BINARY_NAME in its environment, or its
	// file's name, selects one.
	ArgoCD string
}

const (
	goMod             = "go.mod"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

// program is how one of them is built.
type program struct {
	name, module, pkg string
	target            *string
	flags             []string // of the linker
	// pinned is the go.mod in the module's directory, and of older versions another.
	pinned string
}

// Builder builds what a cluster is made of.
type Builder struct {
	// Upstream holds the module directories that pin the programs: kubernetes, istio, flux and argocd.
	Upstream string
	// Cache is where they are kept.
	Cache string
	// Kubernetes is the minor of another control plane, such as 1.34, or "" for KubernetesVersion.
	Kubernetes string
	// Say logs what is built.
	Say func(format string, args ...any)
}

// Build builds the programs that the cache does not have yet in the same version. The first build lasts many minutes,
// later ones seconds. names lists the wanted programs, or is empty for all but Flux and Argo CD.
func (b Builder) Build(ctx context.Context, names ...string) (*Programs, error) {
	p := Programs{Kubernetes: KubernetesVersion}
	pinned, suffix := goMod, ""
	if b.Kubernetes != "" {
		if p.Kubernetes = otherKubernetes[b.Kubernetes]; p.Kubernetes == "" {
			return nil, fmt.Errorf("building Kubernetes %s: only %v are pinned beside %s", b.Kubernetes,
				slices.Sorted(maps.Keys(otherKubernetes)), KubernetesVersion)
		}
		// Another name, so that a build of one version leaves that of the other where it is.
		pinned, suffix = path.Join("clusters", b.Kubernetes, goMod), "-"+b.Kubernetes
	}
	component := []string{"-X", "k8s.io/component-base/version.gitVersion=" + p.Kubernetes}
	for i, part := range strings.SplitN(strings.TrimPrefix(p.Kubernetes, "v"), ".", 3)[:2] {
		component = append(component, "-X", "k8s.io/component-base/version.git"+[]string{"Major", "Minor"}[i]+"="+part)
	}
	for _, one := range []program{
		{"etcd", "kubernetes", "go.etcd.io/etcd/server/v3", &p.Etcd, nil, goMod},
		{apiServer, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", &p.APIServer, component, pinned},
		{controllerManager, "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", &p.ControllerManager, component, pinned},
		{"pilot-discovery", "istio", "istio.io/istio/pilot/cmd/pilot-discovery", &p.Istiod, []string{
			"-X", "istio.io/istio/pkg/version.buildVersion=" + IstioVersion,
		}, goMod},
		{"charts", "istio", "./charts", &p.Charts, nil, goMod},
		{KustomizeController, "flux", "github.com/fluxcd/kustomize-controller", &p.Flux, nil, goMod},
		{ArgoCD, "argocd", argoCDModule + "/cmd", &p.ArgoCD, []string{"-X", argoCDModule + "/common.version=" + ArgoCDVersion}, goMod},
	} {
		extra := one.name == KustomizeController || one.name == ArgoCD
		if len(names) > 0 && !slices.Contains(names, one.name) || len(names) == 0 && extra {
			continue
		}
		if one.pinned != goMod {
			one.name += suffix
		}
		built, err := one.buildIfMissing(ctx, filepath.Join(b.Upstream, one.module), b.Cache, b.Say)
		if err != nil {
			return nil, err
		}
		*one.target = built
	}
	return &p, nil
}

// buildIfMissing builds a program unless it already exists. Its file name contains a digest of all its inputs.
func (p program) buildIfMissing(ctx context.Context, module, dir string, say func(string, ...any)) (string, error) {
	digest, err := p.inputDigest(module)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", p.name, err)
	}
	built, err := filepath.Abs(filepath.Join(dir, p.name+"-"+digest))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(built); err == nil {
		return built, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	say("building %s, which takes minutes the first time", p.name)
	unfinished := fmt.Sprintf("%s.%d", built, os.Getpid())
	defer os.Remove(unfinished)
	flags := append([]string{"-s", "-w"}, p.flags...)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-modfile", p.pinned,
		"-ldflags", strings.Join(flags, " "), "-o", unfinished, p.pkg)
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", p.name, err, out)
	}
	if err := removeOlderBuilds(dir, p.name); err != nil {
		return "", err
	}
	return built, os.Rename(unfinished, built)
}

// inputDigest returns a value that distinguishes builds of a program: it covers the compiler, the flags, the versions
// of all modules, and the sources of the program itself if it is in the module that pins them.
func (p program) inputDigest(module string) (string, error) {
	files := []string{p.pinned, strings.TrimSuffix(p.pinned, goMod) + "go.sum"}
	if strings.HasPrefix(p.pkg, "./") {
		own, err := fs.Glob(os.DirFS(module), path.Join(path.Clean(p.pkg), "*.go"))
		if err != nil {
			return "", err
		}
		if len(own) == 0 {
			return "", fmt.Errorf("looking for the sources of %s in %s: there are none", p.pkg, module)
		}
		files = append(files, own...)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), p.pkg, p.flags)
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// removeOlderBuilds removes what was built of a program before: a program has some hundred megabytes.
func removeOlderBuilds(dir, name string) error {
	older, err := filepath.Glob(filepath.Join(dir, name+"-????????????"))
	if err != nil {
		return err
	}
	for _, path := range older {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
