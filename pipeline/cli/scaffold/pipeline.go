// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// PipelineOptions are what is chosen for a pipeline.
type PipelineOptions struct {
	// Name of the pipeline.
	Name string
	// Source is the URL of a Git repository, or oci://registry/path.
	Source string
	// Branch of a Git source that is followed; empty means the repository's own.
	Branch string
	// Build is what the pipeline renders.
	Build v1alpha1.Build
	// Policy is the policy's path inside the source, PolicyFile its name in the daemon's directory of policies: one of
	// them.
	Policy, PolicyFile string
	// Publish is a branch of the source's repository, URL#BRANCH, or oci://registry/path. Empty means the branch
	// rendered.
	Publish string
}

// pipelineData is what the template prints.
type pipelineData struct {
	PipelineOptions
	Artifact, PublishArtifact  bool
	BuildComment, BuildText    string
	PublishURL, PublishBranch  string
	SourceSecret, TargetSecret string
}

// printScalar formats a text as a value in YAML, with quotes if required.
func printScalar(text string) (string, error) {
	out, err := yaml.Marshal(text)
	return strings.TrimSuffix(string(out), "\n"), err
}

// printQuoted prints a text as a value in double quotes, which YAML reads as JSON does.
func printQuoted(text string) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// printFlowScalar is printScalar for a value between braces or brackets, where more characters have a meaning.
func printFlowScalar(text string) (string, error) {
	if strings.ContainsAny(text, ",[]{}\n") {
		return printQuoted(text)
	}
	return printScalar(text)
}

var functions = template.FuncMap{"yaml": printScalar, "flow": printFlowScalar, "quoted": printQuoted}

var pipelineText = template.Must(template.New("pipeline").Funcs(functions).Parse(`# Renders the manifests of a source, injects, and publishes the result on every change.
# Every field: https://github.com/prerig/prerig/blob/main/docs/render-pipeline.md
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata:
  name: {{ yaml .Name }}
spec:
  source:
{{- if .Artifact }}
    oci:
      url: {{ yaml .Source }}
      ref: {tag: latest}
{{- else }}
    git:
      url: {{ yaml .Source }}
{{- if .Branch }}
      ref: {branch: {{ flow .Branch }}}
{{- end }}
{{- end }}
      {{ .SourceSecret }}
  build:
    # {{ .BuildComment }}
{{ .BuildText }}
  policies:
{{- if .Policy }}
  - path: {{ yaml .Policy }} # in the source
{{- else }}
  - file: {{ yaml .PolicyFile }} # in the daemon's directory of policies (--policies)
{{- end }}
  publish:
{{- if .PublishArtifact }}
  - oci:
      url: {{ yaml .PublishURL }}
      tags: [latest]
{{- else }}
  - git:
{{- if .PublishURL }}
      url: {{ yaml .PublishURL }}
{{- end }}
      branch: {{ yaml .PublishBranch }} # Prerig's own branch; it is created if it does not exist
      # pullRequest: {provider: GitHub, secretRef: {name: git}} # merge by hand instead of pushing
{{- end }}
{{- if .TargetSecret }}
      {{ .TargetSecret }}
{{- end }}
`))

// pipelineName is what a pipeline can be called: a DNS subdomain.
var pipelineName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Pipeline returns a RenderPipeline as a file. The error describes invalid options.
func Pipeline(o PipelineOptions) (text []byte, err error) {
	data := pipelineData{PipelineOptions: o, Artifact: isArtifact(o.Source)}
	if err := CheckSource(o.Source); err != nil {
		return nil, err
	}
	if len(data.Name) > 63 || !pipelineName.MatchString(data.Name) {
		return nil, fmt.Errorf("--name is %q; the name of a pipeline has lower-case letters, digits and hyphens", data.Name)
	}
	if data.BuildComment, data.BuildText, err = printBuild(o.Build); err != nil {
		return nil, err
	}
	if data.PublishURL, data.PublishBranch, err = SplitPublish(o.Source, o.Publish); err != nil {
		return nil, err
	}
	data.PublishArtifact = isArtifact(data.PublishURL)
	data.SourceSecret = secretLine(o.Source)
	if data.PublishURL != "" {
		data.TargetSecret = secretLine(data.PublishURL)
	}
	var out bytes.Buffer
	out.WriteString(schemaComment("renderpipeline"))
	if err := pipelineText.Execute(&out, data); err != nil {
		return nil, err
	}
	for _, entry := range catalog.Parse("the pipeline", out.Bytes()) {
		if entry.Err != nil {
			return nil, entry.Err
		}
	}
	return out.Bytes(), nil
}

