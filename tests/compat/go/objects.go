package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
)

var sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}

func named(name string) meta.ObjectMeta {
	return meta.ObjectMeta{Name: name, Labels: map[string]string{"app": "go"}}
}

// expect is nil if what is asked for holds.
func expect(holds bool, format string, values ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, values...)
}

func first(problems ...error) error {
	for _, problem := range problems {
		if problem != nil {
			return problem
		}
	}
	return nil
}

func makeNamespace(ctx context.Context, all *clients) error {
	_, err := all.typed.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: named(all.ns)}, meta.CreateOptions{})
	return err
}

func aPod(name string) *core.Pod {
	grace := int64(1)
	return &core.Pod{ObjectMeta: named(name), Spec: core.PodSpec{
		NodeName:                      "n1",
		TerminationGracePeriodSeconds: &grace,
		Volumes:                       []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}},
		Containers: []core.Container{{
			Name: "main", Image: "example.test/app:1", Command: []string{"sleep", "1"},
			Env:            []core.EnvVar{{Name: "A", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
			Ports:          []core.ContainerPort{{ContainerPort: 80}},
			VolumeMounts:   []core.VolumeMount{{Name: "v", MountPath: "/v"}},
			Resources:      core.ResourceRequirements{Requests: core.ResourceList{core.ResourceCPU: resource.MustParse("250m")}},
			ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
		}}}}
}

// Bodies of typed clients are protobuf.
func typedObjects(ctx context.Context, all *clients) error {
	pods := all.typed.CoreV1().Pods(all.ns)
	made, err := pods.Create(ctx, aPod("web"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	main := made.Spec.Containers[0]
	if err := first(
		expect(made.Spec.RestartPolicy == core.RestartPolicyAlways, "restart policy %s", made.Spec.RestartPolicy),
		expect(main.Resources.Requests.Cpu().MilliValue() == 250, "requests %v", main.Resources.Requests),
		expect(main.ReadinessProbe.HTTPGet.Port.IntValue() == 80, "probe %v", main.ReadinessProbe),
		expect(main.ReadinessProbe.PeriodSeconds == 10, "period of the probe %d", main.ReadinessProbe.PeriodSeconds),
		expect(made.Status.QOSClass == core.PodQOSBurstable, "class %s", made.Status.QOSClass),
	); err != nil {
		return err
	}
	made.Status.Phase = core.PodRunning
	made.Status.ContainerStatuses = []core.ContainerStatus{{Name: "main", Ready: true, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}}}}
	running, err := pods.UpdateStatus(ctx, made, meta.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if err := expect(running.Status.ContainerStatuses[0].Ready, "status %v", running.Status); err != nil {
		return err
	}
	_, err = pods.UpdateStatus(ctx, made, meta.UpdateOptions{})
	if err := expect(errors.IsConflict(err), "a stale update: %v", err); err != nil {
		return err
	}
	if err := pods.EvictV1(ctx, &policy.Eviction{ObjectMeta: meta.ObjectMeta{Name: "web"}}); err != nil {
		return fmt.Errorf("eviction: %w", err)
	}
	zero := int64(0)
	if err := pods.Delete(ctx, "web", meta.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	_, err = pods.Get(ctx, "web", meta.GetOptions{})
	if err := expect(errors.IsNotFound(err), "a deleted pod: %v", err); err != nil {
		return err
	}
	return typedConfig(ctx, all)
}

func typedConfig(ctx context.Context, all *clients) error {
	maps := all.typed.CoreV1().ConfigMaps(all.ns)
	for i := range 5 {
		made := &core.ConfigMap{ObjectMeta: named(fmt.Sprintf("cm-%d", i)), Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}}
		if _, err := maps.Create(ctx, made, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: named("cm-0")}, meta.CreateOptions{})
	if err := expect(errors.IsAlreadyExists(err), "a second one: %v", err); err != nil {
		return err
	}
	page, err := maps.List(ctx, meta.ListOptions{LabelSelector: "app=go", Limit: 2})
	if err != nil {
		return err
	}
	if err := expect(len(page.Items) == 2 && page.Continue != "", "a page of %d", len(page.Items)); err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := maps.Get(ctx, "cm-0", meta.GetOptions{})
		if err != nil {
			return err
		}
		found.Data["a"] = "2"
		_, err = maps.Update(ctx, found, meta.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return maps.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "app=go"})
}

func aSandbox(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "example.test/app:1"}}}}}}}
}

func dynamicObjects(ctx context.Context, all *clients) error {
	boxes := all.dynamic.Resource(sandboxes).Namespace(all.ns)
	made, err := boxes.Create(ctx, aSandbox("box"), meta.CreateOptions{})
	if err != nil {
		return err
	}
	mode, _, _ := unstructured.NestedString(made.Object, "spec", "operatingMode")
	if err := expect(mode == "Running", "mode '%s'", mode); err != nil {
		return err
	}
	patched, err := boxes.Patch(ctx, "box", types.MergePatchType, []byte(`{"status":{"nodeName":"n"}}`), meta.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	if err := expect(patched.GetGeneration() == 1, "generation %d", patched.GetGeneration()); err != nil {
		return err
	}
	_, err = boxes.Update(ctx, made, meta.UpdateOptions{})
	if err := expect(errors.IsConflict(err), "a stale update: %v", err); err != nil {
		return err
	}
	bad := aSandbox("bad")
	_ = unstructured.SetNestedField(bad.Object, "Nope", "spec", "operatingMode")
	_, err = boxes.Create(ctx, bad, meta.CreateOptions{})
	if err := expect(errors.IsInvalid(err), "a bad one: %v", err); err != nil {
		return err
	}
	foreground := meta.DeletePropagationForeground
	return boxes.Delete(ctx, "box", meta.DeleteOptions{PropagationPolicy: &foreground})
}

func appliesWithOwners(ctx context.Context, all *clients) error {
	maps := all.typed.CoreV1().ConfigMaps(all.ns)
	wanted := coreapply.ConfigMap("cm", all.ns).WithData(map[string]string{"a": "1"})
	if _, err := maps.Apply(ctx, wanted, meta.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	other := coreapply.ConfigMap("cm", all.ns).WithData(map[string]string{"a": "2"})
	_, err := maps.Apply(ctx, other, meta.ApplyOptions{FieldManager: "two"})
	if err := expect(errors.IsConflict(err), "another's field: %v", err); err != nil {
		return err
	}
	forced, err := maps.Apply(ctx, other, meta.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	if err := expect(forced.Data["a"] == "2", "data %v", forced.Data); err != nil {
		return err
	}
	extracted, err := coreapply.ExtractConfigMap(forced, "two")
	if err != nil {
		return err
	}
	if err := expect(extracted.Data["a"] == "2", "what 'two' owns: %v", extracted); err != nil {
		return err
	}
	box, err := all.dynamic.Resource(sandboxes).Namespace(all.ns).Apply(ctx, "box", aSandbox("box"), meta.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	return expect(len(box.GetManagedFields()) == 1, "managers %v", box.GetManagedFields())
}
