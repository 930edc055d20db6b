package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

var statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

// A cluster that has these and nothing else.
type cluster struct{ client dynamic.Interface }

func (c cluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c.client.Resource(statefulSets), true, nil
}

func clusterWith(sets ...runtime.Object) cluster {
	kinds := map[schema.GroupVersionResource]string{statefulSets: "StatefulSetList"}
	return cluster{fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, sets...)}
}

// A StatefulSet of a release, in a namespace, with a claim among its volumes.
func holder(release, namespace, claim string) *unstructured.Unstructured {
	volumes := []any{map[string]any{"name": "temporary", "emptyDir": map[string]any{}}}
	if claim != "" {
		volumes = append(volumes, map[string]any{
			"name": "data", "persistentVolumeClaim": map[string]any{"claimName": claim},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "StatefulSet",
		"metadata": map[string]any{
			"name": release, "namespace": namespace,
			"labels": map[string]any{"app.kubernetes.io/instance": release},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": volumes}}},
	}}
}

func refusal(t *testing.T, render func(*chart.Chart, chartutil.Values) error, claim string) string {
	loaded, err := loader.LoadDir("../../docs/deploy/helm/fila")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{"persistence": map[string]any{"existingClaim": claim}}
	release := chartutil.ReleaseOptions{Name: "second", Namespace: "here", IsInstall: true, Revision: 1}
	values, err := chartutil.ToRenderValues(loaded, given, release, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err = render(loaded, values); err != nil {
		return err.Error()
	}
	return ""
}

func (c cluster) render(loaded *chart.Chart, values chartutil.Values) error {
	_, err := engine.RenderWithClientProvider(loaded, values, c)
	return err
}

// As `helm template` does, which asks no cluster.
func renderAlone(loaded *chart.Chart, values chartutil.Values) error {
	_, err := engine.Render(loaded, values)
	return err
}

func TestWithoutAClusterNothingIsRefused(t *testing.T) {
	if got := refusal(t, renderAlone, "data"); got != "" {
		t.Fatalf("refused with %q", got)
	}
}

func TestAClaimOfAnotherReleaseIsRefused(t *testing.T) {
	bare := holder("bare", "here", "data")
	bare.SetLabels(nil)
	for _, each := range []struct {
		name  string
		has   []runtime.Object
		claim string
		want  string
	}{
		{"another release has it", []runtime.Object{holder("first", "here", "data")}, "data", "the release first has the claim data"},
		{"something without labels has it", []runtime.Object{bare}, "data", "the release bare has the claim data"},
		{"this release has it", []runtime.Object{holder("second", "here", "data")}, "data", ""},
		{"another one has another claim", []runtime.Object{holder("first", "here", "other")}, "data", ""},
		{"another one has none", []runtime.Object{holder("first", "here", "")}, "data", ""},
		{"it is in another namespace", []runtime.Object{holder("first", "there", "data")}, "data", ""},
		{"nothing is there", nil, "data", ""},
		{"no claim is named", []runtime.Object{holder("first", "here", "data")}, "", ""},
	} {
		t.Run(each.name, func(t *testing.T) {
			got := refusal(t, clusterWith(each.has...).render, each.claim)
			if (each.want == "") != (got == "") || !strings.Contains(got, each.want) {
				t.Fatalf("refused with %q, want %q", got, each.want)
			}
		})
	}
}
