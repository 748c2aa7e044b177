// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// kubeconfig is a kubeconfig, or several that count as one, and a context in it.
type kubeconfig struct {
	rules   *clientcmd.ClientConfigLoadingRules
	context string // empty for the current one
}

// Config returns the connection to the cluster of a kubeconfig: of the named file, otherwise of those that kubectl
// reads. An empty context name means the current context.
func Config(file, kubeContext string) (*rest.Config, error) {
	k := kubeconfig{rules: clientcmd.NewDefaultClientConfigLoadingRules(), context: kubeContext}
	k.rules.ExplicitPath = file
	overrides := &clientcmd.ConfigOverrides{CurrentContext: kubeContext}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules, overrides).ClientConfig()
	if err != nil {
		return nil, k.explain(err)
	}
	if err := k.checkContext(); err != nil {
		return nil, err
	}
	place := k.place()
	if program := config.ExecProvider; program != nil {
		if _, err := exec.LookPath(program.Command); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig %s: its user gets credentials from the program %s, which is not installed", place, program.Command)
		}
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "prerig-verify"
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(budget.APIServer)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return unreachable{next, place} })
	return config, nil
}

// unreachable names the kubeconfig of a server that does not answer.
type unreachable struct {
	http.RoundTripper
	place string
}

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err != nil {
		err = fmt.Errorf("%w (the server of the kubeconfig %s)", err, u.place)
	}
	return response, err
}

// files returns the files that are read, without those of KUBECONFIG that do not exist, which it returns as missing.
func (k kubeconfig) files() (found, missing []string) {
	if k.rules.ExplicitPath != "" {
		return []string{k.rules.ExplicitPath}, nil
	}
	for _, name := range k.rules.Precedence {
		if _, err := os.Stat(name); err == nil {
			found = append(found, name)
		} else if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// place names the files and the context.
func (k kubeconfig) place() string {
	found, _ := k.files()
	name := k.context
	if raw, err := k.rules.Load(); err == nil {
		name = cmp.Or(name, raw.CurrentContext)
	}
	out := strings.Join(found, ", ")
	if name != "" {
		out += ", context " + name
	}
	return cmp.Or(strings.TrimPrefix(out, ", "), "of this pod")
}

// checkContext returns an error about what client-go accepts in the context that is used, and no server does.
func (k kubeconfig) checkContext() error {
	raw, err := k.rules.Load()
	if err != nil {
		return nil //nolint:nilerr // it was read before
	}
	name := cmp.Or(k.context, raw.CurrentContext)
	used := raw.Contexts[name]
	if used == nil {
		return nil
	}
	if err := wrongContext(k.context, raw); err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", k.placeOf("contexts", name, "context", "user"), err)
	}
	cluster := raw.Clusters[used.Cluster]
	if cluster == nil {
		return nil
	}
	if err := wrongServer(used.Cluster, cluster.Server); err != nil {
		return fmt.Errorf("reading the kubeconfig %s: %w", k.placeOf("clusters", used.Cluster, "cluster", "server"), err)
	}
	if list, key, err := wrongCredentials(cluster, raw.AuthInfos[used.AuthInfo]); err != nil {
		name, below := used.Cluster, "cluster"
		if list == "users" {
			name, below = used.AuthInfo, "user"
		}
		return fmt.Errorf("reading the kubeconfig %s: %s of the %s %s: %w", k.placeOf(list, name, below, key), key, below, name, err)
	}
	return nil
}

// placeOf returns the file and the line of a key of a named element of a list; all files where it is not found.
func (k kubeconfig) placeOf(list, name string, path ...any) string {
	found, _ := k.files()
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		docs, err := strict.ReadAll(text, maxKubeconfig)
		if err != nil || len(docs) == 0 {
			continue
		}
		top, _ := docs[0].Value.(map[string]any)
		elements, _ := top[list].([]any)
		for i, element := range elements {
			if one, _ := element.(map[string]any); one["name"] == name {
				return fmt.Sprintf("%s:%d", file, docs[0].LineIn(append([]any{list, i}, path...), 0))
			}
		}
	}
	return strings.Join(found, ", ")
}

