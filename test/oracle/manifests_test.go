package oracle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// sample returns a file of the folder deploy.
func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mistakes are wrong versions of a document: what to replace, and by what.
type mistakes [][2]string

// refused wants check to accept a document, and to refuse each wrong version of it.
func refused(t *testing.T, text string, wrong mistakes, check func(text string) error) {
	t.Helper()
	if err := check(text); err != nil {
		t.Error(err)
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
	refused(t, sample(t, "compose.yaml"), mistakes{
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
	_, after, ok := strings.Cut(strings.ReplaceAll(strings.Join(args, " "), "=", " "), "--cluster tls://")
	if !ok {
		return "", 0, false
	}
	address, _, _ := strings.Cut(after, " ")
	host, text, ok := strings.Cut(address, ":")
	n, err := strconv.Atoi(text)
	return host, int32(n), ok && err == nil
}

// TestKubernetesManifests has the types of Kubernetes read the documented manifests. An unknown key is an error, as with
// kubectl apply --validate=strict. It also checks what the server would refuse or never start.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	refused(t, sample(t, "kubernetes.yaml"), mistakes{
		{"replicas: 8", "replica: 8"},
		{"replicas: 8", "replicas: many"},
		{"readOnly: true", "readonly: true"},
		{"kind: Deployment", "kind: Deploiment"},
		{"apiVersion: apps/v1", "apiVersion: apps/v1beta9"},
		{"terminationGracePeriodSeconds", "terminationGracePeriod"},
		{"volumeClaimTemplates:", "volumeClaimTemplate:"},
		{"storage: 100Gi", "storage: much"},
		{"kind: Job", "kind: Jobs"},
		{"podFailurePolicy:", "podFailures:"},
		{"claimName: parley-runs", "claimName: runs"},
		{"tcpSocket: {port: 9101}", "tcpSocket: {port: 9109}"},
		{"tcpSocket: {port: 9101}", "tcp: {port: 9101}"},
		{"metadata: {labels: {app: parley-worker}}", "metadata: {labels: {app: worker}}"},
		{"- metadata: {name: messages}", "- metadata: {name: message}"},
		{"serviceName: parley-hub", "serviceName: other"},
		{"selector: {app: parley-hub}", "selector: {app: hub}"},
		{"tls://parley-hub:4222", "tls://parley-hub:4223"},
	}, checkManifests)
}

func checkManifests(text string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme} {
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
	claims   []string
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
	case *batchv1.Job:
		return m.addPod(o.Spec.Template.Labels, o.Spec.Template, nil) // the server makes its selector
	case *corev1.PersistentVolumeClaim:
		m.claims = append(m.claims, o.Name)
		return nil
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
		for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
			if probe != nil && !strings.Contains(strings.Join(c.Args, " "), fmt.Sprintf(":%d", probe.TCPSocket.Port.IntValue())) {
				return fmt.Errorf("container %s listens at no port %v", c.Name, probe.TCPSocket.Port)
			}
		}
		if c.LivenessProbe == nil {
			return fmt.Errorf("container %s has no probe", c.Name)
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
		for _, v := range p.Spec.Volumes {
			if c := v.PersistentVolumeClaim; c != nil && !slices.Contains(m.claims, c.ClaimName) {
				return fmt.Errorf("volume %s is of the claim %s, which is not there", v.Name, c.ClaimName)
			}
		}
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

// TestUnits has systemd read its units.
func TestUnits(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not here")
	}
	for _, name := range []string{"parley-hub.service", "parley-worker.service", "parley-run@.service"} {
		text := strings.ReplaceAll(sample(t, name), "/usr/bin/parley", "/bin/sh") // one that is here
		refused(t, text, mistakes{{"ExecStart=", "ExecStarts="}, {"Restart=", "Restart=sometimes"}, {"LimitNOFILE=", "LimitFILES="}, {"[Service]", "[Services]"}}, func(text string) error {
			file := filepath.Join(t.TempDir(), strings.Replace(name, "@", "@study", 1))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return err
			}
			out, err := exec.CommandContext(t.Context(), program, "verify", file).CombinedOutput()
			if err == nil && len(out) > 0 {
				err = errors.New("it warns")
			}
			if err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, out)
			}
			return nil
		})
	}
}

// TestDockerfiles has the parser of BuildKit read the Dockerfiles.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"python.Dockerfile", "../release/Dockerfile"} {
		refused(t, sample(t, name), mistakes{{"ENTRYPOINT", "ENTRYPOINTS"}, {"\nFROM", "\nFORM"}, {"USER 65532:65532", "USER"}, {"COPY --from=", "COPY --of="}}, func(text string) error {
			tree, err := parser.Parse(strings.NewReader(text))
			if err != nil {
				return err
			}
			stages, _, err := instructions.Parse(tree.AST, nil)
			if err != nil {
				return err
			}
			names := map[string]bool{}
			for _, s := range stages {
				for _, command := range s.Commands {
					if c, ok := command.(*instructions.CopyCommand); ok && c.From != "" && !names[c.From] {
						return fmt.Errorf("%s copies from %s, which is no stage", name, c.From)
					}
				}
				names[s.Name] = true
			}
			return nil
		})
	}
}
