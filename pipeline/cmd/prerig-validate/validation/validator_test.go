// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"
)

// ask answers one request about objects in YAML.
func ask(t *testing.T, operation, object, old string) Answer {
	t.Helper()
	r := Request{ID: 7, Operation: operation, Object: asJSON(t, object)}
	if old != "" {
		r.Old = asJSON(t, old)
	}
	var v Validator
	answer := v.Answer(r)
	if answer.ID != 7 {
		t.Errorf("the answer is to request %d", answer.ID)
	}
	return answer
}

func asJSON(t *testing.T, text string) json.RawMessage {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wants compares problems, each as "field type: a part of the message".
func wants(t *testing.T, answer Answer, want ...string) {
	t.Helper()
	if answer.Error != "" || !answer.Known {
		t.Fatalf("not checked: %+v", answer)
	}
	for _, w := range want {
		head, part, _ := strings.Cut(w, ": ")
		if !slices.ContainsFunc(answer.Problems, func(p Problem) bool {
			return p.Field+" "+p.Type == head && strings.Contains(p.Message, part)
		}) {
			t.Errorf("missing %q in %+v", w, answer.Problems)
		}
	}
	if len(answer.Problems) != len(want) {
		t.Errorf("want %d problems, got %+v", len(want), answer.Problems)
	}
}

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx}
`

func TestCreate(t *testing.T) {
	wants(t, ask(t, Create, webDeployment, ""))
	broken := strings.Replace(webDeployment, "labels: {app: web}", "labels: {app: other}", 1) + "      - {name: web, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}\n"
	wants(t, ask(t, Create, broken, ""),
		"spec.template.metadata.labels FieldValueInvalid: `selector` does not match template `labels`",
		"spec.template.spec.containers[1].name FieldValueDuplicate: Duplicate value",
		"spec.template.spec.containers[1].volumeMounts[0].name FieldValueNotFound: Not found: \"data\"")
	for kind, c := range map[string]struct{ object, want string }{
		"CronJob": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "every day", jobTemplate: {spec: {template: {spec: {
			restartPolicy: Never, containers: [{name: a, image: b}]}}}}}}`, "spec.schedule FieldValueInvalid: "},
		"Service":     {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81}]}}`, "spec.ports[0].name FieldValueRequired: "},
		"dual stack":  {`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ipFamilyPolicy: SingleStack, ipFamilies: [IPv4, IPv6], ports: [{port: 80}]}}`, "spec.ipFamilyPolicy FieldValueInvalid: multiple IP families"},
		"RoleBinding": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {kind: Rule, name: b, apiGroup: rbac.authorization.k8s.io}}`, "roleRef.kind FieldValueNotSupported: "},
		"definition": {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: doors.example.org}, spec: {group: example.org, scope: Namespaced,
			names: {plural: doors, kind: Door}, versions: [{name: v1, served: true, storage: true}]}}`, "spec.versions[0].schema.openAPIV3Schema FieldValueRequired: "},
		"old version": {`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {minReplicas: 5, maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: b}}}`, "spec.maxReplicas FieldValueInvalid: "},
		"stored":      {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "7"}}`, "metadata.resourceVersion FieldValueForbidden: "},
		"type":        {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}`, " Undecodable: "},
		"no name":     {`{apiVersion: v1, kind: ConfigMap, metadata: {}}`, "metadata.name FieldValueRequired: "},
	} {
		t.Run(kind, func(t *testing.T) { answer := ask(t, Create, c.object, ""); wantsOne(t, answer, c.want) })
	}
	wants(t, ask(t, Create, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}`, ""))
	// Clusters permit privileged containers, and give pods a service account.
	wants(t, ask(t, Create, strings.Replace(webDeployment, "image: nginx", "image: nginx, securityContext: {privileged: true}", 1), ""))
	wants(t, ask(t, Create, `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: b}],
		volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: a}}]}}]}}`, ""))
	if answer := ask(t, Create, `{apiVersion: example.org/v1, kind: Door, metadata: {name: a}}`, ""); answer.Known || answer.Error != "" {
		t.Errorf("a kind that Kubernetes does not have: %+v", answer)
	}
}