// wrongServer returns an error about a server without a scheme, to which client-go talks without encryption.
func wrongServer(cluster, server string) error {
	scheme, _, found := strings.Cut(server, "://")
	switch {
	case server == "":
		return fmt.Errorf("the cluster %s has no server; add server: https://HOST:6443, or correct the name of the key", cluster)
	case !found:
		return fmt.Errorf("the server of the cluster %s is %q; it must begin with https://, such as https://%s", cluster, server, server)
	case scheme != "https" && scheme != "http":
		return fmt.Errorf("the server of the cluster %s is %q; it must begin with https://", cluster, server)
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("the server of the cluster %s is %q; it must be https://HOST:PORT", cluster, server)
	}
	if port, err := strconv.Atoi(cmp.Or(u.Port(), "443")); err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("the server of the cluster %s is %q; its port must be from 1 to 65535", cluster, server)
	}
	return nil
}

// wrongCredentials returns the key and the error about certificates, keys and tokens that no server accepts.
func wrongCredentials(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (list, key string, err error) {
	if data := cluster.CertificateAuthorityData; len(data) > 0 && !isPEM(data) {
		return "clusters", "certificate-authority-data", errNoPEM
	}
	switch {
	case user == nil:
	case len(user.ClientCertificateData) > 0 && !isPEM(user.ClientCertificateData):
		return "users", "client-certificate-data", errNoPEM
	case len(user.ClientKeyData) > 0 && !isPEM(user.ClientKeyData):
		return "users", "client-key-data", errNoPEM
	case strings.ContainsAny(user.Token, " \t\r\n"):
		return "users", "token", errors.New("the token has a space or a line break in it; write it in one line")
	}
	return "", "", nil
}

var errNoPEM = errors.New("it must be the base64 of a PEM file, which begins with -----BEGIN; copy the whole value again")

func isPEM(data []byte) bool {
	block, _ := pem.Decode(data)
	return block != nil
}

// explain returns the error about a kubeconfig with what a user can do about it.
func (k kubeconfig) explain(err error) error {
	raw, rawErr := k.rules.Load()
	isEmpty := clientcmd.IsEmptyConfig(err) || rawErr == nil && clientcmdapi.IsConfigEmpty(raw)
	found, missing := k.files()
	if rawErr != nil || isEmpty {
		for _, name := range found {
			if wrong := wrongFile(name); wrong != nil {
				return fmt.Errorf("reading the kubeconfig %s: %w", name, wrong)
			}
		}
	}
	if rawErr == nil && len(found) > 0 && !clientcmdapi.IsConfigEmpty(raw) {
		if wrong := wrongContext(k.context, raw); wrong != nil {
			return fmt.Errorf("reading the kubeconfig %s: %w", strings.Join(found, ", "), wrong)
		}
	}
	switch {
	case isEmpty && len(missing) > 0:
		return fmt.Errorf("reading the kubeconfig: KUBECONFIG names %s, and no such file exists", strings.Join(missing, ", "))
	case isEmpty && k.context != "":
		return fmt.Errorf("finding the context %s: there is no kubeconfig: set --kubeconfig or KUBECONFIG", k.context)
	case isEmpty:
		return ErrNoKubeconfig
	case rawErr == nil && k.context != "" && raw.Contexts[k.context] == nil:
		return fmt.Errorf("reading the kubeconfig %s: it has no context %q%s", strings.Join(found, ", "), k.context, otherContexts(k.context, raw))
	case rawErr == nil && k.context == "" && raw.CurrentContext != "" && raw.Contexts[raw.CurrentContext] == nil:
		return fmt.Errorf("reading the kubeconfig %s: current-context is %q, and it has no such context%s",
			strings.Join(found, ", "), raw.CurrentContext, otherContexts(raw.CurrentContext, raw))
	}
	if wrong := k.checkContext(); wrong != nil {
		return wrong
	}
	return fmt.Errorf("reading the kubeconfig %s: %w", k.place(), err)
}

// wrongContext returns what the context that is used lacks, or nil where nothing is found.
func wrongContext(name string, raw *clientcmdapi.Config) error {
	name = cmp.Or(name, raw.CurrentContext)
	if name == "" {
		return fmt.Errorf("it has no current-context; choose a context with --context%s", otherContexts(name, raw))
	}
	used := raw.Contexts[name]
	if used == nil {
		return nil
	}
	if _, ok := raw.Clusters[used.Cluster]; !ok {
		return fmt.Errorf("the context %s has the cluster %q, and there is no such cluster%s", name, used.Cluster,
			others(used.Cluster, slices.Sorted(maps.Keys(raw.Clusters))))
	}
	if _, ok := raw.AuthInfos[used.AuthInfo]; !ok && used.AuthInfo != "" {
		return fmt.Errorf("the context %s has the user %q, and there is no such user%s", name, used.AuthInfo,
			others(used.AuthInfo, slices.Sorted(maps.Keys(raw.AuthInfos))))
	}
	return nil
}

// ErrNoKubeconfig is the error where neither a flag nor the environment names a cluster.
var ErrNoKubeconfig = errors.New("there is no kubeconfig: set --kubeconfig or KUBECONFIG")

// otherContexts suggests contexts for one that does not exist.
func otherContexts(name string, raw *clientcmdapi.Config) string {
	return others(name, slices.Sorted(maps.Keys(raw.Contexts)))
}

// others suggests names for one that does not exist.
func others(name string, known []string) string {
	if len(known) == 0 {
		return "; it has none"
	}
	return strict.DidYouMean(name, known) + "; it has " + strings.Join(known, ", ")
}

// kubeconfigFile is what is read of a kubeconfig in order to find a mistake in it.
type kubeconfigFile struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string         `json:"name"`
	Cluster map[string]any `json:"cluster"`
}