func isArtifact(url string) bool { return strings.HasPrefix(url, "oci://") }

// secretLine returns the line about credentials for a URL: commented out unless credentials are required.
func secretLine(url string) string {
	at, err := giturl.Parse(url)
	switch {
	case isArtifact(url):
		return "# secretRef: {name: registry} # the directory secrets/registry with .dockerconfigjson, or username and password"
	case err == nil && at.Scheme == "ssh":
		return "secretRef: {name: git} # the directory secrets/git with the files identity, a private key, and known_hosts"
	}
	return "# secretRef: {name: git} # the directory secrets/git with the files username and password; needed for pushing"
}

// CheckSource returns an error if the URL of a source is invalid.
func CheckSource(url string) error {
	if isArtifact(url) {
		if strings.Count(strings.TrimPrefix(url, "oci://"), "/") == 0 {
			return errors.New("the URL of an artifact must be oci://REGISTRY/PATH, without a tag")
		}
		return nil
	}
	if problems := giturl.Check(url); len(problems) > 0 {
		return fmt.Errorf("the URL of the source %s", strings.Join(problems, ", and "))
	}
	return nil
}

// SplitPublish splits the place that a pipeline publishes to: the URL is empty for the source's repository, the
// branch for an artifact.
func SplitPublish(source, publish string) (url, branch string, err error) {
	if isArtifact(publish) {
		return publish, "", CheckSource(publish)
	}
	url, branch, other := strings.Cut(publish, "#")
	if !other {
		url, branch = "", publish
		if strings.Contains(publish, "://") {
			return "", "", errors.New("the branch is missing; append it to the URL of the repository: URL#BRANCH")
		}
	}
	if other {
		if problems := giturl.Check(url); len(problems) > 0 && !isArtifact(url) {
			return "", "", fmt.Errorf("--publish is %q: the part before the # is the URL of a repository, which %s; for a branch of the source's repository, write the branch alone",
				publish, strings.Join(problems, ", and "))
		}
		if branch == "" {
			return "", "", errors.New("the branch is missing after the # of the publish target")
		}
	}
	if !other && isArtifact(source) {
		return "", "", errors.New("a pipeline from an artifact publishes to URL#BRANCH or oci://REGISTRY/PATH: an artifact has no branches")
	}
	return url, cmp.Or(branch, "rendered"), nil
}

// printBuild returns a build as lines below spec.build, and what they mean.
func printBuild(build v1alpha1.Build) (comment, text string, err error) {
	comment = "A kustomization, a Kptfile, or else all manifests of the directory. For a chart: docs/helm.md"
	switch {
	case build.Flux != nil:
		comment = "What Flux applies from this directory on: docs/flux.md"
		if build.Flux.Source == v1alpha1.DefaultFluxSource {
			build.Flux = &v1alpha1.Flux{Path: build.Flux.Path}
		}
	case build.Helm != nil:
		comment = "The chart with its default values; add valuesFiles or values: docs/helm.md"
	case build.Path == "":
		build.Path = "."
	}
	out, err := yaml.Marshal(build)
	if err != nil {
		return "", "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	return comment, "    " + strings.Join(lines, "\n    "), nil
}