// TestTimeZone needs no files of time zones: a confined program cannot read those of the machine.
func TestTimeZone(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "0 1 * * *", timeZone: America/Denver, jobTemplate: {spec: {template: {spec: {
		restartPolicy: Never, containers: [{name: a, image: b}]}}}}}}`
	wants(t, ask(t, Create, job, ""))
	wantsOne(t, ask(t, Create, strings.Replace(job, "Denver", "Dever", 1), ""), "spec.timeZone FieldValueInvalid: unknown time zone America/Dever")
}

// TestHealthCheckPort is about a port that clusters allocate.
func TestHealthCheckPort(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: a}, ports: [{port: 80}]}}`
	named := strings.Replace(service, "selector:", "healthCheckNodePort: 30123, selector:", 1)
	cluster := strings.Replace(service, "Local", "Cluster", 1)
	wants(t, ask(t, Create, service, ""))
	wants(t, ask(t, Create, named, ""))
	wants(t, ask(t, Update, service, cluster))
	wants(t, ask(t, Update, cluster, service))
	wants(t, ask(t, Update, named, service))
	wants(t, ask(t, Update, service, named))
	other := strings.Replace(named, "30123", "30124", 1)
	wantsOne(t, ask(t, Update, other, named), "spec.healthCheckNodePort FieldValueImmutable: field is immutable")
	wantsOne(t, ask(t, Create, strings.Replace(named, "Local", "Cluster", 1), ""), "spec.healthCheckNodePort FieldValueInvalid: may only be set")
}

// wantsOne wants a problem among others.
func wantsOne(t *testing.T, answer Answer, want string) {
	t.Helper()
	head, part, _ := strings.Cut(want, ": ")
	if !slices.ContainsFunc(answer.Problems, func(p Problem) bool { return p.Field+" "+p.Type == head && strings.Contains(p.Message, part) }) {
		t.Errorf("missing %q in %+v", want, answer)
	}
}

func TestUpdate(t *testing.T) {
	wants(t, ask(t, Update, strings.Replace(webDeployment, "nginx", "nginx:2", 1), webDeployment))
	wantsOne(t, ask(t, Update, strings.ReplaceAll(webDeployment, "app: web", "app: other"), webDeployment), "spec.selector FieldValueImmutable: field is immutable")
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "b:1"}]}}}}`
	// The API server has given the Job a selector and labels, which applying it again does not take away.
	wants(t, ask(t, Update, job, job))
	wants(t, ask(t, Update, strings.Replace(job, "parallelism: 1", "parallelism: 2", 1), job))
	wantsOne(t, ask(t, Update, strings.Replace(job, "b:1", "b:2", 1), job), "spec.template FieldValueImmutable: field is immutable")
	// What was applied goes, and what the API server has added beside it stays.
	labelled := strings.Replace(job, "parallelism: 1, template: {", "parallelism: 1, template: {metadata: {labels: {a: b}}, ", 1)
	for _, p := range ask(t, Update, job, labelled).Problems {
		if p.Field != "spec.template" {
			t.Errorf("an update of a Job finds %+v", p)
		}
	}
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: "b:1"}]}}`
	wants(t, ask(t, Update, strings.Replace(pod, "b:1", "b:2", 1), pod))
	wantsOne(t, ask(t, Update, strings.Replace(pod, `image: "b:1"`, `image: "b:1", command: [c]`, 1), pod), "spec FieldValueImmutable: pod updates may not change fields")
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], storageClassName: a, resources: {requests: {storage: 10Gi}}}}`
	wants(t, ask(t, Update, strings.Replace(claim, "10Gi", "20Gi", 1), claim))
	wantsOne(t, ask(t, Update, strings.Replace(claim, "10Gi", "5Gi", 1), claim), "spec.resources.requests.storage FieldValueForbidden: less than")
	wantsOne(t, ask(t, Update, strings.Replace(claim, "storageClassName: a", "storageClassName: b", 1), claim), "spec FieldValueImmutable: immutable after creation")
	const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {kind: Role, name: b, apiGroup: rbac.authorization.k8s.io}}`
	wantsOne(t, ask(t, Update, strings.Replace(binding, "name: b", "name: c", 1), binding), "roleRef FieldValueImmutable: cannot change roleRef")
}