type namedContext struct {
	Name    string         `json:"name"`
	Context map[string]any `json:"context"`
}

type namedUser struct {
	Name string         `json:"name"`
	User map[string]any `json:"user"`
}

// maxKubeconfig bounds the size of a kubeconfig that is searched for mistakes, in bytes.
const maxKubeconfig = 16 << 20

// wrongFile returns what makes a file no kubeconfig, or nil where nothing is found.
func wrongFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	docs, err := strict.ReadAll(text, maxKubeconfig)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return errors.New("the file is empty")
	}
	doc := docs[0]
	top, ok := doc.Value.(map[string]any)
	if !ok {
		return errors.New("it is " + strict.Describe(doc.Value) + " and not a kubeconfig")
	}
	if kind, ok := top["kind"].(string); ok && kind != "Config" {
		if len(docs) > 1 {
			return fmt.Errorf("it has %d documents, the first of which is a %s, and is not a kubeconfig", len(docs), kind)
		}
		return fmt.Errorf("it is a %s and not a kubeconfig", kind)
	}
	if len(docs) > 1 {
		return fmt.Errorf("line %d: a second document begins here; a kubeconfig has one", docs[1].Line())
	}
	ps := &strict.Problems{}
	decoder := strict.Decoder{
		Optional: true, NullIsUnset: true,
		Open: []string{"kubeconfigFile", "namedCluster", "namedContext", "namedUser"},
	}
	file := &kubeconfigFile{}
	decoder.Decode(nil, doc.Value, file, ps)
	checkEncoded(file, ps)
	if len(ps.List) == 0 {
		return nil
	}
	ps.Locate(doc)
	return errors.New(ps.List[0].String())
}

// checkEncoded finds the fields with certificates and keys that are not base64.
func checkEncoded(file *kubeconfigFile, ps *strict.Problems) {
	check := func(values map[string]any, at ...any) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, isText := values[key].(string)
			if _, err := base64.StdEncoding.DecodeString(text); isText && strings.HasSuffix(key, "-data") && err != nil {
				ps.Add(append(at, key), "must be a PEM file in base64; to name the file itself, use %s", strings.TrimSuffix(key, "-data"))
			}
		}
	}
	for i, c := range file.Clusters {
		check(c.Cluster, "clusters", i, "cluster")
	}
	for i, u := range file.Users {
		check(u.User, "users", i, "user")
	}
}
