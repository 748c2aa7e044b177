// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	api "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/policies"
)

// PolicyObjects are the InjectionPolicies of a cluster. It is safe for concurrent use.
type PolicyObjects interface {
	// Policy returns one as it is now, in JSON, without what the API server adds to it.
	Policy(namespace, name string) ([]byte, error)
}

// policyVersions are PolicyObjects that distinguish older objects from newer ones.
type policyVersions interface {
	// PolicyVersion returns the known version of an object, or the zero value if none exists.
	PolicyVersion(namespace, name string) queue.ObjectVersion
}

// PolicySource finds the policies of pipelines that are not in their sources.
type PolicySource struct {
	directory string
	objects   PolicyObjects
	cluster   PolicyCompleter
}

// PolicySource returns the source of the builder's policies.
func (b *Builder) PolicySource() PolicySource { return PolicySource{b.Policies, b.Objects, b.Cluster} }

// Versions returns those of the policies of a pipeline that are objects, by NAMESPACE/NAME.
func (s PolicySource) Versions(p *v1alpha1.RenderPipeline) map[string]queue.ObjectVersion {
	objects, ok := s.objects.(policyVersions)
	if !ok {
		return nil
	}
	var out map[string]queue.ObjectVersion
	for _, ref := range p.Spec.Policies {
		if ref.Name == "" {
			continue
		}
		if out == nil {
			out = map[string]queue.ObjectVersion{}
		}
		out[p.Metadata.Namespace+"/"+ref.Name] = objects.PolicyVersion(p.Metadata.Namespace, ref.Name)
	}
	return out
}

// Older returns a policy of a pipeline that this process knows only at an older version than specified, or ""
// if none exists. A policy that is unknown may have been deleted.
func (s PolicySource) Older(p *v1alpha1.RenderPipeline, versions map[string]queue.ObjectVersion) string {
	for name, known := range s.Versions(p) {
		if known.IsOlder(versions[name]) {
			return name
		}
	}
	return ""
}

// readObject reads a policy that is an object of the cluster.
func (s PolicySource) readObject(namespace, name string) ([]byte, error) {
	if s.objects == nil {
		return nil, fmt.Errorf("policy %s is named as an object of a cluster, and no cluster is configured (kubernetes.pipelines)", name)
	}
	return s.objects.Policy(namespace, name)
}

