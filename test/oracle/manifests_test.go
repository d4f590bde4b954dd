package oracle

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// clusterPage shows how to run a cluster.
const clusterPage = "../../docs/how-to/cluster.md"

// sample returns the YAML below a heading of clusterPage.
func sample(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(clusterPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	_, code, _ := strings.Cut(part, "```yaml\n")
	code, _, ok := strings.Cut(code, "```")
	if !ok {
		t.Fatalf("%s shows no YAML under %q", clusterPage, heading)
	}
	return code
}

// mistakes are wrong versions of a document: what to replace, and by what.
type mistakes [][2]string

// refused wants check to accept a document, and to refuse each wrong version of it.
func refused(t *testing.T, text string, wrong mistakes, check func(text string) error) {
	t.Helper()
	if err := check(text); err != nil {
		t.Errorf("%s: %v", clusterPage, err)
	}
	for _, w := range wrong {
		if other := strings.Replace(text, w[0], w[1], 1); other == text || check(other) == nil {
			t.Errorf("%q is accepted instead of %q", w[1], w[0])
		}
	}
}

// TestComposeFile has the reader of docker compose read the documented file, with its own schema.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	refused(t, sample(t, "docker compose"), mistakes{
		{"replicas: 4", "replica: 4"},
		{"replicas: 4", "replicas: many"},
		{"stop_grace_period: 2m", "stop_grace_period: 2 turns"},
		{"restart:", "restarts:"},
		{"command: worker", "command: {worker: true}"},
		{"tls://coordinator:", "tls://nobody:"},
	}, func(text string) error {
		project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
			WorkingDir: "/", ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
			Environment: types.Mapping{"PARLEY_CLUSTER_TOKEN": "x", "OPENAI_API_KEY": "x"},
		}, func(o *loader.Options) { o.SetProjectName("parley", true) })
		if err != nil {
			return err
		}
		for name, s := range project.Services {
			if name == "worker" && (s.Deploy == nil || s.Deploy.Replicas == nil || *s.Deploy.Replicas < 2) {
				return errors.New("there is one worker, want several")
			}
			for _, variable := range []string{"PARLEY_CLUSTER_TOKEN", "OPENAI_API_KEY"} {
				if s.Environment[variable] == nil {
					return fmt.Errorf("service %s has no %s", name, variable)
				}
			}
			if host, _, ok := hubOf(s.Command); ok && project.Services[host].Name == "" {
				return fmt.Errorf("service %s connects to %s, which is no service", name, host)
			}
		}
		return nil
	})
}

// hubOf returns the host and the port of --cluster among the arguments of a worker.
func hubOf(args []string) (host string, port int32, ok bool) {
	i := slices.Index(args, "--cluster") + 1
	if i == 0 || i == len(args) {
		return "", 0, false
	}
	host, text, ok := strings.Cut(strings.TrimPrefix(args[i], "tls://"), ":")
	n, err := strconv.Atoi(text)
	return host, int32(n), ok && err == nil
}

// TestKubernetesManifests has the types of Kubernetes read the documented manifests. An unknown key is an error, as with
// kubectl apply --validate=strict. It also checks what the server would refuse or never start.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	refused(t, sample(t, "Kubernetes"), mistakes{
		{"replicas: 8", "replica: 8"},
		{"replicas: 8", "replicas: many"},
		{"readOnly: true", "readonly: true"},
		{"kind: Deployment", "kind: Deploiment"},
		{"apiVersion: apps/v1", "apiVersion: apps/v1beta9"},
		{"terminationGracePeriodSeconds", "terminationGracePeriod"},
		{"volumeClaimTemplates:", "volumeClaimTemplate:"},
		{"storage: 100Gi", "storage: much"},
		{"metadata: {labels: {app: parley-worker}}", "metadata: {labels: {app: worker}}"},
		{"- metadata: {name: runs}", "- metadata: {name: run}"},
		{"serviceName: parley", "serviceName: other"},
		{"selector: {app: parley-coordinator}", "selector: {app: coordinator}"},
		{"tls://parley:4222", "tls://parley:4223"},
	}, checkManifests)
}

func checkManifests(text string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	m := manifests{}
	for i, doc := range strings.Split(text, "---\n") {
		object, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
		if err := m.add(object); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	return m.check()
}

// manifests are the objects of a document.
type manifests struct {
	services []*corev1.Service
	sets     []*appsv1.StatefulSet
	pods     []corev1.PodTemplateSpec
}

// add adds an object whose pods have the labels that it selects, and the volumes that they mount.
func (m *manifests) add(object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Service:
		m.services = append(m.services, o)
		return nil
	case *appsv1.StatefulSet:
		m.sets = append(m.sets, o)
		return m.addPod(o.Spec.Selector.MatchLabels, o.Spec.Template, o.Spec.VolumeClaimTemplates)
	case *appsv1.Deployment:
		return m.addPod(o.Spec.Selector.MatchLabels, o.Spec.Template, nil)
	default:
		return fmt.Errorf("%T is not checked: add it to the test", object)
	}
}

func (m *manifests) addPod(selected map[string]string, pod corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) error {
	m.pods = append(m.pods, pod)
	if !matches(selected, pod.Labels) {
		return fmt.Errorf("it selects %v, and its pods have the labels %v", selected, pod.Labels)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range claims {
		volumes[c.Name] = true
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == "" || c.Image == "" {
			return fmt.Errorf("container %q has the image %q", c.Name, c.Image)
		}
		for _, mount := range c.VolumeMounts {
			if !volumes[mount.Name] {
				return fmt.Errorf("container %s mounts %s, which is no volume", c.Name, mount.Name)
			}
		}
	}
	return nil
}

// check checks what objects say about each other.
func (m *manifests) check() error {
	for _, s := range m.services {
		if !slices.ContainsFunc(m.pods, func(p corev1.PodTemplateSpec) bool { return matches(s.Spec.Selector, p.Labels) }) {
			return fmt.Errorf("service %s selects no pods", s.Name)
		}
	}
	for _, set := range m.sets {
		if !slices.ContainsFunc(m.services, func(s *corev1.Service) bool { return s.Name == set.Spec.ServiceName }) {
			return fmt.Errorf("%s names the service %s, which is not there", set.Name, set.Spec.ServiceName)
		}
	}
	hubs := 0
	for _, p := range m.pods {
		for _, c := range p.Spec.Containers {
			host, port, ok := hubOf(c.Args)
			if !ok {
				continue
			}
			hubs++
			if !slices.ContainsFunc(m.services, func(s *corev1.Service) bool {
				return s.Name == host && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
			}) {
				return fmt.Errorf("container %s connects to %s:%d, which is no service", c.Name, host, port)
			}
		}
	}
	if hubs == 0 {
		return errors.New("no container is a worker")
	}
	return nil
}

// matches reports whether a selector selects these labels.
func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}