// TestUpdateOfWhatTheClusterFillsIn updates objects of which the cluster has more than was applied.
func TestUpdateOfWhatTheClusterFillsIn(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}`
	change := func(old, from, to string) Answer {
		t.Helper()
		next := strings.Replace(old, from, to, 1)
		if next == old {
			t.Fatalf("%s has no %s", old, from)
		}
		return ask(t, Update, next, old)
	}
	wants(t, change(service, "selector: {app: a}", "clusterIP: None, selector: {app: a}"), "spec.clusterIPs[0] FieldValueImmutable: may not change once set")
	wants(t, change(service, "selector: {app: a}", "clusterIP: 10.0.0.7, selector: {app: a}")) // it may be the allocated one
	wants(t, change(service, "selector: {app: a}", "ipFamilies: [IPv6], selector: {app: a}"))  // the same
	wants(t, change(service, "selector: {app: a}", "type: NodePort, selector: {app: a}"))
	wants(t, change(service, "selector: {app: a}, ports: [{port: 80}]", "type: ExternalName, externalName: a.example.org"))
	family := strings.Replace(service, "selector:", "ipFamilies: [IPv4], selector:", 1)
	wants(t, change(family, "IPv4", "IPv6"), "spec.ipFamilies[0] FieldValueImmutable: may not change once set")

	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: doors.example.org}, spec: {group: example.org,
		scope: Namespaced, names: {plural: doors, kind: Door}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
	wants(t, change(definition, "Namespaced", "Cluster"), "spec.scope FieldValueImmutable: field is immutable")
	wants(t, change(definition, "kind: Door", "kind: Gate"), "spec.names.kind FieldValueImmutable: field is immutable")
	wants(t, change(definition, "name: v1,", "name: v2,"), "status.storedVersions[0] FieldValueInvalid: missing from spec.versions")
	wants(t, change(definition, "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}"))

	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: "b:1"}]}}`
	wants(t, change(pod, "b:1", "b")) // it keeps the pull policy of the first image
	policy := strings.Replace(pod, "b:1\"", "b:1\", imagePullPolicy: Never", 1)
	wants(t, change(policy, "Never", "Always"), "spec FieldValueImmutable: pod updates may not change fields")

	const daemons = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		spec: {containers: [{name: a, image: "b:1"}]}}}}`
	if answer := change(daemons, "b:1", "b:2"); len(answer.Problems)+len(answer.Ignored) > 0 {
		t.Errorf("the image of a DaemonSet: %+v", answer)
	}
}

// TestUpdateKeepsTheAppArmorProfileOfAPod updates a Pod with an annotation whose profile the API server writes to the container when it
// creates the Pod: applying the Pod again does not take it away.
func TestUpdateKeepsTheAppArmorProfileOfAPod(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {container.apparmor.security.beta.kubernetes.io/a: runtime/default}},
		spec: {containers: [{name: a, image: "b:1"}, {name: b, image: "b:1", securityContext: {runAsUser: 7}}]}}`
	for _, image := range []string{"b:1", "b:2"} {
		wants(t, ask(t, Update, strings.Replace(pod, "b:1", image, 1), pod))
	}
	wants(t, ask(t, Update, strings.Replace(pod, "runtime/default", "unconfined", 1), pod),
		"metadata.annotations[container.apparmor.security.beta.kubernetes.io/a] FieldValueForbidden: may not remove or update AppArmor annotations")
	for _, context := range []string{"{runAsUser: 8}", "{}"} {
		wants(t, ask(t, Update, strings.Replace(pod, "{runAsUser: 7}", context, 1), pod),
			"spec FieldValueImmutable: pod updates may not change fields")
	}
}