// readPolicy reads what one reference of a pipeline in a namespace names.
func (s PolicySource) readPolicy(namespace string, ref v1alpha1.PolicyRef, view *tree.View) ([]render.Policy, error) {
	switch {
	case ref.Name != "":
		text, err := s.readObject(namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		return []render.Policy{{Origin: objectOrigin(namespace, ref.Name), YAML: string(text)}}, nil
	case ref.BuiltIn != "":
		text, ok := policies.Get(ref.BuiltIn)
		if !ok {
			return nil, fmt.Errorf("there is no built-in policy %q%s; there are: %s", ref.BuiltIn, strict.DidYouMean(ref.BuiltIn, policies.Names()), strings.Join(policies.Names(), ", "))
		}
		return []render.Policy{{Origin: "built-in " + ref.BuiltIn, YAML: string(text)}}, nil
	case ref.File != "":
		text, err := s.readFile(ref.File)
		if err != nil {
			return nil, err
		}
		return parsePolicyFile(ref.File, text)
	default:
		text, err := view.Read(ref.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w%s", err, tree.SuggestPath(view, ref.Path))
		}
		if err != nil {
			return nil, err
		}
		return parsePolicies(ref.Path, text)
	}
}

// policyField returns the name of the field by which a reference names its policies.
func policyField(ref v1alpha1.PolicyRef) string {
	switch {
	case ref.Name != "":
		return "name"
	case ref.BuiltIn != "":
		return "builtIn"
	case ref.File != "":
		return "file"
	default:
		return "path"
	}
}

// ReadPolicies returns the policies that a reference of a pipeline in a namespace names, for one that is not in the source.
func (b *Builder) ReadPolicies(namespace string, ref v1alpha1.PolicyRef) ([]*api.InjectionPolicy, error) {
	if ref.Path != "" {
		return nil, fmt.Errorf("policy %s is in the source", ref.Path)
	}
	read, err := b.PolicySource().readPolicy(namespace, ref, nil)
	if err != nil {
		return nil, err
	}
	var out []*api.InjectionPolicy
	for _, one := range read {
		p, err := api.Parse([]byte(one.YAML))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", one.Origin, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// maxPolicy bounds a policy's file.
const maxPolicy = 16 << 20

// shownDirectory returns the directory of policies for messages. Authors of pipelines do not learn where the daemon has it.
func (s PolicySource) shownDirectory() string {
	if filepath.IsAbs(s.directory) {
		return filepath.Base(s.directory)
	}
	return s.directory
}

// readFile reads a file of the daemon's own directory, and none outside of it.
func (s PolicySource) readFile(name string) ([]byte, error) {
	if s.directory == "" {
		return nil, errors.New("no directory of policies is configured")
	}
	root, err := os.OpenRoot(s.directory)
	if err != nil {
		return nil, fmt.Errorf("the directory of policies, %s, cannot be opened; specify another one with --policies or in the configuration", s.shownDirectory())
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil || info.IsDir() || info.Size() > maxPolicy {
		return nil, fmt.Errorf("%s is not a readable file in the directory of policies, %s", name, s.shownDirectory())
	}
	return root.ReadFile(filepath.FromSlash(name))
}

// parsePolicyFile parses the InjectionPolicies in a file of the daemon's own. A file with other content may have
// been named in order to read it, so errors do not reveal its content.
func parsePolicyFile(name string, text []byte) ([]render.Policy, error) {
	origin := "policy file " + name
	file, err := manifest.Parse(origin, text)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if _, ok := doc.Peek(); ok || strings.TrimSpace(string(doc.Raw())) == "" {
			continue
		}
		if _, err := doc.Object(); err != nil {
			return nil, err
		}
	}
	return parsePolicies(origin, text)
}

// parsePolicies parses the InjectionPolicies in a file.
func parsePolicies(origin string, text []byte) ([]render.Policy, error) {
	file, err := manifest.Parse(origin, text)
	if err != nil {
		return nil, err
	}
	var out []render.Policy
	for _, doc := range file.Docs {
		if meta, ok := doc.Peek(); ok && meta.Kind != "InjectionPolicy" {
			continue
		}
		if strings.TrimSpace(string(doc.Raw())) == "" {
			continue
		}
		out = append(out, render.Policy{Origin: origin, YAML: string(doc.Raw())})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no InjectionPolicy", origin)
	}
	return out, nil
}

// RequestDigest is a digest of everything but the source that a pipeline's result depends on. Policies inside of the source
// are part of the record of what was read.
func (b *Builder) RequestDigest(p *v1alpha1.RenderPipeline) string {
	h := sha256.New()
	text, err := json.Marshal([]any{b.Version, p.Spec.Source, p.Spec.Build, p.Spec.Policies, p.Spec.Publish, p.Spec.Gates})
	if err != nil {
		panic(err) // it is plain data
	}
	h.Write(text)
	if len(p.Spec.Sources) > 0 {
		text, err := json.Marshal(p.Spec.Sources)
		if err != nil {
			panic(err) // it is plain data
		}
		fmt.Fprintf(h, "\nsources %s", text)
	}
	for _, pattern := range b.Bases {
		fmt.Fprintf(h, "\nbases %q", pattern.String())
	}
	from := b.PolicySource()
	for _, ref := range p.Spec.Policies {
		switch {
		case ref.BuiltIn != "":
			fmt.Fprintf(h, "\nbuilt-in %s", b.digests.of(ref.BuiltIn))
		case ref.File != "":
			content, err := from.readFile(ref.File)
			fmt.Fprintf(h, "\nfile %x %t", sha256.Sum256(content), err == nil)
			from.writeCompleted(h, p.Metadata.Namespace, ref, content)
		case ref.Name != "":
			content, err := from.readObject(p.Metadata.Namespace, ref.Name)
			fmt.Fprintf(h, "\nobject %x %t", sha256.Sum256(content), err == nil)
			from.writeCompleted(h, p.Metadata.Namespace, ref, content)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// builtInDigests computes the digest of each built-in policy once.
type builtInDigests struct {
	mu    sync.Mutex
	known map[string]string
}

func (d *builtInDigests) of(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.known[name]; ok {
		return known
	}
	text, _ := policies.Get(name)
	sum := sha256.Sum256(text)
	if d.known == nil {
		d.known = map[string]string{}
	}
	d.known[name] = hex.EncodeToString(sum[:])
	return d.known[name]
}