func TestUpdateTellsWhatIsIgnored(t *testing.T) {
	const headless = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, selector: {app: a}, ports: [{port: 80}]}}`
	answer := ask(t, Update, strings.Replace(headless, "clusterIP: None, ", "", 1), headless)
	wants(t, answer)
	if !slices.Equal(answer.Ignored, []string{"spec.clusterIP"}) {
		t.Errorf("ignored: %q", answer.Ignored)
	}
	answer = ask(t, Update, strings.Replace(headless, "port: 80", "port: 81", 1), headless)
	wants(t, answer)
	if len(answer.Ignored) > 0 {
		t.Errorf("ignored: %q", answer.Ignored)
	}
}

func TestApply(t *testing.T) {
	wants(t, ask(t, Apply, webDeployment, ""))
	twice := strings.Replace(webDeployment, "{name: web, image: nginx}", "{name: web, image: nginx, env: [{name: A, value: b}, {name: A, value: c}]}", 1)
	wants(t, ask(t, Apply, twice, ""), `spec.template.spec.containers[name="web"].env FieldValueDuplicate: duplicate entries for key [name="A"]`)
	wants(t, ask(t, Create, twice, ""))
	wantsOne(t, ask(t, Apply, strings.Replace(webDeployment, "spec:", "spek:", 1), ""), "spek FieldNotDeclared: field not declared in schema")
	if answer := ask(t, Apply, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}}`, ""); answer.Known {
		t.Errorf("a kind without types: %+v", answer)
	}
}

// neverStored are kinds of which a cluster keeps no objects.
var neverStored = []string{
	"Binding", "Eviction", "Scale", "NodeProxyOptions", "PodAttachOptions", "PodExecOptions", "PodPortForwardOptions", "PodProxyOptions", "ServiceProxyOptions",
	"PodLogOptions", "RangeAllocation", "SerializedReference", "PodStatusResult", "ComponentStatus", "TokenReview", "TokenRequest", "SelfSubjectReview",
	"SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "ImageReview", "ConversionReview", "AdmissionReview",
	"DeploymentRollback", "JobTemplate", "ResourcePoolStatusRequest", "Status", "WatchEvent", "APIGroup", "APIVersions", "NodeConfigSource",
}

// TestEveryKindHasAStrategy asks about an object of each kind that the release stores, in each version.
func TestEveryKindHasAStrategy(t *testing.T) {
	var v Validator
	kinds := 0
	for kind := range legacyscheme.Scheme.AllKnownTypes() {
		if kind.Version == "__internal" || kind.Group == "" && kind.Version != "v1" || strings.HasSuffix(kind.Kind, "List") ||
			strings.HasSuffix(kind.Kind, "Options") || slices.Contains(neverStored, kind.Kind) || !isStored(kind) {
			continue
		}
		kinds++
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a"}}`, kind.GroupVersion().String(), kind.Kind)
		for _, operation := range []string{Create, Update, Apply} {
			answer := v.Answer(Request{Operation: operation, Object: json.RawMessage(object), Old: json.RawMessage(object)})
			untyped := operation == Apply && (kind.Group == "apiextensions.k8s.io" || kind.Group == "apiregistration.k8s.io")
			if answer.Known == untyped || answer.Error != "" {
				t.Errorf("%s of %s: %+v", operation, kind, answer)
			}
		}
	}
	if kinds < 100 {
		t.Errorf("asked about %d kinds only", kinds)
	}
}

// isStored reports whether a kind has metadata of its own.
func isStored(kind schema.GroupVersionKind) bool {
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return false
	}
	_, err = meta.Accessor(object)
	return err == nil
}

func TestServe(t *testing.T) {
	var in bytes.Buffer
	fmt.Fprintf(&in, "{\"id\":1,\"operation\":\"create\",\"object\":%s}\n", asJSON(t, webDeployment))
	in.WriteString("nonsense\n")
	in.WriteString(strings.Repeat("x", MaxLine+2) + "\n")
	fmt.Fprintf(&in, "{\"id\":4,\"operation\":\"create\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"A\"}}}")
	var out bytes.Buffer
	if err := Serve(&in, &out); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&out)
	var got []string
	for lines.Scan() {
		got = append(got, lines.Text())
	}
	for i, want := range []string{`"protocol":1`, `{"id":1,"known":true}`, "reading the request", "the request has more than", `"field":"metadata.name"`} {
		if i >= len(got) || !strings.Contains(got[i], want) {
			t.Errorf("line %d lacks %s: %q", i, want, got)
		}
	}
}

// TestSameAnswers asks the same twice, of a new validator each time.
func TestSameAnswers(t *testing.T) {
	broken := strings.NewReplacer("labels: {app: web}", "labels: {app: other, a: '!', b: '!', c: '!'}", "nginx", "''").Replace(webDeployment)
	first, err := json.Marshal(ask(t, Create, broken, ""))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := json.Marshal(ask(t, Create, broken, ""))
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("%s\n%s\n%v", first, again, err)
		}
	}
}
